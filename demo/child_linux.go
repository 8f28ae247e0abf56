package demo

import (
	"os/exec"
	"syscall"
)

// isolate puts a child into a process group of its own and has the kernel kill it when this process
// dies, even by SIGKILL.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
