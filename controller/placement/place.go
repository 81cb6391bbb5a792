package placement

import (
	"cmp"
	"math"
	"slices"
)

// nobody is the value of Cluster.excluding for a request that excludes no node.
const nobody = math.MaxUint64

// Place picks the node for one task and counts the task there at once. The strategy picks among the idle nodes first
// (if it is an IDLE| strategy), then among the nodes with free slots and then, for short runs, among those with free
// prefetch.
func (c *Cluster) Place(q *Request) Decision {
	p, reason := c.candidatesOf(q)
	if reason != "" {
		return Decision{Reason: reason}
	}
	c.exclude(p, q)
	var i int32
	if q.Alone {
		var nearest int32
		if i, nearest = p.empty(); i < 0 && nearest >= 0 {
			c.keepFree(nearest)
		}
	} else {
		i = p.pick(q)
	}
	if i < 0 {
		return Decision{Reason: p.fullReason(q)}
	}
	d := c.assign(i, q)
	p.placed.set(i, c.clock)
	return d
}

// Feasible reports whether Place would find a node for a request now, and the reason if it would not. It places nothing
// and keeps no node free.
func (c *Cluster) Feasible(q *Request) (Reason, bool) {
	p, reason := c.candidatesOf(q)
	if reason != "" {
		return reason, false
	}
	c.exclude(p, q)
	var found bool
	if q.Alone {
		i, _ := p.empty()
		found = i >= 0
	} else {
		found = p.any(q)
	}
	if !found {
		return p.fullReason(q), false
	}
	return "", true
}

// Unplace takes back a placement whose claim was lost or could not be sent. It reports false if the placement was taken
// back before, if its node has been removed, or if 65,536 or more placements came after it. If the node was Set since,
// its load stays as Set has left it.
func (c *Cluster) Unplace(d Decision) bool {
	if !c.tickets.redeem(d.ticket, uint64(c.clock)) {
		return false
	}
	n := &c.nodes[d.node]
	if !n.alive || n.joined != d.joined {
		return false
	}
	n.served = max(0, n.served-1)
	if n.set == d.set {
		c.count(n, -1)
		n.load -= int(d.load)
		n.fresh = max(0, n.fresh-int(d.width))
		if d.limit >= 0 {
			n.limits[d.limit].load -= int(d.width)
		}
		c.count(n, +1)
	}
	c.logBetter(d.node, false)
	return true
}

// assign counts a task on a node. A task that must be alone takes all of it.
func (c *Cluster) assign(i int32, q *Request) Decision {
	n := &c.nodes[i]
	width := q.width()
	load := width
	if q.Alone {
		load = max(load, n.capacity+n.prefetch)
	}
	at := n.limit(q.Class)
	c.count(n, -1)
	c.clock++
	n.load += load
	n.fresh += width
	n.served++
	n.last = c.clock
	if at >= 0 {
		n.limits[at].load += width
	}
	c.count(n, +1)
	if c.listeners > 0 {
		c.logChange(i, false)
	}
	ticket := uint64(c.clock)
	c.tickets.issue(ticket)
	return Decision{Node: n.id, ticket: ticket, joined: n.joined, set: n.set,
		node: i, limit: int32(at), load: int32(load), width: int32(width)}
}

// pick returns the pick of the first stage that has a node, or -1.
func (p *candidates) pick(q *Request) int32 {
	for _, k := range p.order {
		if !q.uses(k) {
			continue
		}
		if i := p.stages[k].ready().pick(q); i >= 0 {
			return i
		}
	}
	return -1
}

// any reports whether pick would return a node.
func (p *candidates) any(q *Request) bool {
	return p.stages[stageSlots].ready().any() || q.Prefetch > NoPrefetch && p.stages[q.lastStage()].ready().any()
}

// exclude marks the nodes that the request excludes. The nodes in Avoid are excluded only if another node could ever
// run the task.
func (c *Cluster) exclude(p *candidates, q *Request) {
	c.excluding = nobody
	if len(q.Anti) == 0 && len(q.Avoid) == 0 {
		return
	}
	c.exclusions++
	c.excluding = c.exclusions
	c.mark(q.Anti)
	if p.others(q.Avoid) {
		c.mark(q.Avoid)
	}
}

func (c *Cluster) mark(ids []string) {
	for _, id := range ids {
		if i, ok := c.ids[id]; ok {
			c.nodes[i].mark = c.excluding
		}
	}
}

// others reports whether a member could run the task that is not among these nodes.
func (p *candidates) others(ids []string) bool {
	among := 0
	for at, id := range ids {
		if i, ok := p.c.ids[id]; ok && p.members.isAble(i) && !slices.Contains(ids[:at], id) {
			among++
		}
	}
	return among < p.members.able
}

// empty returns the empty node that was picked least recently, for a task that must be alone. It also returns the node
// that is nearest to empty. Each is -1 if there is none.
func (p *candidates) empty() (empty, nearest int32) {
	empty, nearest = -1, -1
	for i := range p.members.all {
		n := &p.c.nodes[i]
		if n.kept || p.c.excluded(n) {
			continue
		}
		if n.load == 0 && p.fits(n, stageSlots) && (empty < 0 || earlier(n, &p.c.nodes[empty])) {
			empty = i
		}
		if nearest < 0 || nearer(n, &p.c.nodes[nearest]) {
			nearest = i
		}
	}
	return empty, nearest
}

func earlier(a, b *node) bool {
	return cmp.Or(cmp.Compare(a.last, b.last), cmp.Compare(a.id, b.id)) < 0
}

func nearer(a, b *node) bool { return cmp.Or(cmp.Compare(a.load, b.load), cmp.Compare(a.id, b.id)) < 0 }

// keepFree keeps a node free until the next round, so that it becomes empty in time.
func (c *Cluster) keepFree(i int32) {
	n := &c.nodes[i]
	c.count(n, -1)
	n.kept = true
	c.count(n, +1)
	c.kept = append(c.kept, i)
	c.logChange(i, false)
}

// fullReason returns the reason why no member takes a request now.
func (p *candidates) fullReason(q *Request) Reason {
	kind := q.lastStage()
	excluded := func(id string) bool {
		i, ok := p.c.ids[id]
		return ok && p.members.isAble(i) && p.c.excluded(&p.c.nodes[i]) && p.fits(&p.c.nodes[i], kind)
	}
	switch {
	case slices.ContainsFunc(q.Anti, excluded):
		return AntiAffinity
	case slices.ContainsFunc(q.Avoid, excluded):
		return NodesAvoided
	case p.c.rateLimited == 0:
		return NodesFull
	}
	// This runs for each task that waits, so the result of the scan is kept until a node changes.
	if w := &p.waits[kind]; w.reason == "" || w.changed != p.c.changed {
		w.reason, w.changed = NodesFull, p.c.changed
		for i := range p.members.all {
			if n := &p.c.nodes[i]; n.rateLimited && p.hasSlots(n, kind) {
				w.reason = NodesRateLimited
				break
			}
		}
	}
	return p.waits[kind].reason
}

// lastStage returns the stage that includes all nodes of the other stages that the request uses.
func (q *Request) lastStage() int {
	switch {
	case q.Alone:
		return stageIdle
	case q.Prefetch >= PrefetchDeep:
		return stageDeep
	case q.Prefetch == PrefetchOnce:
		return stageOnce
	}
	return stageSlots
}
