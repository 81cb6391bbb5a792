package placement

import (
	"cmp"
	"slices"
)

// round is one call of Place.
type round struct {
	placer   *Placer
	strategy Strategy
	nodes    []Node
	turns    []*turn
	pools    map[string]*roundPool
}

// roundPool is the nodes that have a class. Within a round loads only grow, so a node without a free slot, and one without room to queue,
// are that for the rest of it and leave the list.
type roundPool struct {
	all   []int // the nodes, as they are given
	slots []int // nodes that may have a free slot
	queue []int // nodes that may have room to queue
}

// decide places one request.
func (r *round) decide(q Request) Choice {
	if len(r.nodes) == 0 {
		return Choice{Node: -1, Reason: NoEligibleNode}
	}
	p := r.pool(q.Class)
	if len(p.all) == 0 {
		return Choice{Node: -1, Reason: NoNodeForClass}
	}
	if q.Alone || len(q.Avoid) > 0 {
		return r.special(p, q)
	}
	n := r.pick(&p.slots, r.hasSlot)
	if n < 0 && q.Short {
		n = r.pick(&p.queue, r.hasRoom)
	}
	if n < 0 {
		return Choice{Node: -1, Reason: NodesFull}
	}
	return r.take(n)
}

// take places a task on a node.
func (r *round) take(n int) Choice {
	r.placer.clock++
	r.nodes[n].Load++
	r.turns[n].served++
	r.turns[n].last = r.placer.clock
	return Choice{Node: n}
}

// special places a task that must be alone or that avoids nodes. If it must be alone and no node is empty, the one that is nearest to it
// takes nothing else in this round, so that it becomes empty in time.
func (r *round) special(p *roundPool, q Request) Choice {
	all := p.all
	if rest := slices.DeleteFunc(slices.Clone(all), func(n int) bool { return slices.Contains(q.Avoid, r.nodes[n].ID) }); len(rest) > 0 {
		all = rest
	}
	fits := r.hasSlot
	if q.Alone {
		fits = func(n int) bool { return r.nodes[n].Load == 0 }
	}
	list := slices.Clone(all)
	n := r.pick(&list, fits)
	switch {
	case n >= 0 && q.Alone:
		d := r.take(n)
		r.close(n)
		return d
	case n >= 0:
		return r.take(n)
	case q.Alone:
		r.close(slices.MinFunc(all, func(a, b int) int {
			return cmp.Or(cmp.Compare(r.nodes[a].Load, r.nodes[b].Load), cmp.Compare(r.nodes[a].ID, r.nodes[b].ID))
		}))
	}
	return Choice{Node: -1, Reason: NodesFull}
}

// close lets a node take nothing more in this round.
func (r *round) close(n int) {
	r.nodes[n].Load = max(r.nodes[n].Load, r.nodes[n].Capacity+r.nodes[n].Prefetch)
}

func (r *round) hasSlot(n int) bool { return r.nodes[n].Load < r.nodes[n].Capacity }
func (r *round) hasRoom(n int) bool { return r.nodes[n].Load < r.nodes[n].Capacity+r.nodes[n].Prefetch }

// pool gives the nodes with the class; the first request of a class in a round looks them up.
func (r *round) pool(class string) *roundPool {
	if p, ok := r.pools[class]; ok {
		return p
	}
	p := &roundPool{}
	for i := range r.nodes {
		if slices.Contains(r.nodes[i].Classes, class) {
			p.slots = append(p.slots, i)
		}
	}
	p.queue, p.all = slices.Clone(p.slots), slices.Clone(p.slots)
	r.pools[class] = p
	return p
}

// pick takes the best of the listed nodes that fit, and takes those that do not fit off the list. It gives -1 if none fits.
func (r *round) pick(list *[]int, fits func(int) bool) int {
	kept := (*list)[:0]
	best := -1
	for _, n := range *list {
		if !fits(n) {
			continue
		}
		kept = append(kept, n)
		if r.strategy != Random && (best < 0 || r.less(n, best)) {
			best = n
		}
	}
	*list = kept
	if r.strategy == Random && len(kept) > 0 {
		best = kept[r.placer.rng.IntN(len(kept))]
	}
	return best
}

// less says whether node a is a better pick than node b.
func (r *round) less(a, b int) bool {
	if r.strategy == RoundRobin {
		if s, t := r.turns[a].served, r.turns[b].served; s != t {
			return s < t
		}
	} else {
		// load/capacity without division: a/ca < b/cb
		x := int64(r.nodes[a].Load) * int64(r.nodes[b].Capacity)
		y := int64(r.nodes[b].Load) * int64(r.nodes[a].Capacity)
		if x != y {
			return x < y
		}
	}
	if s, t := r.turns[a].last, r.turns[b].last; s != t {
		return s < t
	}
	return r.nodes[a].ID < r.nodes[b].ID
}
