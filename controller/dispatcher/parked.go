package dispatcher

import (
	"cmp"
	"slices"
)

// queueSet is lines that a round deals with as one: those that it has to look at, or those that wait for the same. Each known line stands in one.
type queueSet struct {
	until  condition     // what its lines wait for; zero for those that do not
	queues []*queueState // in an order that depends on what has happened alone
	index  int           // in lines.waiting
}

// condition is what keeps a line waiting: as long as it keeps one line, it keeps all that wait for it.
type condition struct {
	why    Reason
	of     string // the namespace, class, pool or key; of a reason of placement, the class
	labels string // selector
	anti   string
	n      int // slots; of a key, the limit
}

// conditionFor is what the line waits for.
func (queue *queueState) conditionFor(why Reason) condition {
	c := condition{why: why}
	switch why {
	case NamespacePaused, NamespaceFull:
		c.of = queue.item.Namespace
	case ClassPaused, ClassRateLimited:
		c.of = queue.class
	case PoolUnknown, PoolFull:
		c.of = queue.pool
	case KeyBusy:
		c.of, c.n = queue.key, queue.keyLimit
	default:
		c.of, c.labels, c.anti, c.n = queue.class, queue.request.Selector.String(), queue.anti, queue.request.Slots
	}
	return c
}

// isParked says whether something keeps the line waiting, as of the last look.
func (queue *queueState) isParked() bool { return queue.in.until.why != "" }

// blocksAll says whether a reason keeps all lines waiting. They stay in the order, since the round has nothing more to do.
func blocksAll(why Reason) bool {
	return why == DispatcherPaused || why == RateLimited || why == Throttled
}

// park puts a line to those that wait for the same.
func (qs *queues) park(x *queueState, why Reason) {
	until := x.conditionFor(why)
	g, ok := qs.byCondition[until]
	if !ok {
		g = &queueSet{until: until, index: len(qs.parked)}
		qs.parked = append(qs.parked, g)
		qs.byCondition[until] = g
	}
	qs.move(x, g)
}

func (qs *queues) move(x *queueState, to *queueSet) {
	if x.in == to {
		return
	}
	if x.in != nil {
		qs.leave(x)
	}
	x.in, x.place = to, len(to.queues)
	to.queues = append(to.queues, x)
}

// leave takes a line out of its group. One that nothing waits in any more is forgotten.
func (qs *queues) leave(x *queueState) {
	g := x.in
	last := len(g.queues) - 1
	moved := g.queues[last]
	g.queues[x.place], moved.place = moved, x.place
	g.queues[last] = nil
	g.queues, x.in = g.queues[:last], nil
	if last > 0 || g.until.why == "" {
		return
	}
	delete(qs.byCondition, g.until)
	end := len(qs.parked) - 1
	other := qs.parked[end]
	qs.parked[g.index], other.index = other, g.index
	qs.parked[end] = nil
	qs.parked = qs.parked[:end]
}

// unpark frees the lines of groups that nothing keeps any more, or something else.
func (d *Dispatcher) unpark(r *round) {
	for _, g := range slices.Backward(d.queues.parked) { // from behind, where leave takes what it moves from
		if why, wait := d.picker.stillBlocked(g, r.moment); why != "" {
			r.wait(wait)
			continue
		}
		for len(g.queues) > 0 {
			d.queues.move(g.queues[len(g.queues)-1], &d.queues.free)
		}
	}
}

// counts says how many lines wait for which reason now.
func (d *Dispatcher) counts() map[Reason]int {
	now := d.gates.moment()
	by := make(map[Reason]int)
	each := func(list []*queueState) {
		for _, queue := range list {
			why, _ := d.picker.blocked(queue, now)
			by[cmp.Or(why, d.behind(queue, queue.item.ID), Ready)]++
		}
	}
	each(d.queues.fresh.queues)
	each(d.queues.free.queues)
	each(d.queues.ordered.queues)
	for _, g := range d.queues.parked {
		if why, _ := d.picker.stillBlocked(g, now); why != "" {
			by[why] += len(g.queues)
			continue
		}
		each(g.queues)
	}
	return by
}
