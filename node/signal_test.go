//go:build unix

package node_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/node/nodetest"
)

// drains is a log that says when a node begins to drain.
type drains chan struct{}

func (d drains) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "msg=draining") {
		close(d)
	}
	return len(p), nil
}

// TestRunUntilSignal signals this process: the first signal drains, with half a minute for the handler; the second ends
// its context.
func TestRunUntilSignal(t *testing.T) {
	c := nodetest.New()
	defer c.Close()
	draining := make(drains)
	n, err := node.New(nodetest.Config("n"), append(c.Options(), node.WithLogger(slog.New(slog.NewTextHandler(draining, nil))))...)
	if err != nil {
		t.Fatal(err)
	}
	began, ended := make(chan struct{}), make(chan error, 1)
	node.Handle(n, "c", func(ctx context.Context, _ any) (any, error) {
		close(began)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, ctx.Err()
	})
	signal := func() {
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	over := make(chan error, 1)
	go func() { over <- n.RunUntilSignal(t.Context()) }()
	if _, err := c.Await(t.Context(), "n"); err != nil {
		t.Fatal(err)
	}
	task, err := c.Task("c", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Assign(t.Context(), "n", task); err != nil {
		t.Fatal(err)
	}
	<-began
	signal()
	<-draining
	select {
	case cause := <-ended:
		t.Errorf("the first signal ended the run: %v", cause)
	default:
	}
	signal()
	if err := <-over; err != nil {
		t.Errorf("it ended with %v", err)
	}
	if cause := <-ended; !errors.Is(cause, node.ErrDraining) {
		t.Errorf("the run ended by %v", cause)
	}
}
