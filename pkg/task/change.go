package task

import (
	"encoding/json"
	"fmt"
)

// Change is one compare-and-set on one task: it applies only to a task whose status is in From and whose attempt and
// claim id are the ones given; otherwise it changes nothing.
type Change struct {
	ID        string
	From      Statuses
	Attempt   int64
	ClaimID   string
	IfDesired *Desired // if given, what its Desired must be, too
	AsOf      int64    // if not 0, what its AssignedDateTime must be, too: no other leader has taken the claim over since

	To        Status // the status after it
	UpdatedAt int64  // epoch ms

	Assign       *Assignment     // executor, incarnation, attempt and claim id of a claim
	Unassign     bool            // no executor and no incarnation; attempt and claim id stay, as the fence, but the claim id of a paused task
	StartedAt    int64           // 0 = as it was
	FinishedAt   int64           // 0 = as it was
	Result       json.RawMessage // nil = as it was
	Error        string          // empty = as it was
	Progress     *Progress       // nil = as it was
	Desired      Desired         // empty = as it was; a terminal status clears it in any case
	ClearDesired bool            // the wish is withdrawn, or carried out
	NotBefore    int64           // epoch ms before which the task is not to run; 0 = as it was
	Counts       *Counts         // failures and crashes; nil = as they were
	Run          *Run            // one more ended attempt for the history, which keeps the last MaxRuns; nil = none
	Update       *Update         // new attachments; nil = as they were
	Reset        bool            // forget the outcome of the last run: times, result, error, progress, counts, wishes
}

// MaxRuns is how many ended attempts a task's history keeps.
const MaxRuns = 20

// Counts is what is laid to a task's account.
type Counts struct {
	Failures int
	Crashes  int
}

// Update replaces a task's attachments. It is part of what must match: it applies only if the attachments are still
// those of version From.
type Update struct {
	From        int64 // attachmentsVersion as read; the new one is From+1
	Attachments json.RawMessage
}

// Assignment is one claim: this attempt of the task belongs to this incarnation of the node.
type Assignment struct {
	Executor    string
	Incarnation string
	Attempt     int64
	ClaimID     string
	At          int64  // epoch ms
	KeyPermit   string // of the task's concurrency key; empty = it has none
	PoolPermit  string // of its pool; empty = it has none
}

// Assignment is the task's present claim.
func (t *Task) Assignment() Assignment {
	return Assignment{Executor: t.Executor, Incarnation: t.Incarnation, Attempt: t.Attempt, ClaimID: t.ClaimID, At: t.AssignedDateTime,
		KeyPermit: t.KeyPermit, PoolPermit: t.PoolPermit}
}

// Frees reports whether the change ends a claim, so that the task's permits are free.
func (c *Change) Frees() bool { return c.Unassign || c.To.Terminal() }

// Matches reports whether the change applies to t.
func (c *Change) Matches(t *Task) bool {
	return c.ID == t.ID && c.From.Has(t.LifecycleStatus) && c.Attempt == t.Attempt && c.ClaimID == t.ClaimID &&
		(c.IfDesired == nil || *c.IfDesired == t.Desired) && (c.AsOf == 0 || c.AsOf == t.AssignedDateTime) && (c.Update == nil || c.Update.From == t.AttachmentsVersion)
}

// Apply carries the change out on t, if it applies. It is the meaning of a change; every store does the same in one
// atomic step.
func (c *Change) Apply(t *Task) bool {
	if !c.Matches(t) {
		return false
	}
	t.LifecycleStatus = c.To
	t.UpdateDateTime = c.UpdatedAt
	if c.Reset {
		t.StartDateTime, t.FinishDateTime, t.AssignedDateTime = 0, 0, 0
		t.Result, t.Error, t.Progress, t.Failures, t.Crashes, t.Desired, t.NotBefore = nil, "", nil, 0, 0, "", 0
	}
	if a := c.Assign; a != nil {
		t.Executor, t.Incarnation, t.Attempt, t.ClaimID, t.AssignedDateTime = a.Executor, a.Incarnation, a.Attempt, a.ClaimID, a.At
		t.StartDateTime, t.Progress, t.Error = 0, nil, ""
		t.KeyPermit, t.PoolPermit = a.KeyPermit, a.PoolPermit
	}
	if c.Frees() {
		t.KeyPermit, t.PoolPermit = "", ""
	}
	if c.Unassign {
		t.Executor, t.Incarnation = "", ""
		if c.To == Paused { // a status in which reports count: without a claim id none does
			t.ClaimID = ""
		}
	}
	if c.StartedAt != 0 {
		t.StartDateTime = c.StartedAt
	}
	if c.FinishedAt != 0 {
		t.FinishDateTime = c.FinishedAt
	}
	if c.Result != nil {
		t.Result = c.Result
	}
	if c.Error != "" {
		t.Error = c.Error
	}
	if c.Progress != nil {
		t.Progress = c.Progress
	}
	if c.Desired != "" {
		t.Desired = c.Desired
	}
	if c.To.Terminal() || c.ClearDesired {
		t.Desired = ""
	}
	if c.NotBefore != 0 {
		t.NotBefore = c.NotBefore
	}
	if c.Counts != nil {
		t.Failures, t.Crashes = c.Counts.Failures, c.Counts.Crashes
	}
	if c.Run != nil {
		t.Attempts = append(t.Attempts[max(0, len(t.Attempts)-MaxRuns+1):len(t.Attempts):len(t.Attempts)], *c.Run)
	}
	if c.Update != nil {
		t.Attachments, t.AttachmentsVersion = c.Update.Attachments, c.Update.From+1
	}
	return true
}

// change begins the change of t by e. Where e is not accepted in t's status, the change applies to nothing.
func (t *Task) change(e Event, now int64) Change {
	c := Change{ID: t.ID, Attempt: t.Attempt, ClaimID: t.ClaimID, UpdatedAt: now}
	if to, ok := Next(t.LifecycleStatus, e); ok {
		c.From, c.To = t.LifecycleStatus.bit(), to
	}
	return c
}

// Claim assigns a task that waits: the next attempt, under a new claim id.
func Claim(t *Task, node, incarnation, claimID string, now int64) Change {
	c := t.change(EventClaim, now)
	c.Assign = &Assignment{Executor: node, Incarnation: incarnation, Attempt: t.Attempt + 1, ClaimID: claimID, At: now}
	return c
}

// Unclaim undoes a claim that certainly reached no node, as long as no other leader has adopted it: that one may have
// sent it.
func Unclaim(id string, a Assignment, now int64) Change {
	return Change{ID: id, From: sources(EventUnclaim, Created), Attempt: a.Attempt, ClaimID: a.ClaimID, AsOf: a.At,
		To: Created, UpdatedAt: now, Unassign: true}
}

// Adopt takes over the claim of a task that is assigned from the leader that made it: the one that does not know
// whether it has been sent may send it after that, and the one that does cannot give it back any more.
func Adopt(t *Task, now int64) Change {
	a := t.Assignment()
	a.At = max(now, t.AssignedDateTime+1)
	return Change{ID: t.ID, From: Set(Assigning), Attempt: t.Attempt, ClaimID: t.ClaimID, AsOf: t.AssignedDateTime, To: Assigning, UpdatedAt: now, Assign: &a}
}

// Refuse ends a task that waits and can never run.
func Refuse(t *Task, reason string, now int64) Change {
	c := t.change(EventRefuse, now)
	c.FinishedAt, c.Error = now, reason
	return c
}

// Loss is how a node was lost.
type Loss uint8

const (
	// LossLeft is a node that said goodbye: it holds nothing any more.
	LossLeft Loss = iota
	// LossSilent is a node that nobody has heard of for too long: its process may have died, or its machine, or the way
	// to it.
	LossSilent
	// LossDied is a node whose process is known to have died while its machine went on.
	LossDied
	// LossForgotten is a node that lives, and does not hold the task any more: its last report got lost.
	LossForgotten
)

var lossOutcomes = [...]string{LossLeft: "left", LossSilent: "lost", LossDied: "crashed", LossForgotten: "forgotten"}

// Lose takes a task from a node that is gone. A task that a person has cancelled meanwhile ends; one that is to be
// paused, or is and is not to go on, is paused without a node; any other waits again. Only the death of a process that
// ran the task counts as a crash of it, and from as many crashes on as the policy allows the task is failed. It reports
// false for a task that no node holds.
func Lose(t *Task, loss Loss, p Policy, now int64) (Change, bool) {
	if !t.Held() {
		return Change{}, false
	}
	run := &Run{Attempt: t.Attempt, Executor: t.Executor, StartDateTime: t.StartDateTime, FinishDateTime: now, Outcome: lossOutcomes[loss]}
	if t.Desired == DesiredCancelled {
		c := t.change(EventCancel, now)
		c.IfDesired, c.FinishedAt, c.Run = new(t.Desired), now, run // unless it is undone meanwhile
		return c, true
	}
	c := t.change(EventLose, now)
	c.To, c.IfDesired = Created, new(t.Desired)
	if t.Target() == Paused {
		c.To = Paused
	}
	c.Unassign, c.ClearDesired, c.Run = true, true, run
	if loss == LossDied && t.LifecycleStatus == Running {
		c.Counts = &Counts{Failures: t.Failures, Crashes: t.Crashes + 1}
		if limit := p.maxCrashes(t); limit > 0 && c.Counts.Crashes >= limit {
			c = t.change(EventFail, now)
			c.FinishedAt, c.Run, c.Counts = now, run, &Counts{Failures: t.Failures, Crashes: t.Crashes + 1}
			c.Error = fmt.Sprintf("the process of its node died %d times while it ran, allowed are %d (maxCrashes)", c.Counts.Crashes, limit)
		}
	}
	return c, true
}

// Retry is a person's wish to run an ended task again, as a new attempt. It reports false for a task that has not
// ended.
func Retry(t *Task, now int64) (Change, bool) {
	if _, ok := Next(t.LifecycleStatus, EventRetry); !ok {
		return Change{}, false
	}
	c := t.change(EventRetry, now)
	c.Unassign, c.Reset = true, true
	return c, true
}
