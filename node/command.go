package node

import (
	"context"
	"os/exec"
)

// Command is [exec.CommandContext] for a process that does the work of a handler. The process is killed when ctx ends,
// and on Linux also when the node's own process dies, so that no work goes on unseen while its task runs elsewhere.
// Processes that it starts in turn are not killed. But any process that inherits the node's descriptors keeps the lock
// in SKALD_STATE_DIR: then a node that is started again cannot prove that its predecessor is dead, and waits.
func Command(ctx context.Context, name string, arg ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, arg...) //nolint:gosec // what to run is the handler's to say
	dieWithUs(cmd)
	return cmd
}
