package task

import "encoding/json"

// A wish is what a person asks of a task. Of one that no node holds it is carried out at once. For one that is on a
// node it is stored as Desired, and a report of the node ends it. Desired is there only while status and wish differ,
// and the two together always say what was asked for last, in whatever order wishes and reports are written: see
// [Task.Target].

// Target is what people want of a task: Cancelled, Paused, or Running for one that may run; of an ended task its
// status.
func (t *Task) Target() Status {
	switch {
	case t.LifecycleStatus.Terminal():
		return t.LifecycleStatus
	case t.Desired == DesiredCancelled:
		return Cancelled
	case t.Desired == DesiredPaused:
		return Paused
	case t.LifecycleStatus == Paused && t.Desired != DesiredRunning:
		return Paused
	}
	return Running
}

// Cancel is a person's wish to end a task. One that no node holds ends at once; for one that is on a node the wish is
// stored, and the node carries it out. It reports false for a task that has ended.
func Cancel(t *Task, now int64) (Change, bool) {
	if t.LifecycleStatus.Terminal() {
		return Change{}, false
	}
	c := t.change(EventCancel, now)
	if t.Held() {
		c.To, c.Desired = t.LifecycleStatus, DesiredCancelled
	} else {
		c.FinishedAt = now
	}
	return c, true
}

// Pause is a person's wish that a task does not go on. One that waits is held back; for one that is on a node the wish
// is stored, and the node carries it out. It reports false for a task that has ended or is to be cancelled, and for one
// that is paused, or to be paused, already.
func Pause(t *Task, now int64) (Change, bool) {
	if t.Target() != Running {
		return Change{}, false
	}
	c := t.steer(now)
	switch {
	case !t.Held():
		c.To, c.Unassign, c.ClearDesired = Paused, true, true
	case t.LifecycleStatus == Paused:
		c.ClearDesired = true
	default:
		c.Desired = DesiredPaused
	}
	return c, true
}

// Resume is a person's wish that a task goes on: it undoes a pause, and a pause or a cancel that is not yet carried
// out. One that no node holds waits again. It reports false for a task that has ended, and for one that may run
// already.
func Resume(t *Task, now int64) (Change, bool) {
	if t.LifecycleStatus.Terminal() || t.Target() == Running {
		return Change{}, false
	}
	c := t.steer(now)
	switch {
	case !t.Held():
		c.To, c.ClearDesired = Created, true
	case t.LifecycleStatus == Paused:
		c.Desired = DesiredRunning
	default:
		c.ClearDesired = true
	}
	return c, true
}

// steer begins a change that what is asked for must not have changed before.
func (t *Task) steer(now int64) Change {
	return Change{ID: t.ID, From: t.LifecycleStatus.bit(), Attempt: t.Attempt, ClaimID: t.ClaimID, IfDesired: new(t.Desired), To: t.LifecycleStatus, UpdatedAt: now}
}

// ApplyDesired carries out a wish that was stored while a node held the task, and that is left now that none does. It
// reports false where there is nothing to do.
func ApplyDesired(t *Task, now int64) (Change, bool) {
	if t.Desired == "" || t.Held() || t.LifecycleStatus.Terminal() {
		return Change{}, false
	}
	c := t.steer(now)
	c.ClearDesired = true
	switch t.Target() {
	case Cancelled:
		c.To, c.FinishedAt = Cancelled, now
	case Paused:
		c.To, c.Unassign = Paused, true
	default:
		c.To = Created
	}
	return c, true
}

// Attach replaces a task's attachments. A task that waits has the new ones at its next claim; a node that holds it is
// told of them. It reports false for a task that has ended.
func Attach(t *Task, attachments json.RawMessage, now int64) (Change, bool) {
	if t.LifecycleStatus.Terminal() {
		return Change{}, false
	}
	c := t.steer(now)
	c.IfDesired = nil // the two have nothing to do with each other
	c.Update = &Update{From: t.AttachmentsVersion, Attachments: attachments}
	return c, true
}
