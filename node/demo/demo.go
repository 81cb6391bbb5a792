// Package demo has the task classes that `skalds dev` and `skalds node` know, for a first try, for tests and for
// `skalds bench`.
//
//	demo.echo      any JSON                             returns its attachments
//	demo.sleep     {"ms": 1000}                         sleeps; returns {"sleptMs": …}
//	demo.fail      {"message": "…"}                     fails with the message
//	demo.progress  {"steps": 10, "ms": 100}             reports progress after each step; can be paused and updated between steps
//	demo.clock     anything                             returns {"startedUs": …}: epoch microseconds when the handler began
//
// The attachments above are the defaults. demo.clock is for measuring: its result minus the time of the submit, by the
// clock of one machine, is how long a task waited to be started.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/skalds-go/skalds/node"
)

// The classes.
const (
	ClassEcho     = "demo.echo"
	ClassSleep    = "demo.sleep"
	ClassFail     = "demo.fail"
	ClassProgress = "demo.progress"
	ClassClock    = "demo.clock"
)

// Limits of what the classes take.
const (
	maxSteps = 10_000
	maxMs    = 24 * 60 * 60 * 1000
)

// Register has n run the demo classes. It panics where [node.Handle] does.
func Register(n *node.Node) {
	node.Handle(n, ClassEcho, echo)
	node.Handle(n, ClassSleep, sleep)
	node.Handle(n, ClassFail, fail)
	node.Handle(n, ClassProgress, progress)
	node.Handle(n, ClassClock, clock)
}

func echo(_ context.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil }

// Sleep is what demo.sleep takes.
type Sleep struct {
	Ms *int64 `json:"ms,omitempty"` // nil = 1000
}

// Slept is what demo.sleep returns.
type Slept struct {
	SleptMs int64 `json:"sleptMs"`
}

func sleep(ctx context.Context, in Sleep) (Slept, error) {
	ms, err := bounded("ms", in.Ms, 1000, maxMs)
	if err != nil {
		return Slept{}, err
	}
	began := time.Now()
	if err := pause(ctx, ms); err != nil {
		return Slept{}, fmt.Errorf("woken after %d of %d ms: %w", time.Since(began).Milliseconds(), ms, err)
	}
	return Slept{SleptMs: time.Since(began).Milliseconds()}, nil
}

// Fail is what demo.fail takes.
type Fail struct {
	Message string `json:"message,omitempty"` // empty = "failed as asked"
}

func fail(_ context.Context, in Fail) (any, error) {
	if in.Message == "" {
		in.Message = "failed as asked"
	}
	return nil, errors.New(in.Message)
}

// Progress is what demo.progress takes.
type Progress struct {
	Steps *int64 `json:"steps,omitempty"` // nil = 10
	Ms    *int64 `json:"ms,omitempty"`    // of each step; nil = 100
}

// Progressed is what demo.progress returns.
type Progressed struct {
	Steps int64 `json:"steps"`
}

// limits returns the numbers in force.
func (p Progress) limits() (steps, ms int64, err error) {
	if steps, err = bounded("steps", p.Steps, 10, maxSteps); err != nil {
		return 0, 0, err
	}
	ms, err = bounded("ms", p.Ms, 100, maxMs)
	return steps, ms, err
}

func progress(ctx context.Context, in Progress) (Progressed, error) {
	steps, ms, err := in.limits()
	if err != nil {
		return Progressed{}, err
	}
	t := node.TaskFrom(ctx)
	done := int64(0)
	for done < steps {
		if err := t.WaitWhilePaused(ctx); err != nil {
			return Progressed{Steps: done}, fmt.Errorf("stopped: %w", err)
		}
		if err := pause(ctx, ms); err != nil {
			return Progressed{Steps: done}, err
		}
		select {
		case raw := <-t.Updates():
			var next Progress
			if err := json.Unmarshal(raw, &next); err != nil {
				return Progressed{Steps: done}, fmt.Errorf("new attachments: %w", err)
			}
			if steps, ms, err = next.limits(); err != nil {
				return Progressed{Steps: done}, err
			}
		default:
		}
		done++
		t.Progress(min(100, 100*float64(done)/float64(max(1, steps))), fmt.Sprintf("step %d of %d", done, steps))
	}
	return Progressed{Steps: done}, nil
}

// Clock is what demo.clock returns.
type Clock struct {
	StartedUs int64 `json:"startedUs"` // epoch microseconds
}

func clock(context.Context, json.RawMessage) (Clock, error) {
	return Clock{StartedUs: time.Now().UnixMicro()}, nil
}

// bounded returns the number that was requested, or the default.
func bounded(name string, asked *int64, byDefault, most int64) (int64, error) {
	if asked == nil {
		return byDefault, nil
	}
	if *asked < 0 || *asked > most {
		return 0, fmt.Errorf("%s is %d, want 0 to %d", name, *asked, most)
	}
	return *asked, nil
}

// pause sleeps for ms, or until ctx ends; then it returns the cause.
func pause(ctx context.Context, ms int64) error {
	timer := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stopped: %w", context.Cause(ctx))
	}
}
