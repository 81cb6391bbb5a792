package dispatcher

import (
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/task"
)

// picker picks the nodes of tasks, among those that take work and have a token of their rate.
type picker struct {
	gates       *gates
	fleet       *fleet.Fleet
	cluster     *placement.Cluster
	rateLimited map[string]struct{} // nodes that the cluster excludes, since they have no token
}

// Set implements [fleet.Placer].
func (p *picker) Set(n placement.Node) {
	_, n.RateLimited = p.rateLimited[n.ID]
	p.cluster.Set(n)
}

// Remove implements [fleet.Placer].
func (p *picker) Remove(id string) {
	delete(p.rateLimited, id)
	p.cluster.Remove(id)
}

// Recount implements [fleet.Placer].
func (p *picker) Recount(id string, by int64) { p.cluster.Recount(id, by) }

// refresh applies what has changed about the nodes, and readmits rate limited nodes that have a token again. It returns
// how long it takes until the next of the others has one; 0 = unknown.
func (p *picker) refresh() (next time.Duration) {
	p.fleet.Changes(p.gates.clock.Boot(), p)
	now := p.gates.moment()
	for id := range p.rateLimited {
		b := p.gates.rates.nodes.of(id, now)
		if b.ready(now) {
			delete(p.rateLimited, id)
			p.cluster.SetRateLimited(id, false)
		}
		next = sooner(next, b.wait(now))
	}
	return next
}

// limitRate excludes a node that has no token until it has one. It then also returns how long that takes; 0 = unknown.
func (p *picker) limitRate(node string, now time.Time) (limited bool, wait time.Duration) {
	b := p.gates.rates.nodes.of(node, now)
	if b.ready(now) {
		return false, 0
	}
	p.rateLimited[node] = struct{}{}
	p.cluster.SetRateLimited(node, true)
	return true, b.wait(now)
}

// endRateLimits lets all nodes take work again.
func (p *picker) endRateLimits() {
	for id := range p.rateLimited {
		p.cluster.SetRateLimited(id, false)
	}
	clear(p.rateLimited)
}

// capacity returns how many slots are free, and how many more short tasks the nodes can prefetch, as one number.
func (p *picker) capacity() int {
	slots, prefetch := p.cluster.Free()
	if slots == 0 && !p.fleet.AnyShortClass() {
		return 0
	}
	return slots + prefetch
}

// exhausted returns why no capacity is left.
func (p *picker) exhausted() Reason {
	if len(p.rateLimited) > 0 {
		return placement.NodesRateLimited
	}
	return placement.NodesFull
}

// blocked returns what keeps a queue waiting, as far as is known without placing a task; empty = nothing. For a rate
// limit it also returns how long it takes until a token comes.
func (p *picker) blocked(q *queueState, now time.Time) (Reason, time.Duration) {
	if !q.known && !p.gates.settings.paused { // a pause of all is a pause of this queue, too
		return NotLookedAt, 0
	}
	if _, why, wait := p.gates.check(q, now); why != "" {
		return why, wait
	}
	req := p.queueRequest(q)
	why, _ := p.cluster.Feasible(&req)
	return why, 0
}

// blockedSet returns what keeps all queues of a set waiting, and how long; 0 = unknown. It returns an empty reason if
// the queues must be checked one by one.
func (p *picker) blockedSet(set *queueSet, now time.Time) (Reason, time.Duration) {
	first := set.queues[0]
	why, wait := p.blocked(first, now)
	if why != "" && !keepsAll(why) && first.until(why) != set.until {
		return "", 0
	}
	return why, wait
}

// queueRequest returns the placement request of any task of the queue.
func (p *picker) queueRequest(q *queueState) placement.Request {
	req := q.request
	req.Strategy = p.gates.settings.strategy
	req.Prefetch = p.fleet.PrefetchDepth(q.class)
	if p.gates.throttle() > 0 { // prefetching alone must not cause back-pressure
		req.Prefetch = min(req.Prefetch, placement.PrefetchOnce)
	}
	if q.anti != "" {
		req.Anti = p.fleet.NodesWithAntiAffinity(q.anti)
	}
	return req
}

// taskRequest returns the placement request of one task of the queue.
func (p *picker) taskRequest(q *queueState, t *task.Task) placement.Request {
	req := p.queueRequest(q)
	req.Alone, req.Avoid, req.StickyKey = t.Alone(), t.Crashed(), t.StickyKey
	if s, ok := placement.ParseStrategy(t.Strategy); t.Strategy != "" && ok {
		req.Strategy = s
	}
	return req
}

// place finds a node that has a token. It excludes nodes that turn out to have none; wait is how long it takes until
// the first of them has one.
func (p *picker) place(req *placement.Request, now time.Time) (dec placement.Decision, wait time.Duration) {
	for {
		dec := p.cluster.Place(req)
		if dec.Reason != "" {
			return dec, wait
		}
		limited, until := p.limitRate(dec.Node, now)
		if !limited {
			return dec, wait
		}
		wait = sooner(wait, until)
		p.cluster.Unplace(dec)
	}
}
