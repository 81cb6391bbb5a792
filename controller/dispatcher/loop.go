package dispatcher

import (
	"context"
	"errors"
	"time"

	"github.com/skalds-go/skalds/pkg/loop"
)

// Wakes are the events that make a dispatcher run a round before its interval has passed.
type Wakes struct {
	Stored   loop.Wake // new tasks may wait
	Capacity loop.Wake // nodes may have free slots, or limits may allow more
}

// runner is the state of a dispatcher's loop.
type runner struct {
	*Dispatcher
	wakes    Wakes
	interval time.Duration
	list     bool          // the next round looks for queues
	due      time.Duration // when to look for queues without a wake
}

// Loop returns the loop that makes rounds: at each wake, at each interval, when tasks get a token, and back to back
// while there is more to look at. While the lease cannot be trusted it makes no round and tries again, since a late
// answer may renew it.
func (d *Dispatcher) Loop(wakes Wakes, interval time.Duration) loop.Loop {
	r := &runner{Dispatcher: d, wakes: wakes, interval: interval, due: d.clock.Boot()}
	return loop.Loop{
		Name:    "dispatcher",
		Wakes:   []loop.Wake{wakes.Stored, wakes.Capacity},
		Step:    r.step,
		Backoff: loop.Backoff{First: loop.DefaultFirst, Max: loop.DefaultMax},
		Failure: "a dispatch round failed; it will be tried again",
		End:     func(context.Context) { d.metrics.setThrottle(0, 0) }, // the next leader counts its own
	}
}

// errUnpublished means that a round could not publish all that it had claimed. The round has logged why.
var errUnpublished = errors.New("some claims were not published")

func (r *runner) step(ctx context.Context, by loop.Wake) (loop.Next, error) {
	r.list = r.list || by != nil && by == r.wakes.Stored
	if now := r.clock.Boot(); now >= r.due {
		r.list, r.due = true, now+r.interval
	}
	out, err := r.Round(ctx, r.list)
	switch r.list = err != nil || out.Failed > 0; {
	case errors.Is(err, ErrNotLeading):
		return loop.Next{}, loop.Silent(err)
	case err != nil:
		return loop.Next{}, err
	case out.Failed > 0:
		return loop.Next{}, loop.Silent(errUnpublished)
	}
	next := loop.Next{}
	if !out.More {
		wait := max(r.due-r.clock.Boot(), 0)
		if out.Next > 0 {
			wait = min(wait, out.Next)
		}
		next = loop.After(wait)
	}
	if step := r.gates.throttle(); step > 0 {
		next = next.RestFirst(pauses[step-1])
	}
	if out.Placed == 0 {
		next = next.KeepBackoff() // a round that publishes nothing does not show that publishing works again
	}
	return next, nil
}
