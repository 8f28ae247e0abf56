//go:build unix

package demo

import (
	"os"
	"syscall"
)

// killGroup kills a child and all that it started.
func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }
