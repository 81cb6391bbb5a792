package dispatcher

import (
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/clock"
)

// Reason is why tasks wait: one of placement's reasons, or one of these.
type Reason = placement.Reason

// The reasons that have nothing to do with the nodes.
const (
	// DispatcherPaused means that a person has paused the dispatcher.
	DispatcherPaused Reason = "DISPATCHER_PAUSED"
	// ClassPaused and NamespacePaused mean that a person has paused the class or the namespace.
	ClassPaused     Reason = "CLASS_PAUSED"
	NamespacePaused Reason = "NAMESPACE_PAUSED"
	// Throttled means that too many tasks are sent and not started (DISPATCHER_MAX_PENDING).
	Throttled Reason = "THROTTLED"
	// RateLimited and ClassRateLimited mean that the rate, or that of the class, has no token left.
	RateLimited      Reason = "RATE_LIMIT"
	ClassRateLimited Reason = "CLASS_RATE_LIMIT"
	// NamespaceFull means that the namespace has as many tasks on nodes as it may.
	NamespaceFull Reason = "NAMESPACE_LIMIT"
	// KeyBusy and PoolFull mean that all permits of the concurrency key, or of the pool, are in use.
	KeyBusy  Reason = "CONCURRENCY_KEY"
	PoolFull Reason = "POOL_LIMIT"
	// PoolUnknown means that there is no such pool.
	PoolUnknown Reason = "POOL_UNKNOWN"
)

// permits are what the claim of a task names: one of its concurrency key, and one of its pool. It is empty if the task
// needs none.
type permits struct{ key, pool string }

// gates are what a task passes before it is placed, whatever the nodes can take: pauses, limits and rates.
type gates struct {
	fleet      *fleet.Fleet
	clock      clock.Clock
	maxPending int // tasks that are sent and not started, at most; 0 = no limit
	settings   settings
	rates      rates
}

// moment is the time by which tokens are counted: it never goes back.
func (g *gates) moment() time.Time { return time.Unix(0, int64(g.clock.Boot())) }

// check returns what keeps a queue waiting, whatever the nodes can take; empty = nothing, and then which permits the
// claim of its head may name. With a rate limit it also returns how long it takes until a token comes; 0 = not known.
func (g *gates) check(q *queueState, now time.Time) (p permits, why Reason, wait time.Duration) {
	s := &g.settings
	switch {
	case s.paused:
		return p, DispatcherPaused, 0
	case s.namespaces[q.item.Namespace]:
		return p, NamespacePaused, 0
	case s.classes[q.class]:
		return p, ClassPaused, 0
	}
	if limit, ok := s.limits[q.item.Namespace]; ok && g.fleet.NamespaceCount(q.item.Namespace) >= limit {
		return p, NamespaceFull, 0
	}
	poolLimit, known := s.pools[q.pool]
	if q.pool != "" && !known {
		return p, PoolUnknown, 0
	}
	if q.key != "" || q.pool != "" {
		var keyFull, poolFull bool
		p.key, p.pool, keyFull, poolFull = g.fleet.FreePermits(q.key, q.keyLimit, q.pool, poolLimit)
		switch {
		case keyFull:
			return p, KeyBusy, 0
		case poolFull:
			return p, PoolFull, 0
		}
	}
	if !g.rates.all.ready(now) {
		return p, RateLimited, g.rates.all.wait(now)
	}
	if class := g.rates.classes.of(q.class, now); !class.ready(now) {
		return p, ClassRateLimited, class.wait(now)
	}
	if g.maxPending > 0 && g.fleet.Unstarted() >= g.maxPending {
		return p, Throttled, 0
	}
	return p, "", 0
}

// nextToken returns how long it takes until the rate that keeps a queue waiting has one token more; 0 = there will be
// none, or no rate does.
func (g *gates) nextToken(q *queueState, why Reason, now time.Time) time.Duration {
	switch why {
	case RateLimited:
		return g.rates.all.next(now)
	case ClassRateLimited:
		return g.rates.classes.of(q.class, now).next(now)
	}
	return 0
}

// pauses are what rounds rest at each step of back-pressure: from half of MaxPending on, the longer the more is sent
// and not started.
var pauses = [...]time.Duration{5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond,
	80 * time.Millisecond}

// throttle returns the step of back-pressure: 0 = rounds do not rest, len(pauses) = as much as may be is sent and not
// started.
func (g *gates) throttle() int {
	if g.maxPending <= 0 {
		return 0
	}
	half := g.maxPending / 2
	unstarted := g.fleet.Unstarted()
	over := unstarted - half
	if over < 0 || unstarted == 0 {
		return 0
	}
	return min(1+over*len(pauses)/max(g.maxPending-half, 1), len(pauses))
}
