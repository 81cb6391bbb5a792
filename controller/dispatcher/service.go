package dispatcher

import (
	"context"
	"errors"
	"time"

	"github.com/skalds-go/skalds/pkg/clock"
)

// Pauses after rounds that failed; the pause doubles from the first to the last.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// Wake is a signal that there may be something to do. Signals that nobody waits for fold into one.
type Wake chan struct{}

// NewWake makes one.
func NewWake() Wake { return make(Wake, 1) }

// Signal wakes whoever waits, now or next.
func (w Wake) Signal() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// Wakes are what a dispatcher waits for beside time.
type Wakes struct {
	Stored Wake // tasks may wait that did not before
	Room   Wake // nodes may have room, or limits let more run
}

// Run makes rounds until the context ends: at every signal, at every interval, when a token comes that tasks wait for, and back to back
// while there is more to look at. A moment in which the lease cannot be trusted ends no more than a round: a late answer may renew it.
func (d *Dispatcher) Run(ctx context.Context, wakes Wakes, interval time.Duration) {
	timer := d.clock.NewTimer(0) // the first round looks at everything
	defer timer.Stop()
	defer d.metrics.throttled(0, 0) // another leader's by then
	pause := time.Duration(0)       // it grows until something is placed: a round without work shows nothing
	due := d.clock.Boot()           // when to look for queues although nobody has said that there are new ones
	for {
		list := false
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
		case <-wakes.Stored:
			list = true
		case <-wakes.Room:
		}
		failed, next := false, time.Duration(0)
		for more := true; more && ctx.Err() == nil; {
			if now := d.clock.Boot(); now >= due {
				list, due = true, now+interval
			}
			out, err := d.Round(ctx, list)
			list = false
			more = out.More && err == nil && out.Failed == 0
			failed, next = err != nil || out.Failed > 0, out.Next
			if !failed {
				if out.Placed > 0 {
					pause = 0
				}
				if !d.breathe(ctx, timer) {
					return
				}
				continue
			}
			if err != nil && ctx.Err() == nil && !errors.Is(err, ErrNotLeading) {
				d.log.Warn("a dispatch round failed; it will be tried again", "error", err)
			}
			pause = min(max(2*pause, firstPause), lastPause)
		}
		if failed {
			timer.Reset(pause)
			if !d.rest(ctx, timer.C()) {
				return
			}
			wakes.Stored.Signal()
		}
		wait := max(due-d.clock.Boot(), 0)
		if next > 0 {
			wait = min(wait, next)
		}
		timer.Reset(wait)
	}
}

// breathe waits a little while many tasks are sent and not started.
func (d *Dispatcher) breathe(ctx context.Context, timer clock.Timer) bool {
	step := d.throttle()
	if step == 0 {
		return true
	}
	timer.Reset(breaths[step-1])
	return d.rest(ctx, timer.C())
}

// rest waits for the timer, not for signals, so that a dependency that is down is not asked again and again.
func (d *Dispatcher) rest(ctx context.Context, c <-chan time.Time) bool {
	select {
	case <-ctx.Done():
		return false
	case <-c:
		return true
	}
}
