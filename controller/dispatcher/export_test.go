package dispatcher

// SetMaxQueues bounds how many queues are known at once.
func (d *Dispatcher) SetMaxQueues(n int) { d.queues.limit = n }

// Holds returns how many tasks the dispatcher holds.
func (d *Dispatcher) Holds() int {
	n := 0
	for _, q := range d.queues.byName {
		n += cap(q.tasks)
	}
	return n
}

// Free returns how many queues a round checks one by one, since nothing is known to keep them waiting.
func (d *Dispatcher) Free() int { return len(d.queues.unread.queues) + len(d.queues.open.queues) }

// Overslept returns the queues that a round would leave parked although nothing keeps them waiting, and for how many
// conditions queues are parked.
func (d *Dispatcher) Overslept() (names []string, conditions int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.picker.refresh()
	d.wake(&round{moment: d.gates.moment()})
	n := 0
	for _, set := range d.queues.parked {
		for _, q := range set.queues {
			n++
			if why, _ := d.picker.blocked(q, d.gates.moment()); why == "" || q.in != set {
				names = append(names, q.name)
			}
		}
	}
	if n+d.Free()+len(d.queues.ordered.queues) != len(d.queues.all) {
		names = append(names, "one that stands nowhere")
	}
	return names, len(d.queues.parked)
}
