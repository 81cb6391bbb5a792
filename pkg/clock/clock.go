// Package clock is the only source of time for loops, so that tests and the simulation can control it.
//
// Invariants:
//
//   - Only Boot decides about leases and liveness. It never goes back, nobody can set it, and it goes on while the
//     machine is suspended (see [System] for the systems where it does not).
//   - Now is the wall clock. It may jump in either direction and is only for documents and logs.
//   - A timer may fire late, since timers stand still while the machine is suspended. So a loop that guards a lease
//     never trusts a timer for the time. It asks Boot, at least as often as it may be late.
package clock

import "time"

// Clock tells the time and wakes loops.
type Clock interface {
	// Now is the wall clock's time.
	Now() time.Time
	// Boot is the time since some moment before the process began. Only differences mean anything, and only on this
	// machine.
	Boot() time.Duration
	// NewTimer returns a timer that fires once, after d. If d is zero or less, it fires at once.
	NewTimer(d time.Duration) Timer
}

// Timer is a time.Timer behind a method.
type Timer interface {
	// C receives the time of firing. It holds at most one.
	C() <-chan time.Time
	// Stop disarms the timer and reports whether it was armed. Nothing is received from C afterwards.
	Stop() bool
	// Reset arms the timer again and reports whether it was armed. Nothing of an earlier arming is received from C
	// afterwards.
	Reset(d time.Duration) bool
}

// System is the machine's clock. On Linux its Boot is CLOCK_BOOTTIME. Other systems use Go's monotonic clock, which on
// some of them (macOS) stands still while the machine is suspended: a node trusts itself for longer there than it
// should.
type System struct{}

var _ Clock = System{}

// Now implements [Clock].
func (System) Now() time.Time { return time.Now() }

// Boot implements [Clock].
func (System) Boot() time.Duration { return boot() }

// NewTimer implements [Clock].
func (System) NewTimer(d time.Duration) Timer { return systemTimer{time.NewTimer(d)} }

type systemTimer struct{ t *time.Timer }

func (s systemTimer) C() <-chan time.Time        { return s.t.C }
func (s systemTimer) Stop() bool                 { return s.t.Stop() }
func (s systemTimer) Reset(d time.Duration) bool { return s.t.Reset(d) }
