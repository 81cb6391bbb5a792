// Package election decides which controller leads. The store's one leader document is the authority; local time only bounds trust in it.
//
//	            counter stood still for LEADER_LEASE, or nobody holds it: swap, higher term
//	follower  --------------------------------------------------------------------->  leader
//	   ^                                                                                 |
//	   |   renewal refused, or none acknowledged before the trust ends                   | every LEADER_LEASE/4:
//	   +---------------------------------------------------------------------------------+ swap counter+1
//
// Trust ends three quarters of LEADER_LEASE after the last acknowledged renewal was SENT, while a contender waits the whole of it from
// the end of the read that showed the counter first: with clocks that drift apart by less than 10 %, an old leader has stopped before a
// new one begins. Should two lead nevertheless, every write of theirs is a compare-and-set, and nodes refuse the lower term.
//
// A term is higher than the document's, than any that this process has read, and no lower than the seconds of the epoch. So it is higher
// than what nodes know even where the document is gone, or an older one is back, with the store that held it. No wait goes by that clock.
package election

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/store"
)

// Config names a contender.
type Config struct {
	ID      string        // run id of this controller process
	Address string        // where its API listens
	Mode    string        // its SYSTEM_CONTROLLER_MODE
	Over    []string      // modes of holders from which it takes over at once
	Lease   time.Duration // LEADER_LEASE
}

// Interval is the time between two rounds.
func (c Config) Interval() time.Duration { return c.Lease / 4 }

// Elector is one contender.
type Elector struct {
	cfg   Config
	store store.Leases
	clock clock.Clock

	seen   store.Leader  // the document as read last
	seenAt time.Duration // end of the first read that showed it so
	read   bool          // seen holds
	term   int64         // the highest that was read

	mu      sync.Mutex
	lease   *Lease       // nil = follower
	present store.Leader // as seen, for others to ask
}

// New makes a contender.
func New(cfg Config, s store.Leases, c clock.Clock) *Elector {
	return &Elector{cfg: cfg, store: s, clock: c}
}

// Lease is one leadership. It ends for good; a new one has a higher term.
type Lease struct {
	clock  clock.Clock
	holder string
	term   int64

	mu    sync.Mutex
	until time.Duration
	over  bool
}

// Term is the leadership's term.
func (l *Lease) Term() int64 { return l.term }

// Wrote says whether the document is this leadership's.
func (l *Lease) Wrote(doc store.Leader) bool { return doc.Holder == l.holder && doc.Term == l.term }

// Remaining is how long the leadership may be trusted without another renewal; zero or less when it is over.
func (l *Lease) Remaining() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return 0
	}
	return l.until - l.clock.Boot()
}

// Valid says whether the leadership may be trusted.
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

// Present gives the leader's document as this controller read it last, and its own leadership, nil if it follows.
func (l *Elector) Present() (store.Leader, *Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.present, l.lease
}

// Round renews, or looks whether to take over. It gives the present leadership, nil while it follows.
func (l *Elector) Round(ctx context.Context) (*Lease, error) {
	err := l.round(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lease != nil && !l.lease.Valid() {
		l.lease.end()
		l.lease = nil
	}
	l.present = l.seen
	return l.lease, err
}

func (l *Elector) round(ctx context.Context) error {
	if lease := l.held(); lease != nil && lease.Valid() {
		sent := l.clock.Boot()
		next := l.seen
		next.Counter++
		ok, err := l.store.SwapLeader(ctx, l.seen, next)
		if err != nil {
			// The outcome is unknown: the next round reads what is there.
			return l.reread(ctx, lease, err)
		}
		if ok {
			l.note(next)
			lease.extend(sent + l.trust())
			return nil
		}
		return l.reread(ctx, lease, nil)
	}
	if err := l.look(ctx); err != nil {
		return err
	}
	if !l.free() {
		return nil
	}
	sent := l.clock.Boot()
	next := store.Leader{Holder: l.cfg.ID, Address: l.cfg.Address, Mode: l.cfg.Mode, Term: max(l.term+1, l.clock.Now().Unix()), Counter: l.seen.Counter + 1}
	ok, err := l.store.SwapLeader(ctx, l.seen, next)
	if err != nil || !ok {
		return err
	}
	l.note(next)
	lease := &Lease{clock: l.clock, holder: next.Holder, term: next.Term, until: sent + l.trust()}
	l.mu.Lock()
	l.lease = lease
	l.mu.Unlock()
	return nil
}

// reread finds out after a renewal without a yes whether the document is still this leadership's.
func (l *Elector) reread(ctx context.Context, lease *Lease, cause error) error {
	if err := l.look(ctx); err != nil {
		if cause != nil {
			return cause
		}
		return err
	}
	if !lease.Wrote(l.seen) {
		lease.end()
	}
	return cause
}

// look reads the document.
func (l *Elector) look(ctx context.Context) error {
	doc, err := l.store.Leader(ctx)
	if err != nil {
		return err
	}
	l.note(doc)
	return nil
}

func (l *Elector) note(doc store.Leader) {
	if !l.read || doc != l.seen {
		l.seen, l.seenAt, l.read = doc, l.clock.Boot(), true
		l.term = max(l.term, doc.Term)
	}
}

// free says whether the document may be taken: nobody holds it, it is this process's own from a leadership that is over, its holder has
// a mode that gives way, or its counter has stood still for the lease.
func (l *Elector) free() bool {
	if l.seen.Holder == "" || l.seen.Holder == l.cfg.ID {
		return true
	}
	if slices.Contains(l.cfg.Over, l.seen.Mode) {
		return true
	}
	return l.clock.Boot()-l.seenAt > l.cfg.Lease
}

func (l *Elector) trust() time.Duration { return l.cfg.Lease * 3 / 4 }

func (l *Elector) held() *Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lease
}

// Release gives the leadership up, so that another takes over at once. What this controller does as a leader must have ended before.
func (l *Elector) Release(ctx context.Context) error {
	lease := l.held()
	if lease == nil {
		return nil
	}
	lease.end()
	l.mu.Lock()
	l.lease = nil
	l.mu.Unlock()
	_, err := l.store.SwapLeader(ctx, l.seen, store.Leader{Term: l.seen.Term, Counter: l.seen.Counter + 1})
	return err
}
