//go:build unix

package main

import (
	"os"
	"syscall"
)

// killGroup ends a child and all that it started.
func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }
