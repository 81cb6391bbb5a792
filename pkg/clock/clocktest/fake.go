// Package clocktest has a clock that a test moves by hand.
//
// Invariants: time moves only in Advance, Suspend and StepWall; timers fire only in Advance (and at once when armed for
// now or earlier), the earliest first, those of one moment in the order in which they were armed.
package clocktest

import (
	"slices"
	"sync"
	"time"

	"github.com/skalds-go/skalds/pkg/clock"
)

// Fake is a clock that stands still until a test moves it. It is safe for concurrent use.
type Fake struct {
	mu      sync.Mutex
	changed *sync.Cond // the number of armed timers went up
	wall    time.Time
	boot    time.Duration
	awake   time.Duration // boot without the suspends: what timers run by
	armed   []*timer      // by deadline, then by arming
}

var _ clock.Clock = (*Fake)(nil)

// New makes a clock that shows the wall time given; its Boot begins at one hour, so that nothing rests on zero.
func New(wall time.Time) *Fake {
	f := &Fake{wall: wall, boot: time.Hour, awake: time.Hour}
	f.changed = sync.NewCond(&f.mu)
	return f
}

// Now implements [clock.Clock].
func (f *Fake) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wall
}

// Boot implements [clock.Clock].
func (f *Fake) Boot() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.boot
}

// NewTimer implements [clock.Clock].
func (f *Fake) NewTimer(d time.Duration) clock.Timer {
	t := &timer{clock: f, c: make(chan time.Time, 1)}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.arm(t, d)
	return t
}

// Advance moves all time on by d and fires the timers that come due. Goroutines that they wake see the time after the
// whole step.
func (f *Fake) Advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pass(d)
	f.awake += d
	n := 0
	for n < len(f.armed) && f.armed[n].deadline <= f.awake {
		f.armed[n].c <- f.wall // has room: an armed timer's channel is empty
		n++
	}
	f.armed = slices.Delete(f.armed, 0, n)
}

// Suspend moves Now and Boot on by d, as a machine does while it sleeps: no timer comes nearer to its firing.
func (f *Fake) Suspend(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pass(d)
}

// StepWall sets the wall clock by d, in either direction. Nothing else changes.
func (f *Fake) StepWall(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wall = f.wall.Add(d)
}

// BlockUntil waits until at least n timers are armed: the loops under test have gone to sleep.
func (f *Fake) BlockUntil(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.armed) < n {
		f.changed.Wait()
	}
}

func (f *Fake) pass(d time.Duration) {
	if d < 0 {
		panic("clocktest: time does not go back; StepWall sets the wall clock")
	}
	f.wall = f.wall.Add(d)
	f.boot += d
}

// arm expects that t is not armed and its channel is empty.
func (f *Fake) arm(t *timer, d time.Duration) {
	if d <= 0 {
		t.c <- f.wall
		return
	}
	t.deadline = f.awake + d
	at, _ := slices.BinarySearchFunc(f.armed, t, func(have, want *timer) int {
		if have.deadline <= want.deadline {
			return -1
		}
		return 1
	})
	f.armed = slices.Insert(f.armed, at, t)
	f.changed.Broadcast()
}

// disarm leaves t neither armed nor fired, and reports whether it was armed.
func (f *Fake) disarm(t *timer) bool {
	select {
	case <-t.c:
	default:
	}
	at := slices.Index(f.armed, t)
	if at < 0 {
		return false
	}
	f.armed = slices.Delete(f.armed, at, at+1)
	return true
}

type timer struct {
	clock    *Fake
	c        chan time.Time
	deadline time.Duration
}

func (t *timer) C() <-chan time.Time { return t.c }

func (t *timer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	return t.clock.disarm(t)
}

func (t *timer) Reset(d time.Duration) bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	was := t.clock.disarm(t)
	t.clock.arm(t, d)
	return was
}
