package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/skalds-go/skalds/pkg/task"
)

// desired is the state that people requested of a task, in the order in which the store took the requests.
type desired struct {
	want      task.Status // Running, Paused or Cancelled
	at        time.Duration
	version   int64 // of the newest attachments
	versionAt time.Duration
}

// checkDesired takes in a request of a person, and checks that nothing else forgets or contradicts it.
func (c *checker) checkDesired(t *taskRecord, as role, before, after *task.Task, change *task.Change) {
	switch {
	case as != rolePeople:
	case change.Update != nil:
		t.desired.version, t.desired.versionAt = after.AttachmentsVersion, c.world.now
		if v := decodeJob(after.Attachments).Version; v != t.desired.version {
			c.violate("%s has attachments of version %d as its version %d", t.id, v, t.desired.version)
		}
		return
	case before.LifecycleStatus.Terminal():
		t.desired.want, t.desired.at = task.Running, c.world.now
	default:
		t.desired.want, t.desired.at = after.Target(), c.world.now
		if t.desired.want == task.Cancelled {
			c.claim(before.ClaimID).cancel = true
		}
	}
	if after.AttachmentsVersion != before.AttachmentsVersion {
		c.violate("the %s changed the attachments of %s", as, t.id)
	}
	want, ends := t.desired.want, after.LifecycleStatus.Terminal()
	switch {
	case !ends && after.Target() != want:
		c.violate("%s should be %s, and the %s made it %s %s", t.id, want, as, after.LifecycleStatus, after.Desired)
	case change.Assign != nil && before.LifecycleStatus == task.Created && want != task.Running:
		c.violate("%s should be %s, and the %s assigned it", t.id, want, as)
	case !ends || after.LifecycleStatus != task.Cancelled || want == task.Cancelled:
	case as != roleIngest || change.Run == nil || change.Run.Outcome != string(task.ReportCancelled):
		c.violate("%s should be %s, and the %s cancelled it", t.id, want, as)
	case !c.claim(before.ClaimID).cancel:
		c.violate("%s was cancelled, and nobody has asked that of claim %s", t.id, before.ClaimID)
	}
}

// obeyedAfter is how long after the last fault, or after the request if that is later, a request has been carried out.
//
// By then a leader has been elected for 5 s, and the work of a node that died has been reassigned after two waits, if
// the second begins when its key expires at the end of the first.
const obeyedAfter = 30 * time.Second

// calm reports whether nothing has gone wrong for so long that a request made at a time must have been carried out.
func (c *checker) calm(since ...time.Duration) bool {
	last := max(c.cfg.faults, c.mended)
	for _, at := range since {
		last = max(last, at)
	}
	return last != never && c.world.now-last > obeyedAfter
}

// informed checks that a run which ends has seen the newest attachments.
func (c *checker) informed(t *taskRecord, r *taskRun) {
	if r.deaf == 0 && r.version < t.desired.version && c.calm(t.desired.versionAt, r.started) {
		c.violate("%s runs by claim %s with attachments of version %d, and there is version %d", t.id, r.claim, r.version, t.desired.version)
	}
}

// unmet lists the requests that have not been carried out yet.
func (c *checker) unmet() (list []string) {
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	for _, id := range slices.Sorted(maps.Keys(c.drained)) {
		c.undrained(id, say)
	}
	c.sentThoughPaused(say)
	for _, t := range c.order {
		doc, ok := c.truth.get(t.id)
		if !ok || doc.LifecycleStatus.Terminal() {
			continue
		}
		c.overdue(t)
		want, since := t.desired.want, t.desired.at.Milliseconds()
		if want == task.Cancelled || doc.Desired != "" || (want == task.Paused) != (doc.LifecycleStatus == task.Paused) {
			say("%s should be %s since %d ms, and is %s %s", t.id, want, since, doc.LifecycleStatus, doc.Desired)
		}
		for _, r := range t.runs {
			if r.deaf != 0 {
				c.unabandoned(r, &doc, say)
				continue
			}
			if r.version < t.desired.version {
				say("%s runs by claim %s with attachments of version %d, and there is version %d", t.id, r.claim, r.version, t.desired.version)
			}
			if r.resting != (want == task.Paused) {
				say("%s should be %s since %d ms, and its run pauses: %t", t.id, want, since, r.resting)
			}
		}
	}
	return list
}

// anyPaused reports whether a task is paused, or should be.
func (c *checker) anyPaused() bool {
	for _, t := range c.order {
		if doc, ok := c.truth.get(t.id); ok && doc.Target() == task.Paused {
			return true
		}
	}
	return false
}
