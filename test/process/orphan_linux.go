package process

import (
	"os/exec"
	"syscall"
)

// together has the kernel kill the process when this one ends, be it by a signal or a test's time limit.
func together(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
