// Command worker is the node of the chaos tests: its handlers write down when they ran, into the directory that
// CHAOS_RUNS names.
//
// The classes, which all return what ran:
//
//	quick, slow   differ in how long the test has them run
//	steps         can be paused and updated meanwhile
//	stubborn      does not stop when it is told to
//	exec          has a child process do it, which dies with the node
//	orphan        has a child process do it, which outlives the node
//	exit          ends the node's process after that time
//	hog           takes memory until the node's process dies of it, which it does early: see maxGrowth
//	panic         panics after that time
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
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
	if len(os.Args) > 1 {
		return child(log, os.Args[1])
	}
	n, err := node.New(node.ConfigFromEnv())
	if err != nil {
		return err
	}
	for _, class := range []string{"quick", "slow"} {
		node.Handle(n, class, func(ctx context.Context, in work) (history.Result, error) {
			t := node.TaskFrom(ctx)
			return handle(ctx, log, t.ID, t.Attempt, in)
		})
	}
	node.Handle(n, "steps", func(ctx context.Context, in work) (history.Result, error) { return steps(ctx, log, in) })
	node.Handle(n, "stubborn", func(ctx context.Context, in work) (history.Result, error) {
		t := node.TaskFrom(ctx)
		return handle(context.WithoutCancel(ctx), log, t.ID, t.Attempt, in)
	})
	node.Handle(n, "exec", func(ctx context.Context, in work) (history.Result, error) { return inChild(ctx, node.Command, in) })
	node.Handle(n, "orphan", func(ctx context.Context, in work) (history.Result, error) {
		return inChild(ctx, exec.CommandContext, in)
	})
	for class, harm := range map[string]func(){"exit": func() { os.Exit(3) }, "hog": hog, "panic": func() { panic("as it was told") }} {
		node.Handle(n, class, func(ctx context.Context, in work) (history.Result, error) {
			t := node.TaskFrom(ctx)
			result, err := handle(ctx, log, t.ID, t.Attempt, in)
			if err == nil {
				harm()
			}
			return result, err
		})
	}
	return n.RunUntilSignal(context.Background())
}

// work is what a task asks for.
type work struct {
	Ms    int64  `json:"ms"`
	Again *int64 `json:"again"` // how long attempts after the first one run; absent = as long
}

// handle runs for as long as asked, or until its context ends.
func handle(ctx context.Context, log *history.Log, id string, attempt int64, in work) (history.Result, error) {
	line := history.Line{Event: history.Started, Task: id, Attempt: attempt}
	if err := log.Write(line); err != nil {
		return history.Result{}, err
	}
	if attempt > 1 && in.Again != nil {
		in.Ms = *in.Again
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
	return history.Result{Attempt: attempt, PID: os.Getpid()}, nil
}

// stepTime is how long a step takes.
const stepTime = 20 * time.Millisecond

// steps runs for as long as asked, in steps, between which it rests while it is paused and looks for new attachments.
func steps(ctx context.Context, log *history.Log, in work) (history.Result, error) {
	t := node.TaskFrom(ctx)
	line := history.Line{Event: history.Started, Task: t.ID, Attempt: t.Attempt}
	if err := log.Write(line); err != nil {
		return history.Result{}, err
	}
	tick := time.NewTicker(stepTime)
	defer tick.Stop()
	line.Event = history.Finished
	for done := time.Duration(0); done < time.Duration(in.Ms)*time.Millisecond; done += stepTime {
		select {
		case <-tick.C:
		case raw := <-t.Updates():
			if err := json.Unmarshal(raw, &in); err != nil {
				return history.Result{}, err
			}
		case <-ctx.Done():
		}
		if err := t.WaitWhilePaused(ctx); err != nil {
			line.Event, line.Cause = history.Stopped, err.Error()
			break
		}
	}
	if err := log.Write(line); err != nil {
		return history.Result{}, err
	}
	if line.Event == history.Stopped {
		return history.Result{}, errors.New("stopped: " + line.Cause)
	}
	return history.Result{Attempt: t.Attempt, PID: os.Getpid()}, nil
}

// order is what a child process is to do.
type order struct {
	work

	Task    string `json:"task"`
	Attempt int64  `json:"attempt"`
}

// inChild has a process of its own do the work, which says the result.
func inChild(ctx context.Context, command func(context.Context, string, ...string) *exec.Cmd, in work) (history.Result, error) {
	t := node.TaskFrom(ctx)
	text, err := json.Marshal(order{in, t.ID, t.Attempt})
	if err != nil {
		return history.Result{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return history.Result{}, err
	}
	said, err := command(ctx, self, string(text)).Output()
	if err != nil {
		return history.Result{}, err
	}
	var result history.Result
	err = json.Unmarshal(said, &result)
	return result, err
}

// child is the life of such a process.
func child(log *history.Log, text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	result, err := handle(context.Background(), log, o.Task, o.Attempt, o.work)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

// maxGrowth is how much more address space a process may take once it is a hog: the machine is not to suffer with it.
const maxGrowth = 256 << 20

// hog takes memory until there is none.
func hog() {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		panic(err)
	}
	var pages uint64
	if _, err := fmt.Sscan(string(text), &pages); err != nil {
		panic(err)
	}
	limit := pages*uint64(os.Getpagesize()) + maxGrowth
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		panic(err)
	}
	for taken := [][]byte{}; ; {
		taken = append(taken, make([]byte, 8<<20))
	}
}
