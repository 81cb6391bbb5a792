package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/skalds-go/skalds/pkg/task"
)

// wish is what people want of a task, in the order in which the store took it.
type wish struct {
	want      task.Status // Running, Paused or Cancelled
	at        time.Duration
	version   int64 // of the newest attachments
	versionAt time.Duration
}

// wished takes in what a person asked for, and checks that nothing else forgets it or goes against it.
func (c *checker) wished(t *taskRecord, as role, before, after *task.Task, change *task.Change) {
	switch {
	case as != rolePeople:
	case change.Update != nil:
		t.wish.version, t.wish.versionAt = after.AttachmentsVersion, c.world.now
		if v := decodeJob(after.Attachments).Version; v != t.wish.version {
			c.violate("%s has attachments of version %d as its version %d", t.id, v, t.wish.version)
		}
		return
	case before.LifecycleStatus.Terminal():
		t.wish.want, t.wish.at = task.Running, c.world.now
	default:
		t.wish.want, t.wish.at = after.Target(), c.world.now
		if t.wish.want == task.Cancelled {
			c.claim(before.ClaimID).cancel = true
		}
	}
	if after.AttachmentsVersion != before.AttachmentsVersion {
		c.violate("the %s changed the attachments of %s", as, t.id)
	}
	want, ends := t.wish.want, after.LifecycleStatus.Terminal()
	switch {
	case !ends && after.Target() != want:
		c.violate("%s is to be %s, and the %s made it %s %s", t.id, want, as, after.LifecycleStatus, after.Desired)
	case change.Assign != nil && before.LifecycleStatus == task.Created && want != task.Running:
		c.violate("%s is to be %s, and the %s assigned it", t.id, want, as)
	case !ends || after.LifecycleStatus != task.Cancelled || want == task.Cancelled:
	case as != roleIngest || change.Run == nil || change.Run.Outcome != string(task.ReportCancelled):
		c.violate("%s is to be %s, and the %s cancelled it", t.id, want, as)
	case !c.claim(before.ClaimID).cancel:
		c.violate("%s was cancelled, and nobody has asked that of claim %s", t.id, before.ClaimID)
	}
}

// obeyedAfter is how long after the last fault, or the wish if that is later, what people want has been carried out.
//
// Who leads is settled after 5 s by then, and a node that died is given away after two waits, if the second begins when its key expires at the
// end of the first.
const obeyedAfter = 30 * time.Second

// calm says whether nothing has gone wrong for so long that what was asked for at a time must have been carried out.
func (c *checker) calm(since ...time.Duration) bool {
	last := max(c.cfg.faults, c.mended)
	for _, at := range since {
		last = max(last, at)
	}
	return last != never && c.world.now-last > obeyedAfter
}

// informed checks that a run which ends has seen the newest attachments.
func (c *checker) informed(t *taskRecord, r *taskRun) {
	if r.deaf == 0 && r.version < t.wish.version && c.calm(t.wish.versionAt, r.started) {
		c.violate("%s runs by claim %s with attachments of version %d, and there is version %d", t.id, r.claim, r.version, t.wish.version)
	}
}

// unmet says what people want and is not carried out yet.
func (c *checker) unmet() (list []string) {
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	for _, id := range slices.Sorted(maps.Keys(c.drained)) {
		c.undrained(id, say)
	}
	c.unsteered(say)
	for _, t := range c.order {
		doc, ok := c.truth.get(t.id)
		if !ok || doc.LifecycleStatus.Terminal() {
			continue
		}
		c.overdue(t)
		want, since := t.wish.want, t.wish.at.Milliseconds()
		if want == task.Cancelled || doc.Desired != "" || (want == task.Paused) != (doc.LifecycleStatus == task.Paused) {
			say("%s is to be %s since %d ms, and is %s %s", t.id, want, since, doc.LifecycleStatus, doc.Desired)
		}
		for _, r := range t.runs {
			if r.deaf != 0 {
				c.unabandoned(r, &doc, say)
				continue
			}
			if r.version < t.wish.version {
				say("%s runs by claim %s with attachments of version %d, and there is version %d", t.id, r.claim, r.version, t.wish.version)
			}
			if r.resting != (want == task.Paused) {
				say("%s is to be %s since %d ms, and its run pauses: %t", t.id, want, since, r.resting)
			}
		}
	}
	return list
}

// anyPaused says whether a task is paused, or to be.
func (c *checker) anyPaused() bool {
	for _, t := range c.order {
		if doc, ok := c.truth.get(t.id); ok && doc.Target() == task.Paused {
			return true
		}
	}
	return false
}
