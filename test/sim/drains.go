package main

import "github.com/skalds-go/skalds/pkg/registry"

// drains notes that people want a node drained, or not any more.
func (c *checker) drains(node string, draining bool) {
	c.world.note("people", "want %s drained: %t", node, draining)
	if !draining {
		delete(c.drained, node)
	} else if _, was := c.drained[node]; !was {
		c.drained[node] = c.world.now
	}
}

// draining reports whether people want a node drained.
func (c *checker) draining(node string) bool {
	_, yes := c.drained[node]
	return yes
}

// placed checks that a task is not placed at a node that has been drained for long.
func (c *checker) placed(t *taskRecord, node string) {
	if at, drained := c.drained[node]; drained && c.calm(at) {
		c.violate("%s was placed at %s, which should be drained since %d ms", t.id, node, at.Milliseconds())
	}
}

// undrained reports what keeps a node from being drained: something pauses there, or the node does not show that it
// drains.
func (c *checker) undrained(id string, say func(format string, args ...any)) {
	for _, n := range c.cluster.workers {
		if n.id != id || n.process.dead || n.session == nil {
			continue
		}
		for _, t := range c.order {
			for _, r := range t.runs {
				if r.session == n.session && r.resting {
					say("%s pauses at %s, which should be drained since %d ms", t.id, id, c.drained[id].Milliseconds())
				}
			}
		}
		seen, ok, err := c.cluster.redis.mem.Node(background, id)
		if err != nil {
			panic(err) // the memory registry always answers
		}
		if ok && seen.Incarnation == n.session.incarnation && seen.State != registry.Draining {
			say("%s should be drained since %d ms, and is %s", id, c.drained[id].Milliseconds(), seen.State)
		}
	}
}
