package monitor

import (
	"context"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/pkg/loop"
)

const (
	// firstPause is the pause before the next round when one waits for ingest. It doubles, up to the interval.
	firstPause = 20 * time.Millisecond
	// desiredGap is the least time between two reads of desired states.
	desiredGap = 10 * time.Millisecond
)

// runner is the state of a monitor's loop.
type runner struct {
	*Monitor
	desired  loop.Wake
	interval time.Duration
	pause    time.Duration // before the next round that waits for ingest
	due      time.Duration // when the next round is due
}

// Loop returns the loop that runs rounds: at every interval, and at once when nodes joined or left. The wake desired
// makes it look only at desired states.
func (m *Monitor) Loop(membership, desired loop.Wake, interval time.Duration) loop.Loop {
	r := &runner{Monitor: m, desired: desired, interval: interval, pause: firstPause}
	return loop.Loop{
		Name:    "monitor",
		Wakes:   []loop.Wake{membership, desired},
		Step:    r.step,
		Failure: "a round of the monitor failed; it will be tried again",
	}
}

func (r *runner) step(ctx context.Context, by loop.Wake) (loop.Next, error) {
	if by != nil && by == r.desired {
		err := r.Desired(ctx) // that it succeeds does not show that rounds do
		return loop.After(r.due - r.clock.Boot()).RestFirst(desiredGap).KeepBackoff().Regardless(), err
	}
	soon, err := r.Round(ctx)
	wait := r.interval
	if soon && err == nil {
		wait = min(r.pause, r.interval)
		r.pause = min(2*r.pause, r.interval)
	} else {
		r.pause = firstPause
	}
	r.due = r.clock.Boot() + wait
	// A dependency that is down fails each round. Wakes count all the same: a round needs several dependencies.
	return loop.After(wait).Regardless(), err
}

// recallGap is the least time between two recalls, recallEvery the time between them while nobody asks for one.
const (
	recallGap   = 20 * time.Millisecond
	recallEvery = 500 * time.Millisecond
)

// RecallLoop returns the loop that recalls the claims that recallable lists, until nodes have released them or reported
// that they began.
func (m *Monitor) RecallLoop(now loop.Wake, recallable func() []fleet.Claim) loop.Loop {
	return loop.Loop{
		Name:    "recall",
		Wakes:   []loop.Wake{now},
		First:   loop.After(recallEvery),
		Backoff: loop.Backoff{First: recallEvery, Max: recallEvery},
		Failure: "what is paused and has not begun was not recalled; it will be tried again",
		Step: func(ctx context.Context, _ loop.Wake) (loop.Next, error) {
			next := loop.After(recallEvery)
			claims := recallable()
			if len(claims) == 0 {
				return next, nil
			}
			return next.RestFirst(recallGap), m.Recall(ctx, claims)
		},
	}
}
