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
