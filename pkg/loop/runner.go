package loop

import (
	"context"
	"errors"
	"log/slog"
)

// Runner runs loops.
type Runner struct {
	Driver Driver
	Log    *slog.Logger
	// Jitter returns a number in [0, 1) for each pause after a failure.
	Jitter func() float64
}

// Run runs a loop until the context ends or the loop is done.
func (r Runner) Run(ctx context.Context, l Loop) {
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
			if !next.done {
				next = Rest(l.Backoff.Pause(failures, r.Jitter()))
			}
			if !said && !errors.Is(err, ErrSilent) && l.Failure != "" {
				said = true
				r.log(ctx, &l, slog.LevelWarn, l.Failure, "error", err)
			}
		}
	}
}

func (r Runner) wait(ctx context.Context, l *Loop, next Next) Wake {
	switch {
	case next == Next{} && ctx.Err() == nil: // back to back: whoever fired meanwhile is found by the next wait
		return nil
	case next.deaf:
		return r.Driver.Wait(ctx, next.after)
	default:
		return r.Driver.Wait(ctx, next.after, l.Wakes...)
	}
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
	r.Log.Log(ctx, level, message, args...)
}

// ErrSilent marks a failure that is not logged: the loop only pauses. See [Silent].
var ErrSilent = errors.New("not logged")

// Silent returns err as a failure that the runner does not log, as one that was logged already or that is expected.
func Silent(err error) error { return errors.Join(ErrSilent, err) }
