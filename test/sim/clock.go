package main

import (
	"time"

	"github.com/skalds-go/skalds/pkg/clock"
)

// processClock is the clock of one process: it runs a little fast or slow, and goes on while the process is frozen.
type processClock struct {
	world  *world
	speed  int64 // millionths of the true speed
	offset time.Duration
}

var _ clock.Clock = (*processClock)(nil)

const million = 1_000_000

// Clocks that drift apart by just less than 10 %.
const (
	slowest = 953_500
	fastest = 1_048_500
)

// epoch is the wall time at which a simulation begins.
const epoch = 1_796_000_000_000

// Boot implements [clock.Clock].
func (c *processClock) Boot() time.Duration {
	return c.offset + scale(time.Duration(c.world.told.Load()), c.speed, million)
}

// Now implements [clock.Clock].
func (c *processClock) Now() time.Time { return time.UnixMilli(epoch).Add(c.Boot() - c.offset) }

// NewTimer implements [clock.Clock]. Rounds do not wait; whoever calls them does.
func (c *processClock) NewTimer(time.Duration) clock.Timer {
	panic("a round waits for a timer: in the simulation only its caller may wait")
}

// at is the true time at which Boot is boot, or a nanosecond later.
func (c *processClock) at(boot time.Duration) time.Duration {
	return scale(boot-c.offset, million, c.speed) + 1
}

// scale is d*up/down, for times of hours.
func scale(d time.Duration, up, down int64) time.Duration {
	whole, rest := int64(d)/down, int64(d)%down
	return time.Duration(whole*up + rest*up/down)
}

// trueClock is the time of services.
type trueClock struct{ world *world }

// Boot is the true time.
func (c trueClock) Boot() time.Duration { return c.world.now }
