//go:build unix && !linux

package demo

import (
	"os/exec"
	"syscall"
)

// isolate puts a child into a process group of its own. The child notices by its standard input
// that this process has ended.
func isolate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
