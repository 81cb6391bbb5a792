package chaos_test

import (
	"sync/atomic"
	"time"
)

const (
	turnEvery = 20 * time.Millisecond
	// turnLimit is how late a process may get its turn on a machine that has time for what runs on it. A heartbeat that
	// the leader confirms needs about ten turns of four processes, and has little more than a second.
	turnLimit = 100 * time.Millisecond
)

// turns watches how late this process gets its turn, which tells how late those do that it has started.
type turns struct{ latest atomic.Int64 }

// watch goes on until the channel is closed.
func (t *turns) watch(over <-chan struct{}) {
	tick := time.NewTicker(turnEvery)
	defer tick.Stop()
	for last := time.Now(); ; {
		select {
		case <-tick.C:
		case <-over:
			return
		}
		late := time.Since(last) - turnEvery
		last = time.Now()
		if int64(late) > t.latest.Load() {
			t.latest.Store(int64(late))
		}
	}
}

// begin forgets what was.
func (t *turns) begin() { t.latest.Store(0) }

// latestTurn is how late a turn came at most since begin.
func (t *turns) latestTurn() time.Duration { return time.Duration(t.latest.Load()) }
