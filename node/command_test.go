package node_test

import (
	"context"
	"errors"
	"os/exec"
	"testing"

	"github.com/skalds-go/skalds/node"
)

// The process of a handler ends with its context. That it dies with the node, too, is shown by killing one: S16 of
// test/chaos.
func TestCommandEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := node.Command(ctx, "sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cancel()
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) {
		t.Errorf("%v", err)
	}
}
