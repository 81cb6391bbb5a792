package dispatcher

import (
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/clock"
)

// Reason is why tasks wait: one of placement's reasons, or one of these.
type Reason = placement.Reason

// Reasons that do not depend on nodes.
const (
	// DispatcherPaused means that a person has paused the dispatcher.
	DispatcherPaused Reason = "DISPATCHER_PAUSED"
	// ClassPaused and NamespacePaused mean that a person has paused the class or the namespace.
	ClassPaused     Reason = "CLASS_PAUSED"
	NamespacePaused Reason = "NAMESPACE_PAUSED"
	// Throttled means back-pressure: as many tasks are sent and not started as DISPATCHER_MAX_PENDING allows.
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

// permits are the permits that a claim takes, of its concurrency key and its pool. One that the task does not need is
// empty.
type permits struct{ key, pool string }

// gates are what a task passes before it is placed, whatever the nodes can take: pauses, limits and rates.
type gates struct {
	fleet      *fleet.Fleet
	clock      clock.Clock
	maxPending int // tasks that are sent and not started, at most; 0 = no limit
	settings   settings
	rates      rates
}

// moment returns the time by which tokens are counted. It never goes back.
func (g *gates) moment() time.Time { return time.Unix(0, int64(g.clock.Boot())) }

// check returns what keeps a queue waiting, whatever the state of the nodes. An empty reason means nothing, and p are
// the permits that its head may take. For a rate limit, wait is how long it takes until a token comes; 0 = unknown.
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

// nextToken returns how long it takes until the rate that keeps a queue waiting has one more token; 0 = there will be
// none, or why is no rate.
func (g *gates) nextToken(q *queueState, why Reason, now time.Time) time.Duration {
	switch why { //nolint:exhaustive // the others are no rates
	case RateLimited:
		return g.rates.all.next(now)
	case ClassRateLimited:
		return g.rates.classes.of(q.class, now).next(now)
	}
	return 0
}

// pauses are the pauses between rounds at each step of back-pressure. The steps begin at half of MaxPending.
var pauses = [...]time.Duration{5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond,
	80 * time.Millisecond}

// throttle returns the step of back-pressure: 0 = none, len(pauses) = DISPATCHER_MAX_PENDING is nearly reached.
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
