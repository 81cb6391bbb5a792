package loop

import (
	"context"
	"time"

	"github.com/skalds-go/skalds/pkg/clock"
)

// Driver is how code waits and runs side by side: [System] in a process, a scheduler of virtual time in the simulation.
type Driver interface {
	// Boot returns the time of the clock that waits are measured by.
	Boot() time.Duration
	// Go runs f concurrently with its caller. Name identifies it in the simulation.
	Go(name string, f func())
	// Wait returns when the context has ended, a wake has fired, or d has passed; a d below zero never passes. It
	// returns the wake that fired, and nil in the other cases. A closed channel serves as a wake that always fires.
	// There are at most [MaxWakes].
	Wait(ctx context.Context, d time.Duration, wakes ...Wake) Wake
}

// Forever is a duration for [Driver.Wait] that never passes.
const Forever time.Duration = -1

// Sleep waits for d. It reports false if the context ended before.
func Sleep(ctx context.Context, driver Driver, d time.Duration) bool {
	driver.Wait(ctx, max(d, 0))
	return ctx.Err() == nil
}

// System is the driver of a real process: goroutines, and the timers of a clock.
type System struct {
	Clock clock.Clock
}

var _ Driver = System{}

// Boot implements [Driver].
func (s System) Boot() time.Duration { return s.Clock.Boot() }

// Go implements [Driver].
func (System) Go(_ string, f func()) { go f() }

// Wait implements [Driver].
func (s System) Wait(ctx context.Context, d time.Duration, wakes ...Wake) Wake {
	var w [MaxWakes]Wake // nil channels never fire
	if copy(w[:], wakes) < len(wakes) {
		panic("loop: too many wakes")
	}
	var over <-chan time.Time
	if d >= 0 {
		timer := s.Clock.NewTimer(d)
		defer timer.Stop()
		over = timer.C()
	}
	select {
	case <-ctx.Done():
		return nil
	case <-over:
		return nil
	case <-w[0]:
		return w[0]
	case <-w[1]:
		return w[1]
	case <-w[2]:
		return w[2]
	}
}
