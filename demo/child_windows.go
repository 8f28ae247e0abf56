package demo

import (
	"os"
	"os/exec"
	"syscall"
)

// isolate keeps the console's Ctrl-C from a child, which notices by its standard input that it
// shall end.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// killGroup kills a child. Children of a demo start no processes.
func killGroup(p *os.Process) { _ = p.Kill() }
