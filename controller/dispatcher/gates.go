package dispatcher

import (
	"time"

	"github.com/skalds-go/skalds/controller/placement"
)

// Reason says why tasks wait: one of placement's, or one of these.
type Reason = placement.Reason

// The reasons that have nothing to do with the nodes.
const (
	// DispatcherPaused says that a person has paused the dispatcher.
	DispatcherPaused Reason = "DISPATCHER_PAUSED"
	// ClassPaused and NamespacePaused say that a person has paused these.
	ClassPaused     Reason = "CLASS_PAUSED"
	NamespacePaused Reason = "NAMESPACE_PAUSED"
	// Throttled says that too many tasks are sent and not started (DISPATCHER_MAX_PENDING).
	Throttled Reason = "THROTTLED"
	// RateLimited and ClassRateLimited say that there is no token left.
	RateLimited      Reason = "RATE_LIMIT"
	ClassRateLimited Reason = "CLASS_RATE_LIMIT"
	// NamespaceFull says that as many tasks of the namespace are on nodes as may be.
	NamespaceFull Reason = "NAMESPACE_LIMIT"
	// KeyBusy says so of the concurrency key, PoolFull of the pool.
	KeyBusy  Reason = "CONCURRENCY_KEY"
	PoolFull Reason = "POOL_LIMIT"
	// PoolUnknown says that there is no such pool.
	PoolUnknown Reason = "POOL_UNKNOWN"
)

// permits are what a claim of a task names: of its concurrency key, and of its pool. One that it needs none of is empty.
type permits struct{ key, pool string }

// gate says what keeps a line waiting, whatever the nodes may take; empty = nothing, and then which permits its head may name. With a rate
// limit it says how long, too; 0 = not known.
func (d *Dispatcher) gate(l *line, now time.Time) (p permits, why Reason, wait time.Duration) {
	s := &d.settings
	switch {
	case s.paused:
		return p, DispatcherPaused, 0
	case s.namespaces[l.item.Namespace]:
		return p, NamespacePaused, 0
	case s.classes[l.class]:
		return p, ClassPaused, 0
	}
	if limit, ok := s.limits[l.item.Namespace]; ok && d.fleet.NamespaceCount(l.item.Namespace) >= limit {
		return p, NamespaceFull, 0
	}
	poolLimit, known := s.pools[l.pool]
	if l.pool != "" && !known {
		return p, PoolUnknown, 0
	}
	if l.key != "" || l.pool != "" {
		var keyFull, poolFull bool
		p.key, p.pool, keyFull, poolFull = d.fleet.FreePermits(l.key, l.keyLimit, l.pool, poolLimit)
		switch {
		case keyFull:
			return p, KeyBusy, 0
		case poolFull:
			return p, PoolFull, 0
		}
	}
	if !d.buckets.all.ready(now) {
		return p, RateLimited, d.buckets.all.wait(now)
	}
	if class := d.buckets.classes.of(l.class, now); !class.ready(now) {
		return p, ClassRateLimited, class.wait(now)
	}
	if d.cfg.MaxPending > 0 && d.fleet.Unstarted() >= d.cfg.MaxPending {
		return p, Throttled, 0
	}
	return p, "", 0
}

// breaths are the pauses between rounds as more and more is sent and not started: from half of what may be, step by step.
var breaths = [...]time.Duration{5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond, 80 * time.Millisecond}

// throttle is the step that the dispatcher is at: 0 = it goes as fast as it can, len(breaths) = it is nearly full.
func (d *Dispatcher) throttle() int {
	if d.cfg.MaxPending <= 0 {
		return 0
	}
	half := d.cfg.MaxPending / 2
	unstarted := d.fleet.Unstarted()
	over := unstarted - half
	if over < 0 || unstarted == 0 {
		return 0
	}
	return min(1+over*len(breaths)/max(d.cfg.MaxPending-half, 1), len(breaths))
}
