package main

import (
	"time"

	"github.com/skalds-go/skalds/pkg/task"
)

// ignores notes that a run goes on although its context has ended.
func (c *checker) ignores(r *taskRun) { r.deaf, c.claim(r.claim).deaf = c.world.now, c.world.now }

// abandoned reports whether a run's node no longer waits for it.
func (c *checker) abandoned(r *taskRun) bool { return r.deaf != 0 && c.world.now >= r.deaf+cancelGrace }

// counts reports whether a run counts beside those of other tasks. One that ignores its end does as long as its task is
// at its node.
func (c *checker) counts(r *taskRun) bool {
	if !r.runs() || c.abandoned(r) {
		return false
	}
	if r.deaf == 0 {
		return true
	}
	doc, ok := c.truth.get(r.task)
	return ok && doc.Held() && doc.ClaimID == r.claim
}

// mayOverlap reports whether a run may go on while its task runs anew: it ignores its end, and a person has had the
// task tried again, which had ended, or its node has lost its lease.
func (c *checker) mayOverlap(t *taskRecord, r *taskRun) bool {
	s := r.session
	return r.deaf != 0 && (t.retries > r.retries || s.IsLost() || s.process.clock.at(s.TrustedUntil()) <= c.world.now)
}

// noticedWithin is how much later than its end a run may see that its context has ended: time goes from one event to
// the next, and a heartbeat is one.
const noticedWithin = time.Second

// gaveUp checks what becomes, by a report, of a task whose handler ignores its end: it has ended, and not before the
// grace is over.
func (c *checker) gaveUp(as role, before, after *task.Task) {
	r := c.claim(before.ClaimID)
	switch left := before.Held() && !after.Held(); {
	case !left || as != roleIngest || r.deaf == 0 || r.returned:
	case after.LifecycleStatus != task.Failed && after.LifecycleStatus != task.Cancelled:
		c.violate("%s became %s, and its handler is still at work by claim %s", before.ID, after.LifecycleStatus, before.ClaimID)
	case c.world.now < r.deaf+cancelGrace-noticedWithin && c.sessions[before.Incarnation].process.thawed < r.began:
		c.violate("%s was abandoned %v after the end of its context, and the grace is %v", before.ID, c.world.now-r.deaf, cancelGrace)
	}
}

// abandonedAfter is how long after the grace, when all is well, a task has ended.
const abandonedAfter = 10 * time.Second

// unabandoned reports a run that should have been abandoned.
func (c *checker) unabandoned(r *taskRun, doc *task.Task, say func(format string, args ...any)) {
	if doc.ClaimID == r.claim && doc.Held() && c.world.now > r.deaf+cancelGrace+abandonedAfter {
		say("%s ignores its end since %d ms by claim %s, and is still %s", r.task, r.deaf.Milliseconds(), r.claim, doc.LifecycleStatus)
	}
}
