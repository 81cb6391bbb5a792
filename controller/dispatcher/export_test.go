package dispatcher

// SetMaxLines bounds how many queues are known at once.
func (d *Dispatcher) SetMaxLines(n int) { d.lines.limit = n }

// Holds says how many tasks the dispatcher holds.
func (d *Dispatcher) Holds() int {
	n := 0
	for _, l := range d.lines.byName {
		n += cap(l.tasks)
	}
	return n
}

// Free says how many queues a round looks at one by one, since nothing is known to keep them waiting.
func (d *Dispatcher) Free() int { return len(d.lines.fresh.lines) + len(d.lines.free.lines) }

// Overslept gives the queues that a round would leave to wait although nothing keeps them, and says in how many groups queues wait.
func (d *Dispatcher) Overslept() (names []string, groups int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refresh()
	d.wake(&round{moment: d.moment()})
	n := 0
	for _, g := range d.lines.waiting {
		for _, l := range g.lines {
			n++
			if why, _ := d.keeps(l, d.moment()); why == "" || l.in != g {
				names = append(names, l.name)
			}
		}
	}
	if n+d.Free()+len(d.lines.ordered.lines) != len(d.lines.all) {
		names = append(names, "one that stands nowhere")
	}
	return names, len(d.lines.waiting)
}
