package bench

import (
	"os/exec"
	"syscall"
)

// together has the kernel kill the process when this one ends, however that is.
func together(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
