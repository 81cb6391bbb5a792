package loop

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"

	"github.com/skalds-go/skalds/pkg/clock"
)

// Runner runs loops.
type Runner struct {
	Driver Driver
	Log    *slog.Logger
	// Jitter returns a number in [0, 1) for each pause after a failure.
	Jitter func() float64
	// Watch, if set, sees each loop before it runs, and may put something around its step. It is there for the
	// simulation.
	Watch func(Loop) Loop
}

// NewRunner returns a runner for a real process.
func NewRunner(c clock.Clock, log *slog.Logger) Runner {
	return Runner{Driver: System{Clock: c}, Log: log, Jitter: rand.Float64}
}

// Run runs a loop until the context ends or the loop is done.
func (r Runner) Run(ctx context.Context, l Loop) {
	if r.Watch != nil {
		l = r.Watch(l)
	}
	if l.End != nil {
		defer l.End(ctx)
	}
	failures, said := 0, false
	for next := l.First; !next.done; {
		by := r.wait(ctx, &l, next)
		if ctx.Err() != nil {
			return
		}
		var err error
		next, err = step(ctx, &l, by)
		switch {
		case err == nil && next.keep:
		case err == nil:
			if said && l.Failure != "" {
				r.log(ctx, &l, slog.LevelInfo, "works again", "loop", l.Name, "failures", failures)
			}
			failures, said = 0, false
		case ctx.Err() != nil:
			return
		default:
			failures++
			if !next.done && !next.pace {
				next = Rest(l.Backoff.Pause(failures, r.Jitter()))
			}
			if !said && !errors.Is(err, ErrSilent) && l.Failure != "" {
				said = true
				r.log(ctx, &l, slog.LevelWarn, l.Failure, "error", err)
			}
		}
	}
}

// wait waits as a step has asked. A step that wants to run again at once takes no wake: the next wait finds it.
func (r Runner) wait(ctx context.Context, l *Loop, next Next) Wake {
	if next.rest > 0 {
		r.Driver.Wait(ctx, next.rest)
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case next.look:
		return fired(l.Wakes)
	case next.after == 0:
		return nil
	}
	return r.Driver.Wait(ctx, next.after, l.Wakes...)
}

// fired takes the first wake that has fired; nil if none has.
func fired(wakes []Wake) Wake {
	for _, w := range wakes {
		if w.Take() {
			return w
		}
	}
	return nil
}

func step(ctx context.Context, l *Loop, by Wake) (Next, error) {
	if l.Deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.Deadline)
		defer cancel()
	}
	return l.Step(ctx, by)
}

func (r Runner) log(ctx context.Context, l *Loop, level slog.Level, message string, args ...any) {
	if l.Quiet {
		level = slog.LevelDebug
	}
	r.Log.Log(ctx, level, message, args...) //nolint:sloglint // the message is the loop's, and constant there
}

// ErrSilent marks a failure that is not logged: the loop only pauses. See [Silent].
var ErrSilent = errors.New("not logged")

// Silent returns err as a failure that the runner does not log, as one that was logged already or that is expected.
func Silent(err error) error { return errors.Join(ErrSilent, err) }
