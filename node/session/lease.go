package session

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/loop"
)

// phase is how far a session has come.
type phase uint8

const (
	joining phase = iota // not known to be registered: claims are taken in, nothing is started
	live                 // claims are taken in and started
	over                 // lost or closed: nothing is taken in or started, and no end is recorded any more
)

// lease is for how long a session may trust that nobody has given its work away. The core's lock guards it; until, left
// and isLost may be read without.
type lease struct {
	clock clock.Clock
	term  time.Duration    // how long a confirmed heartbeat counts from its sending
	onEnd func(why string) // ends all work

	phase phase
	until atomic.Int64 // boot time; 0 = no heartbeat was ever confirmed
	lost  loop.Wake    // closed when a live session loses its lease
}

// left returns how long the lease holds from now on; it is not positive if that is over.
func (l *lease) left() time.Duration { return time.Duration(l.until.Load()) - l.clock.Boot() }

// holds reports whether the session is live and its lease holds. One that has run out ends all work now. Timers stand
// still while the machine is suspended, so every start, report and heartbeat asks.
func (l *lease) holds() bool {
	switch {
	case l.phase != live:
		return false
	case l.left() > 0:
		return true
	}
	l.lose("no heartbeat was confirmed in time")
	return false
}

// isOpen reports whether claims are taken in. They are also while the session joins: the leader may have seen the
// registration before its answer reached the node.
func (l *lease) isOpen() bool { return l.phase == joining || l.holds() }

// confirm extends the lease by a heartbeat that was sent at this boot time. A lease that has ended stays ended, however
// new the heartbeat: the work may have been reassigned.
func (l *lease) confirm(sent time.Duration) {
	if l.phase == joining || l.holds() {
		l.until.Store(max(l.until.Load(), int64(sent+l.term)))
	}
}

// begin opens the session for work. It reports false if the leader has fenced it already.
func (l *lease) begin() bool {
	if l.phase != joining {
		return false
	}
	l.phase = live
	return true
}

// lose ends the work of a live session.
func (l *lease) lose(why string) {
	if l.phase == live {
		l.phase = over
		l.onEnd(why)
		close(l.lost)
	}
}

// fence obeys the leader, which reassigns this incarnation's work. It also ends a session that is still joining.
func (l *lease) fence() {
	l.lose("the leader has reassigned the work of this incarnation")
	l.phase = over
}

// isLost reports whether a live session has lost its lease.
func (l *lease) isLost() bool { return l.lost.Take() }

// confirm is lease.confirm with the lock.
func (c *core) confirm(sent time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lease.confirm(sent)
}

// lose is lease.lose with the lock.
func (c *core) lose(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lease.lose(why)
}

// leaseLoop ends all work when the lease runs out.
func (c *core) leaseLoop() loop.Loop {
	return loop.Loop{Name: "lease", Wakes: []loop.Wake{c.lease.lost}, Step: func(context.Context, loop.Wake) (loop.Next, error) {
		if !c.isTrusted() {
			return loop.Done(), nil
		}
		return loop.After(c.lease.left()), nil
	}}
}
