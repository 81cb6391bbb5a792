package placement

// rank returns a node's place in an order, least first. Placing a task on a node must not lower it, unless the strategy
// says so (definition.every).
type rank func(n *node) float64

// ranking is the chooser of strategies that put the nodes into an order: a heap. Nodes of equal rank come in turn: the
// one that the candidate set has picked the longest time ago first, then the one that anybody has, then the least id.
//
// Its items hold what they are ordered by as it was when it was looked at last. A node that has only gone up since is
// found and put right when it comes to the top. A node that has changed otherwise is added again, and the older item is
// dropped when it comes to the top, for it has not the node's present stamp.
type ranking struct {
	*stage
	rank    rank
	size    *int   // of the nodes that there are to rank
	log     int    // whose stamps its items have
	items   []item // a heap with four children
	skipped []item // excluded by the present request
}

type item struct {
	place
	node  int32
	stamp uint32
}

// place is what an item is ordered by.
type place struct {
	rank float64
	ours int64 // the number of the candidate set's last placement there
	last int64 // the number of the last placement there
}

func ranked(r rank) func(s *stage) chooser {
	return func(s *stage) chooser {
		h := rankingOf(s, r)
		return &h
	}
}

func rankingOf(s *stage, r rank) ranking {
	return ranking{stage: s, rank: r, size: &s.p.members.able, log: s.p.log}
}

// place finds the present place of a node.
func (h *ranking) place(i int32) place {
	n := &h.c.nodes[i]
	p := place{rank: h.rank(n)}
	if !h.p.plan.steady {
		p.ours, p.last = h.p.placed.get(i), n.last
	}
	return p
}

func (h *ranking) add(i int32) {
	n := &h.c.nodes[i]
	if !h.fits(n) {
		return
	}
	switch {
	case h.items == nil:
		h.items = make([]item, 0, *h.size+1)
	case len(h.items) >= 2*(*h.size)+emptyWeight:
		h.tidy()
	}
	h.push(item{place: h.place(i), node: i, stamp: n.stamps[h.log]})
}

func (h *ranking) drop(int32) {} // its stamp has changed

// tidy drops the items that are of no use.
func (h *ranking) tidy() {
	old := h.items
	h.items = h.items[:0]
	for _, e := range old {
		if h.holds(&e) {
			h.push(e)
		}
	}
}

// holds reports whether an item stands for a node that fits.
func (h *ranking) holds(e *item) bool {
	n := &h.c.nodes[e.node]
	return e.stamp == n.stamps[h.log] && h.fits(n)
}

func (h *ranking) pick(*Request) int32 {
	i := int32(-1)
	for i < 0 && len(h.items) > 0 {
		top := &h.items[0]
		n := &h.c.nodes[top.node]
		if !h.holds(top) {
			h.pop()
			continue
		}
		if now := h.place(top.node); now != top.place {
			top.place = now
			h.down(*top)
			continue
		}
		if h.c.excluded(n) {
			h.skipped = append(h.skipped, *top)
			h.pop()
			continue
		}
		i = top.node
	}
	for _, e := range h.skipped {
		h.push(e)
	}
	h.skipped = h.skipped[:0]
	return i
}

func (h *ranking) any() bool { return h.pick(nil) >= 0 }

func (h *ranking) less(a, b *item) bool {
	switch {
	case a.rank != b.rank:
		return a.rank < b.rank
	case a.ours != b.ours:
		return a.ours < b.ours
	case a.last != b.last:
		return a.last < b.last
	}
	return h.c.nodes[a.node].id < h.c.nodes[b.node].id
}

func (h *ranking) push(e item) {
	h.items = append(h.items, e)
	h.up(len(h.items)-1, e)
}

// up puts an item at a place that is free, or higher, where it belongs.
func (h *ranking) up(at int, e item) {
	for at > 0 {
		parent := (at - 1) / 4
		if !h.less(&e, &h.items[parent]) {
			break
		}
		h.items[at] = h.items[parent]
		at = parent
	}
	h.items[at] = e
}

func (h *ranking) pop() {
	last := len(h.items) - 1
	e := h.items[last]
	if h.items = h.items[:last]; last > 0 {
		h.down(e)
	}
}

// down takes the top away and puts an item where it belongs. That is near the bottom, mostly: so the place of the top
// is moved down to there first, which takes a comparison less at each level, and then up to where the item belongs.
func (h *ranking) down(e item) {
	at := 0
	for child := 1; child < len(h.items); child = 4*at + 1 {
		least := child
		for k := child + 1; k < min(child+4, len(h.items)); k++ {
			if h.less(&h.items[k], &h.items[least]) {
				least = k
			}
		}
		h.items[at] = h.items[least]
		at = least
	}
	h.up(at, e)
}
