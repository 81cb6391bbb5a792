// Command worker is the node of the chaos tests: its handlers write down when they ran, into the directory that CHAOS_RUNS names.
//
// The classes: quick and slow, which differ in how long the test has them run (CHAOS attachments {"ms": …}), and return what ran.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/test/chaos/history"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	log, err := history.Open(os.Getenv("CHAOS_RUNS"))
	if err != nil {
		return err
	}
	n, err := node.New(node.ConfigFromEnv())
	if err != nil {
		return err
	}
	for _, class := range []string{"quick", "slow"} {
		node.Handle(n, class, func(ctx context.Context, in work) (history.Result, error) { return handle(ctx, log, in) })
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	return n.Run(ctx)
}

// work is what a task asks for.
type work struct {
	Ms int64 `json:"ms"`
}

// handle runs for as long as asked, or until its context ends.
func handle(ctx context.Context, log *history.Log, in work) (history.Result, error) {
	t := node.TaskFrom(ctx)
	line := history.Line{Event: history.Started, Task: t.ID, Attempt: t.Attempt}
	if err := log.Write(line); err != nil {
		return history.Result{}, err
	}
	timer := time.NewTimer(time.Duration(in.Ms) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		line.Event = history.Finished
	case <-ctx.Done():
		line.Event, line.Cause = history.Stopped, context.Cause(ctx).Error()
	}
	if err := log.Write(line); err != nil {
		return history.Result{}, err
	}
	if line.Event == history.Stopped {
		return history.Result{}, errors.New("stopped: " + line.Cause)
	}
	return history.Result{Attempt: t.Attempt, PID: os.Getpid()}, nil
}
