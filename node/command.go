package node

import (
	"context"
	"os/exec"
)

// Command is [exec.CommandContext] for a process that does the work of a handler: it is killed when ctx ends, and on Linux also when the
// node's own process dies, however that is, so that no work goes on unseen while its task runs elsewhere. What it starts in turn is not; but
// any process that inherits the node's descriptors keeps the lock in SKALD_STATE_DIR, so that a node which is started again proves nothing
// and waits.
func Command(ctx context.Context, name string, arg ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, arg...) //nolint:gosec // what to run is the handler's to say
	dieWithUs(cmd)
	return cmd
}
