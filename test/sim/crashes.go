package main

import "github.com/skalds-go/skalds/pkg/task"

// crashed checks the crashes that are counted against a task.
func (c *checker) crashed(t *taskRecord, before, after *task.Task) {
	s := c.sessions[before.Incarnation]
	switch more := after.Crashes - before.Crashes; {
	case more == 0, after.Crashes == 0 && before.LifecycleStatus.Terminal():
	case more != 1:
		c.violate("%s had %d crashes and has %d", t.id, before.Crashes, after.Crashes)
	case s == nil || !s.process.dead || s.drained:
		c.violate("%s has another crash, and %s has not crashed", t.id, before.Incarnation)
	}
}

// beside checks that nothing runs beside what must run alone.
func (c *checker) beside(r *taskRun) {
	p := r.session.process
	if r.session.node.running <= 1 || r.ghost {
		return
	}
	for _, t := range c.order {
		for _, o := range t.runs {
			if o != r && c.counts(o) && o.session.process == p && (c.claim(o.claim).alone || c.claim(r.claim).alone) {
				c.violate("%s runs beside %s at %s, and one of them must run alone", r.task, o.task, r.session.incarnation)
			}
		}
	}
}
