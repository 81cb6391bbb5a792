// Package election decides which controller leads. The leader's document in the store is the authority. Local time
// only bounds how long a leader trusts it.
//
//	            the counter has not changed for LEADER_LEASE, or nobody leads: swap, with a higher term
//	follower  --------------------------------------------------------------------->  leader
//	   ^                                                                                 |
//	   |   a renewal is refused, or none is acknowledged before the trust ends           | every LEADER_LEASE/4:
//	   +---------------------------------------------------------------------------------+ swap, with counter+1
//
// A leader's trust ends three quarters of LEADER_LEASE after it SENT the last acknowledged renewal. A contender waits
// for the whole of LEADER_LEASE, from the end of the read that first showed the counter. If the clocks drift apart by
// less than 10 %, an old leader has stopped before a new one begins. Should two lead nevertheless, each of their writes
// is a compare-and-set, and nodes refuse the lower term.
//
// A new term is higher than the document's and than any that this process has read, and at least the time in seconds
// since the epoch. So it is higher than what nodes know even if the store has lost the document or restored an older
// one. No wait depends on the wall clock.
package election

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/store"
)

// Config describes a contender.
type Config struct {
	ID      string        // run id of this controller process
	Address string        // where its API listens
	Mode    string        // its SYSTEM_CONTROLLER_MODE
	Over    []string      // modes of leaders that it replaces at once
	Lease   time.Duration // LEADER_LEASE
}

// Interval is the time between two rounds.
func (c Config) Interval() time.Duration { return c.Lease / 4 }

// Elector is one contender in the election.
type Elector struct {
	cfg   Config
	store store.Leases
	clock clock.Clock

	seen   store.Leader  // the document as last read
	seenAt time.Duration // end of the first read that returned seen
	read   bool          // seen is set
	term   int64         // the highest term read so far

	mu      sync.Mutex
	lease   *Lease       // nil = follower
	present store.Leader // copy of seen, for other goroutines
}

// New returns a contender.
func New(cfg Config, s store.Leases, c clock.Clock) *Elector {
	return &Elector{cfg: cfg, store: s, clock: c}
}

// Lease is one leadership. Once it has ended it stays ended; a new leadership has a higher term. It is safe for
// concurrent use.
type Lease struct {
	clock  clock.Clock
	holder string
	term   int64

	mu    sync.Mutex
	until time.Duration
	over  bool
}

// Term returns the leadership's term.
func (l *Lease) Term() int64 { return l.term }

// Wrote reports whether this leadership wrote the document.
func (l *Lease) Wrote(doc store.Leader) bool { return doc.Holder == l.holder && doc.Term == l.term }

// Remaining returns how long the leadership may be trusted without another renewal. It is zero or less when the
// leadership is over.
func (l *Lease) Remaining() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return 0
	}
	return l.until - l.clock.Boot()
}

// Valid reports whether the leadership may be trusted.
func (l *Lease) Valid() bool { return l.Remaining() > 0 }

func (l *Lease) extend(until time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = max(l.until, until)
}

func (l *Lease) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
}

// Present returns the leader's document as this controller last read it, and its own leadership, which is nil while it
// follows. It is safe for concurrent use.
func (e *Elector) Present() (store.Leader, *Lease) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.present, e.lease
}

// Round renews the leadership, or takes it over if it is free. It returns this controller's leadership, which is nil
// while it follows.
func (e *Elector) Round(ctx context.Context) (*Lease, error) {
	err := e.round(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lease != nil && !e.lease.Valid() {
		e.lease.end()
		e.lease = nil
	}
	e.present = e.seen
	return e.lease, err
}

func (e *Elector) round(ctx context.Context) error {
	if lease := e.held(); lease != nil && lease.Valid() {
		sent := e.clock.Boot()
		next := e.seen
		next.Counter++
		ok, err := e.store.SwapLeader(ctx, e.seen, next)
		if err != nil {
			// The outcome is unknown, so read the document.
			return e.reread(ctx, lease, err)
		}
		if ok {
			e.remember(next)
			lease.extend(sent + e.trust())
			return nil
		}
		return e.reread(ctx, lease, nil)
	}
	if err := e.readDocument(ctx); err != nil {
		return err
	}
	if !e.free() {
		return nil
	}
	sent := e.clock.Boot()
	next := store.Leader{Holder: e.cfg.ID, Address: e.cfg.Address, Mode: e.cfg.Mode,
		Term: max(e.term+1, e.clock.Now().Unix()), Counter: e.seen.Counter + 1}
	ok, err := e.store.SwapLeader(ctx, e.seen, next)
	if err != nil || !ok {
		return err
	}
	e.remember(next)
	lease := &Lease{clock: e.clock, holder: next.Holder, term: next.Term, until: sent + e.trust()}
	e.mu.Lock()
	e.lease = lease
	e.mu.Unlock()
	return nil
}

// reread finds out whether the document is still this leadership's, after a renewal that did not succeed.
func (e *Elector) reread(ctx context.Context, lease *Lease, cause error) error {
	if err := e.readDocument(ctx); err != nil {
		if cause != nil {
			return cause
		}
		return err
	}
	if !lease.Wrote(e.seen) {
		lease.end()
	}
	return cause
}

// readDocument reads the document and remembers it.
func (e *Elector) readDocument(ctx context.Context) error {
	doc, err := e.store.Leader(ctx)
	if err != nil {
		return err
	}
	e.remember(doc)
	return nil
}

func (e *Elector) remember(doc store.Leader) {
	if !e.read || doc != e.seen {
		e.seen, e.seenAt, e.read = doc, e.clock.Boot(), true
		e.term = max(e.term, doc.Term)
	}
}

// free reports whether this controller may take the leadership: nobody holds it, it is this process's own from a
// leadership that is over, its holder has a mode that yields to this one, or its counter has not changed for the lease.
func (e *Elector) free() bool {
	if e.seen.Holder == "" || e.seen.Holder == e.cfg.ID {
		return true
	}
	if slices.Contains(e.cfg.Over, e.seen.Mode) {
		return true
	}
	return e.clock.Boot()-e.seenAt > e.cfg.Lease
}

func (e *Elector) trust() time.Duration { return e.cfg.Lease * 3 / 4 }

func (e *Elector) held() *Lease {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lease
}

// Release gives up the leadership, so that another controller takes over at once. Everything that this controller does
// as the leader must have ended before.
func (e *Elector) Release(ctx context.Context) error {
	lease := e.held()
	if lease == nil {
		return nil
	}
	lease.end()
	e.mu.Lock()
	e.lease = nil
	e.mu.Unlock()
	_, err := e.store.SwapLeader(ctx, e.seen, store.Leader{Term: e.seen.Term, Counter: e.seen.Counter + 1})
	return err
}
