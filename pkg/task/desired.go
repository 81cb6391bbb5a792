package task

import "encoding/json"

// A person may ask for a task to be cancelled, paused or resumed. If no node holds the task, that happens at once.
// Otherwise the request is stored as Desired until a report of the node shows that it was carried out. Desired is set
// only while it differs from the status. The two together always show what was asked for last, in whatever order
// requests and reports are written: see [Task.Target].

// Target returns what people want the task to be: Cancelled, Paused, or Running if it may run. For an ended task it
// returns the status.
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

// Cancel ends a task on request. If a node holds it, the request is stored and the node carries it out. Cancel reports
// false for a task that has ended.
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

// Pause pauses a task on request. A waiting task is held back; if a node holds the task, the request is stored and the
// node carries it out. Pause reports false for a task that has ended, that is to be cancelled, or that is or will be
// paused already.
func Pause(t *Task, now int64) (Change, bool) {
	if t.Target() != Running {
		return Change{}, false
	}
	c := t.changeDesired(now)
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

// Resume lets a task go on. It undoes a pause, and withdraws a pause or a cancel that is not yet carried out. A task
// that no node holds waits again. Resume reports false for a task that has ended and for one that may run already.
func Resume(t *Task, now int64) (Change, bool) {
	if t.LifecycleStatus.Terminal() || t.Target() == Running {
		return Change{}, false
	}
	c := t.changeDesired(now)
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

// changeDesired starts a change that applies only while Desired is as it was read.
func (t *Task) changeDesired(now int64) Change {
	return Change{ID: t.ID, From: t.LifecycleStatus.bit(), Attempt: t.Attempt, ClaimID: t.ClaimID, IfDesired: new(t.Desired),
		To: t.LifecycleStatus, UpdatedAt: now}
}

// ApplyDesired carries out a request that was stored while a node held the task, once no node does. It reports false if
// there is nothing to do.
func ApplyDesired(t *Task, now int64) (Change, bool) {
	if t.Desired == "" || t.Held() || t.LifecycleStatus.Terminal() {
		return Change{}, false
	}
	c := t.changeDesired(now)
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

// Attach replaces a task's attachments. A waiting task has the new ones at its next claim; a node that holds the task
// is sent them. Attach reports false for a task that has ended.
func Attach(t *Task, attachments json.RawMessage, now int64) (Change, bool) {
	if t.LifecycleStatus.Terminal() {
		return Change{}, false
	}
	c := t.changeDesired(now)
	c.IfDesired = nil // the two have nothing to do with each other
	c.Update = &Update{From: t.AttachmentsVersion, Attachments: attachments}
	return c, true
}
