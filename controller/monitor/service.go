package monitor

import (
	"context"
	"time"
)

const (
	// soonAfter is the pause before the next round when one waits for ingest. It doubles, up to the interval.
	soonAfter = 20 * time.Millisecond
	// wishGap is the least time between two looks at wishes.
	wishGap = 10 * time.Millisecond
)

// Run makes rounds until the context ends: at every interval, at once when nodes joined or left, and a look at the wishes alone when
// there are new ones. An outage is logged once.
func (m *Monitor) Run(ctx context.Context, nodes, wishes <-chan struct{}, interval time.Duration) {
	timer := m.clock.NewTimer(0)
	defer timer.Stop()
	failing, pause := false, soonAfter
	note := func(err error) {
		switch {
		case err == nil && failing:
			m.log.Info("the monitor goes on")
		case err != nil && !failing && ctx.Err() == nil:
			m.log.Warn("a round of the monitor failed; it will be tried again", "error", err)
		}
		failing = err != nil
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
		case <-nodes:
		case <-wishes:
			if err := m.Desired(ctx); err != nil {
				note(err)
			}
			if !m.rest(ctx, wishGap) {
				return
			}
			continue
		}
		soon, err := m.Round(ctx)
		note(err)
		if !soon || err != nil {
			pause = soonAfter
			timer.Reset(interval)
			continue
		}
		timer.Reset(min(pause, interval))
		pause = min(2*pause, interval)
	}
}

func (m *Monitor) rest(ctx context.Context, d time.Duration) bool {
	t := m.clock.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C():
		return true
	}
}
