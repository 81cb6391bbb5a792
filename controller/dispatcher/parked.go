package dispatcher

import "slices"

// queueSet is a set of queues that a round treats as one, such as all that wait for the same condition.
type queueSet struct {
	until  condition     // what the queues wait for; zero if they do not wait
	queues []*queueState // their order depends on history only
	index  int           // in queues.parked
}

// condition is what a parked queue waits for. It ends for all queues that are parked for it at the same time.
type condition struct {
	why    Reason
	of     string // the namespace, class, pool or key; for reasons of placement, the class
	labels string // selector
	anti   string
	n      int // slots; for a key, its limit
}

// until returns what the queue waits for.
func (q *queueState) until(why Reason) condition {
	c := condition{why: why}
	switch why {
	case NamespacePaused, NamespaceFull:
		c.of = q.item.Namespace
	case ClassPaused, ClassRateLimited:
		c.of = q.class
	case PoolUnknown, PoolFull:
		c.of = q.pool
	case KeyBusy:
		c.of, c.n = q.key, q.keyLimit
	default:
		c.of, c.labels, c.anti, c.n = q.class, q.request.Selector.String(), q.anti, q.request.Slots
	}
	return c
}

// waits reports whether the queue is parked.
func (q *queueState) waits() bool { return q.in.until.why != "" }

// keepsAll reports whether a reason keeps all queues waiting. It ends the round, and the queues stay in the order.
func keepsAll(why Reason) bool {
	return why == DispatcherPaused || why == RateLimited || why == Throttled
}

// park moves a queue to the set of those that wait for the same condition.
func (qs *queues) park(q *queueState, why Reason) {
	until := q.until(why)
	set, ok := qs.byCondition[until]
	if !ok {
		set = &queueSet{until: until, index: len(qs.parked)}
		qs.parked = append(qs.parked, set)
		qs.byCondition[until] = set
	}
	qs.move(q, set)
}

// unpark makes the next round gate all queues of a set.
func (qs *queues) unpark(set *queueSet) {
	for len(set.queues) > 0 {
		qs.move(set.queues[len(set.queues)-1], &qs.open)
	}
}

func (qs *queues) move(q *queueState, to *queueSet) {
	if q.in == to {
		return
	}
	if q.in != nil {
		qs.leave(q)
	}
	q.in, q.pos = to, len(to.queues)
	to.queues = append(to.queues, q)
}

// leave removes a queue from its set. It deletes a parked set that becomes empty.
func (qs *queues) leave(q *queueState) {
	set := q.in
	last := len(set.queues) - 1
	moved := set.queues[last]
	set.queues[q.pos], moved.pos = moved, q.pos
	set.queues[last] = nil
	set.queues, q.in = set.queues[:last], nil
	if last > 0 || set.until.why == "" {
		return
	}
	delete(qs.byCondition, set.until)
	end := len(qs.parked) - 1
	other := qs.parked[end]
	qs.parked[set.index], other.index = other, set.index
	qs.parked[end] = nil
	qs.parked = qs.parked[:end]
}

// wake unparks the queues whose condition has ended or changed. For the others it asks for a round when theirs may end.
func (d *Dispatcher) wake(r *round) {
	for _, set := range slices.Backward(d.queues.parked) { // backward, as leave fills a gap from the end
		if why, wait := d.picker.blockedSet(set, r.moment); why != "" {
			r.wait(wait)
			continue
		}
		d.queues.unpark(set)
	}
}
