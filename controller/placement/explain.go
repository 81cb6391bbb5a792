package placement

import (
	"cmp"
	"slices"
)

// Explanation says where a task would be placed now, or why it would not be placed. The counts are the numbers of nodes
// that each filter removed, in the order of the filters. Nodes that are not counted could take the task.
type Explanation struct {
	Reason   Reason // empty = it would be placed
	Strategy Strategy
	Nodes    int // nodes that take work

	NoClass     int
	NoLabels    int
	TooSmall    int // have fewer slots for the class than the task takes, even when empty
	Full        int // have fewer free slots; for a task that must be alone: are not empty
	Anti        int // hold a task of the same anti-affinity key
	Avoided     int // were crashed by the task before
	Kept        int // are kept free for a task that must be alone
	RateLimited int

	FullNodes []string // ids of the nodes in Full and Kept, at most ten
	Class     string
	Selector  string
	Slots     int // slots of the task
	Largest   int // the most slots for the class that any matching node has
	MostFree  int // the most free slots for the class on any node that could ever run the task
	Alone     bool

	Best []Score // the best nodes of the first stage that has any, at most three, the best first
}

// Score is what a strategy thinks of a node.
type Score struct {
	Node  string
	Score string // for people
}

// Limits of an explanation.
const (
	maxFullNodes = 10
	maxBest      = 3
)

// scan is the input of a strategy to an explanation.
type scan struct {
	q       *Request
	by      string  // the label that the strategy goes by
	members []*node // nodes that could ever run the task
}

// Explain returns where a task would be placed now, or why it would not be placed. It looks at all nodes and changes
// nothing.
func (c *Cluster) Explain(q *Request) Explanation {
	p := c.detached(q)
	c.exclude(p, q)
	e := Explanation{Strategy: p.plan.name(), Nodes: len(c.ids), Class: q.Class, Selector: q.Selector.String(),
		Slots: p.width, Alone: q.Alone}
	x := &scan{q: q, by: p.plan.by}
	var left []*node
	for i := range c.nodes {
		n := &c.nodes[i]
		if !n.alive {
			continue
		}
		if p.filter(&e, n, q) {
			left = append(left, n)
		}
		if p.members.isAble(int32(i)) {
			x.members = append(x.members, n)
		}
	}
	slices.Sort(e.FullNodes)
	e.FullNodes = e.FullNodes[:min(len(e.FullNodes), maxFullNodes)]
	if len(left) == 0 {
		e.Reason = e.reason(p, q)
		return e
	}
	e.rank(p, x, left, q)
	return e
}

// detached returns a new candidate set that the cluster does not know.
func (c *Cluster) detached(q *Request) *candidates {
	c.countJoiners()
	p := c.bareCandidates(q.key(), q.Selector)
	if used, ok := c.candidates.byKey[p.candidatesKey]; ok {
		p.placed = used.placed
	}
	p.members.reset(len(c.nodes), len(c.nodes))
	for i := range c.nodes {
		p.classify(int32(i))
	}
	return p
}

// filter reports whether a node passes all filters. It counts the node at the filter that removes it.
func (p *candidates) filter(e *Explanation, n *node, q *Request) bool {
	switch {
	case !n.has(p.class):
		e.NoClass++
		return false
	case !p.selector.Matches(n.labels):
		e.NoLabels++
		return false
	}
	e.Largest = max(e.Largest, n.most(p.class))
	if n.most(p.class) < p.width {
		e.TooSmall++
		return false
	}
	e.MostFree = max(e.MostFree, n.freeSlots(p.class))
	switch {
	case !p.hasSlots(n, q.lastStage()):
		e.Full++
		e.FullNodes = append(e.FullNodes, n.id)
	case p.c.excluded(n) && slices.Contains(q.Anti, n.id):
		e.Anti++
	case p.c.excluded(n):
		e.Avoided++
	case n.kept:
		e.Kept++
		e.FullNodes = append(e.FullNodes, n.id)
	case n.rateLimited:
		e.RateLimited++
	default:
		return true
	}
	return false
}

// freeSlots returns the number of free slots for a class.
func (n *node) freeSlots(class string) int {
	free := n.capacity - n.load
	if i := n.limit(class); i >= 0 {
		free = min(free, n.limits[i].capacity-n.limits[i].load)
	}
	return max(0, free)
}

// reason returns the reason that Place would give.
func (e *Explanation) reason(p *candidates, q *Request) Reason {
	switch {
	case e.Nodes == 0:
		return NoEligibleNode
	case e.NoClass == e.Nodes:
		return NoNodeForClass
	case e.NoClass+e.NoLabels == e.Nodes:
		return NoNodeForLabels
	case e.NoClass+e.NoLabels+e.TooSmall == e.Nodes:
		return SlotsOverCapacity
	}
	return p.fullReason(q)
}

// rank fills in the best nodes.
func (e *Explanation) rank(p *candidates, x *scan, left []*node, q *Request) {
	order := p.order
	if q.Alone {
		order = []int{stageIdle}
	}
	var first []*node
	for _, k := range order {
		if len(first) == 0 && q.uses(k) {
			first = slices.DeleteFunc(slices.Clone(left), func(n *node) bool { return !p.hasSlots(n, k) })
		}
	}
	score := p.plan.score
	if q.Alone {
		score = func(*scan) (rank, func(n *node) string) {
			return func(n *node) float64 { return float64(n.last) }, func(*node) string { return "empty" }
		}
	}
	rank, describe := score(x)
	for _, n := range p.least(first, rank) {
		e.Best = append(e.Best, Score{Node: n.id, Score: describe(n)})
	}
}

// least returns the nodes of the lowest rank, at most maxBest.
func (p *candidates) least(nodes []*node, r rank) []*node {
	var best []*node
	before := func(a, b *node) int {
		if x, y := r(a), r(b); x != y || p.plan.steady {
			return cmp.Or(cmp.Compare(x, y), cmp.Compare(a.id, b.id))
		}
		ours := cmp.Compare(p.placed.get(p.c.ids[a.id]), p.placed.get(p.c.ids[b.id]))
		return cmp.Or(ours, cmp.Compare(a.last, b.last), cmp.Compare(a.id, b.id))
	}
	for _, n := range nodes {
		at, _ := slices.BinarySearchFunc(best, n, before)
		if at < maxBest {
			best = slices.Insert(best, at, n)
			best = best[:min(len(best), maxBest)]
		}
	}
	return best
}
