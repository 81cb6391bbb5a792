package dispatcher

// SetMaxLines bounds how many queues are known at once.
func (d *Dispatcher) SetMaxLines(n int) { d.queues.limit = n }

// Holds says how many tasks the dispatcher holds.
func (d *Dispatcher) Holds() int {
	n := 0
	for _, l := range d.queues.byName {
		n += cap(l.tasks)
	}
	return n
}

// Free says how many queues a round looks at one by one, since nothing is known to keep them waiting.
func (d *Dispatcher) Free() int { return len(d.queues.fresh.queues) + len(d.queues.free.queues) }

// Overslept gives the queues that a round would leave to wait although nothing keeps them, and says in how many groups queues wait.
func (d *Dispatcher) Overslept() (names []string, groups int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.picker.refresh()
	d.unpark(&round{moment: d.gates.moment()})
	n := 0
	for _, g := range d.queues.parked {
		for _, l := range g.queues {
			n++
			if why, _ := d.picker.blocked(l, d.gates.moment()); why == "" || l.in != g {
				names = append(names, l.name)
			}
		}
	}
	if n+d.Free()+len(d.queues.ordered.queues) != len(d.queues.all) {
		names = append(names, "one that stands nowhere")
	}
	return names, len(d.queues.parked)
}
