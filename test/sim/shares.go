package main

import (
	"time"

	"github.com/skalds-go/skalds/pkg/task"
)

// The limit of a namespace, and that tasks of one anti-affinity key keep off each other's nodes, are counted by the
// leader alone: they hold for what it knows of. It knows the claims that were there when it began, and its own, but for
// those that the store took when nobody waited for that any more.

// holding is a claim that the store shows at a node.
type holding struct {
	claim           *claimRecord
	node            string // its id
	namespace, anti string
}

// knows reports whether a leadership must have known of a claim.
func (l *leadership) knows(r *claimRecord) bool {
	return l != nil && (r.by == l && !r.late || r.storedAt < l.primed)
}

// shares notes which claims nodes hold.
func (c *checker) shares(before, after *task.Task) {
	switch {
	case after.Held():
		c.held[after.ID] = holding{c.claim(after.ClaimID), after.Executor, after.Namespace, after.AntiAffinityKey}
	case before.Held():
		delete(c.held, after.ID)
	}
}

// others counts the claims that a leadership must know of and that match.
func (c *checker) others(l *leadership, matches func(h holding) bool) (n int) {
	for _, h := range c.held {
		if l.knows(h.claim) && matches(h) {
			n++
		}
	}
	return n
}

// ofNamespace is how many claims of a task's namespace there are with the one that is made now; 0 if it comes too late
// to be counted.
func (c *checker) ofNamespace(t *task.Task, r *claimRecord) int {
	if r.late {
		return 0
	}
	return 1 + c.others(r.by, func(h holding) bool { return h.namespace == t.Namespace })
}

// keepsOff checks that a task is not placed at a node that holds one of its anti-affinity key.
func (c *checker) keepsOff(t *task.Task, node string, r *claimRecord) {
	if t.AntiAffinityKey == "" || r.late {
		return
	}
	if n := c.others(r.by, func(h holding) bool { return h.anti == t.AntiAffinityKey && h.node == node }); n > 0 {
		c.violate("%s was placed at %s, which holds %d of its anti-affinity key %s", t.ID, node, n, t.AntiAffinityKey)
	}
}

// apart checks that nothing of its anti-affinity key runs at the node at which a run begins.
func (c *checker) apart(t *taskRecord, r *taskRun) {
	if t.doc.AntiAffinityKey == "" || r.ghost {
		return
	}
	mine := c.claim(r.claim)
	for _, o := range c.order {
		for _, run := range o.runs {
			if run == r || o.doc.AntiAffinityKey != t.doc.AntiAffinityKey || run.session.process != r.session.process || !c.counts(run) || o.late(c) {
				continue
			}
			if theirs := c.claim(run.claim); mine.by.knows(theirs) || theirs.by.knows(mine) {
				c.violate("%s runs beside %s at %s, and both have the anti-affinity key %s", r.task, run.task, r.session.incarnation, t.doc.AntiAffinityKey)
			}
		}
	}
}

// late reports whether a task's deadline has passed, so that the leader may have ended it although it runs.
func (t *taskRecord) late(c *checker) bool {
	at := t.times.deadline
	return at != 0 && scale(c.world.now, fastest, million)+time.Second > at
}
