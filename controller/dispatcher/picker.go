package dispatcher

import (
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/task"
)

// picker finds a node for a task that has passed the gates. It is the dispatcher's view of the nodes.
type picker struct {
	*gates

	cluster *placement.Cluster
}

var _ fleet.Placer = (*picker)(nil)

// Set implements [fleet.Placer].
func (p *picker) Set(n placement.Node) {
	_, n.RateLimited = p.buckets.limited[n.ID]
	p.cluster.Set(n)
}

// Remove implements [fleet.Placer].
func (p *picker) Remove(id string) {
	delete(p.buckets.limited, id)
	p.cluster.Remove(id)
}

// Recount implements [fleet.Placer].
func (p *picker) Recount(id string, by int64) { p.cluster.Recount(id, by) }

// refresh takes in what has changed about the nodes, and which of them have tokens again. It says when the next of the others has one, as
// Outcome.Next does.
func (p *picker) refresh() (next time.Duration) {
	p.fleet.Changes(p.clock.Boot(), p)
	now := p.moment()
	for id := range p.buckets.limited {
		b := p.buckets.nodes.of(id, now)
		if b.ready(now) {
			delete(p.buckets.limited, id)
			p.cluster.SetRateLimited(id, false)
		}
		next = sooner(next, b.wait(now))
	}
	return next
}

// capacity says how many slots are free, and how many short tasks may queue beside them.
func (p *picker) capacity() (slots, queue int) {
	slots, queue = p.cluster.Free()
	if slots == 0 && !p.fleet.AnyShortClass() {
		return 0, 0
	}
	return slots, queue
}

// blocked says what blocked a line waiting; empty = nothing, as far as can be known without trying. With a rate limit it says how long, too.
func (p *picker) blocked(queue *queueState, now time.Time) (Reason, time.Duration) {
	if !queue.known && !p.settings.paused { // a pause of all is of it, too
		return NotLookedAt, 0
	}
	if _, why, wait := p.gate(queue, now); why != "" {
		return why, wait
	}
	q := p.request(queue)
	if why, ok := p.cluster.Feasible(&q); !ok {
		return why, 0
	}
	return "", 0
}

// request is what a task of the line asks of placement.
func (p *picker) request(queue *queueState) placement.Request {
	q := queue.request
	q.Strategy = p.settings.strategy
	q.Prefetch = p.fleet.PrefetchDepth(queue.class)
	if p.slowdown() > 0 { // deep queues must not be what slows the rounds down
		q.Prefetch = min(q.Prefetch, placement.PrefetchOnce)
	}
	if queue.anti != "" {
		q.Anti = p.fleet.NodesWithAntiAffinity(queue.anti)
	}
	return q
}

// requestFor is what one task of the line asks of placement.
func (p *picker) requestFor(queue *queueState, t *task.Task) placement.Request {
	q := p.request(queue)
	q.Alone, q.Avoid, q.StickyKey = t.Alone(), t.Crashed(), t.StickyKey
	if s, ok := placement.ParseStrategy(t.Strategy); t.Strategy != "" && ok {
		q.Strategy = s
	}
	return q
}

// place finds a node that has a token. One that turns out to have none is left out until it has.
func (p *picker) place(r *round, q *placement.Request) placement.Decision {
	for {
		dec := p.cluster.Place(q)
		if dec.Reason != "" || !p.limitNode(r, dec.Node) {
			return dec
		}
		p.cluster.Unplace(dec)
	}
}

// limitNode lets a node take nothing until it has a token, if it has none now.
func (p *picker) limitNode(r *round, node string) bool {
	b := p.buckets.nodes.of(node, r.moment)
	if b.ready(r.moment) {
		return false
	}
	p.buckets.limited[node] = struct{}{}
	p.cluster.SetRateLimited(node, true)
	r.wait(b.wait(r.moment))
	return true
}

// stillBlocked says what keeps all of a group waiting, and how long if it is known; empty if its lines are to be asked each for itself.
func (p *picker) stillBlocked(g *queueSet, now time.Time) (Reason, time.Duration) {
	first := g.queues[0]
	why, wait := p.blocked(first, now)
	if why != "" && !blocksAll(why) && first.conditionFor(why) != g.until {
		return "", 0
	}
	return why, wait
}
