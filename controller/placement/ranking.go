package placement

// rank returns the rank of a node. The lowest rank is picked first. Placing a task on a node must not lower its rank,
// unless the strategy sets definition.every.
type rank func(n *node) float64

// ranking is the chooser of strategies that rank the nodes. It is a heap. Of nodes with equal ranks, the one that this
// candidate set picked longest ago comes first, then the one that any candidate set picked longest ago, then the one
// with the lowest id.
//
// An item holds the place that its node had when the ranking last looked at it. If the rank has only risen since, the
// item is corrected when it comes to the top. After any other change the node is added again with a new stamp. The item
// with the old stamp is dropped when it comes to the top.
type ranking struct {
	*stage
	rank    rank
	size    *int   // number of the nodes to rank
	log     int    // index of the log whose stamps the items hold
	items   []item // a heap with four children
	skipped []item // items of nodes that the present request excludes
}

type item struct {
	place
	node  int32
	stamp uint32
}

// place is the sort key of an item.
type place struct {
	rank float64
	ours int64 // number of the candidate set's last placement there
	last int64 // number of the last placement there
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

// place returns the present place of a node.
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

func (h *ranking) drop(int32) {} // the item is dropped later, since the stamp of the node has changed

// tidy drops the items that do not hold.
func (h *ranking) tidy() {
	old := h.items
	h.items = h.items[:0]
	for _, e := range old {
		if h.holds(&e) {
			h.push(e)
		}
	}
}

// holds reports whether an item is the latest of its node, and the node fits.
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

// up moves the gap at an index up to where the item belongs, and puts the item there.
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

// down replaces the top by an item and restores the heap. Most items belong near the bottom. So the gap at the top
// moves all the way down first, which saves a comparison at each level, and then up to where the item belongs.
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
