//go:build unix && !linux

package main

import (
	"os/exec"
	"syscall"
)

// isolate puts a child into a process group of its own. That this process died it learns from its standard input.
func isolate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
