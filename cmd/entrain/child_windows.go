package main

import (
	"os"
	"os/exec"
	"syscall"
)

// isolate keeps the console's Ctrl-C from a child, which learns from its standard input that it shall end.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// killGroup ends a child; children of ours start no processes.
func killGroup(p *os.Process) { _ = p.Kill() }
