// Package clock is the one home of time for loops, so that tests and the simulation can turn it.
//
// Invariants:
//
//   - Leases and liveness are decided by Boot alone. It never goes back, no one can set it, and it goes on while the machine is
//     suspended (see [System] for the systems where it does not).
//   - Now is the wall clock. It may jump in either direction and is for documents and logs only.
//   - A timer may fire late, since timers stand still in suspend. A loop that guards a lease therefore never takes the firing of a
//     timer as proof of the time: it asks Boot, and asks at least as often as it may be late.
package clock

import "time"

// Clock tells the time and wakes loops.
type Clock interface {
	// Now is the wall clock's time.
	Now() time.Time
	// Boot is the time since an unnamed moment before the process began; only differences mean anything, and only on this machine.
	Boot() time.Duration
	// NewTimer makes a timer that fires once, in d. A d of zero or less fires at once.
	NewTimer(d time.Duration) Timer
}

// Timer is a time.Timer behind a method.
type Timer interface {
	// C receives the time of firing; it holds at most one.
	C() <-chan time.Time
	// Stop disarms the timer and reports whether it was armed. Nothing is received from C afterwards.
	Stop() bool
	// Reset arms the timer anew and reports whether it was armed. Nothing of an earlier arming is received from C afterwards.
	Reset(d time.Duration) bool
}

// System is the machine's clock. Its Boot is CLOCK_BOOTTIME on Linux. Other systems have Go's monotonic clock instead, which on
// some of them (macOS) stands still in suspend: there a node that was suspended trusts itself for longer than it should.
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
