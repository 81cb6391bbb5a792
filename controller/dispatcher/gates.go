package dispatcher

import (
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/clock"
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

// gates is what keeps tasks waiting whatever the nodes may take: settings, permits, rates, back-pressure.
type gates struct {
	fleet      *fleet.Fleet
	clock      clock.Clock
	maxPending int
	settings   settings
	buckets    buckets
}

// moment is the time by which tokens are counted: it never goes back.
func (g *gates) moment() time.Time { return time.Unix(0, int64(g.clock.Boot())) }

// gate says what keeps a line waiting, whatever the nodes may take; empty = nothing, and then which permits its head may name. With a rate
// limit it says how long, too; 0 = not known.
func (g *gates) gate(queue *queueState, now time.Time) (p permits, why Reason, wait time.Duration) {
	s := &g.settings
	switch {
	case s.paused:
		return p, DispatcherPaused, 0
	case s.namespaces[queue.item.Namespace]:
		return p, NamespacePaused, 0
	case s.classes[queue.class]:
		return p, ClassPaused, 0
	}
	if limit, ok := s.limits[queue.item.Namespace]; ok && g.fleet.NamespaceCount(queue.item.Namespace) >= limit {
		return p, NamespaceFull, 0
	}
	poolLimit, known := s.pools[queue.pool]
	if queue.pool != "" && !known {
		return p, PoolUnknown, 0
	}
	if queue.key != "" || queue.pool != "" {
		var keyFull, poolFull bool
		p.key, p.pool, keyFull, poolFull = g.fleet.FreePermits(queue.key, queue.keyLimit, queue.pool, poolLimit)
		switch {
		case keyFull:
			return p, KeyBusy, 0
		case poolFull:
			return p, PoolFull, 0
		}
	}
	if !g.buckets.all.ready(now) {
		return p, RateLimited, g.buckets.all.wait(now)
	}
	if class := g.buckets.classes.of(queue.class, now); !class.ready(now) {
		return p, ClassRateLimited, class.wait(now)
	}
	if g.maxPending > 0 && g.fleet.Unstarted() >= g.maxPending {
		return p, Throttled, 0
	}
	return p, "", 0
}

// slowdowns are the pauses between rounds as more and more is sent and not started: from half of what may be, step by step.
var slowdowns = [...]time.Duration{5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond, 80 * time.Millisecond}

// slowdown is the step that the dispatcher is at: 0 = it goes as fast as it can, len(breaths) = it is nearly full.
func (g *gates) slowdown() int {
	if g.maxPending <= 0 {
		return 0
	}
	half := g.maxPending / 2
	unstarted := g.fleet.Unstarted()
	over := unstarted - half
	if over < 0 || unstarted == 0 {
		return 0
	}
	return min(1+over*len(slowdowns)/max(g.maxPending-half, 1), len(slowdowns))
}
