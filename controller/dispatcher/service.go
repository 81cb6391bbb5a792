package dispatcher

import (
	"context"
	"errors"
	"time"
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

// Run makes rounds until the context ends: at every signal, at every interval, and back to back while there is work and room. A moment in
// which the lease cannot be trusted ends no more than a round: a late answer may renew it.
func (d *Dispatcher) Run(ctx context.Context, wake Wake, interval time.Duration) {
	timer := d.clock.NewTimer(0) // the first round looks at everything
	defer timer.Stop()
	pause, look := time.Duration(0), false // the pause grows until something is placed: a round without work shows nothing
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
			look = true
		case <-wake:
		}
		failed := false
		for more := true; more && ctx.Err() == nil; {
			out, err := d.Round(ctx, look)
			look = false
			more = out.More && err == nil && out.Failed == 0
			failed = err != nil || out.Failed > 0
			if !failed {
				if out.Placed > 0 {
					pause = 0
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
			wake.Signal()
		}
		timer.Reset(interval)
	}
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
