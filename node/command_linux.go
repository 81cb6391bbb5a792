package node

import (
	"os/exec"
	"syscall"
)

// dieWithUs has the kernel kill the process when the thread that started it ends. Go ends no thread before the process,
// but for one that a goroutine has locked and not unlocked.
func dieWithUs(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
