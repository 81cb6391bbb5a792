package task

import (
	"encoding/json"
	"fmt"
)

// Change is one compare-and-set on one task. It applies only to a task whose status is in From and whose attempt and
// claim id are the given ones. Otherwise it changes nothing.
type Change struct {
	ID        string
	From      Statuses
	Attempt   int64
	ClaimID   string
	IfDesired *Desired // if set, the task's Desired must equal it, too
	AsOf      int64    // if not 0, AssignedDateTime must equal it, too: no other leader has adopted the claim

	To        Status // the status after it
	UpdatedAt int64  // epoch ms

	Assign       *Assignment     // executor, incarnation, attempt and claim id of a claim
	Unassign     bool            // clears executor and incarnation, and the claim id if To is Paused; the rest of the fence stays
	StartedAt    int64           // 0 = as it was
	FinishedAt   int64           // 0 = as it was
	Result       json.RawMessage // nil = as it was
	Error        string          // empty = as it was
	Progress     *Progress       // nil = as it was
	Desired      Desired         // empty = as it was; a terminal status clears it in any case
	ClearDesired bool            // the request is withdrawn or carried out
	NotBefore    int64           // epoch ms before which the task is not to run; 0 = as it was
	Counts       *Counts         // failures and crashes; nil = as they were
	Run          *Run            // one more ended attempt for the history, which keeps the last MaxRuns; nil = none
	Update       *Update         // new attachments; nil = as they were
	Reset        bool            // clears the last run: times, result, error, progress, counts, desired
}

// MaxRuns is how many ended attempts a task's history keeps.
const MaxRuns = 20

// Counts are the failures and crashes counted against a task.
type Counts struct {
	Failures int
	Crashes  int
}

// Update replaces a task's attachments. It applies only if the attachments are still those of version From.
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

// Assignment returns the task's present claim.
func (t *Task) Assignment() Assignment {
	return Assignment{Executor: t.Executor, Incarnation: t.Incarnation, Attempt: t.Attempt, ClaimID: t.ClaimID, At: t.AssignedDateTime,
		KeyPermit: t.KeyPermit, PoolPermit: t.PoolPermit}
}

// Frees reports whether the change ends a claim, which frees the task's permits.
func (c *Change) Frees() bool { return c.Unassign || c.To.Terminal() }

// Matches reports whether the change applies to t.
func (c *Change) Matches(t *Task) bool {
	return c.ID == t.ID && c.From.Has(t.LifecycleStatus) && c.Attempt == t.Attempt && c.ClaimID == t.ClaimID &&
		(c.IfDesired == nil || *c.IfDesired == t.Desired) && (c.AsOf == 0 || c.AsOf == t.AssignedDateTime) &&
		(c.Update == nil || c.Update.From == t.AttachmentsVersion)
}

// Apply carries the change out on t and reports whether it applied. It defines what a change means; every store does
// the same in one atomic step.
func (c *Change) Apply(t *Task) bool {
	if !c.Matches(t) {
		return false
	}
	c.Write(t)
	return true
}

// Write sets in t what the change sets, whether or not it applies to t. Except for the history, what it writes does not
// depend on what t holds.
func (c *Change) Write(t *Task) {
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
}

// change starts the change of t by e. If e is not accepted in t's status, the change applies to nothing.
func (t *Task) change(e Event, now int64) Change {
	c := Change{ID: t.ID, Attempt: t.Attempt, ClaimID: t.ClaimID, UpdatedAt: now}
	if to, ok := Next(t.LifecycleStatus, e); ok {
		c.From, c.To = t.LifecycleStatus.bit(), to
	}
	return c
}

// Claim assigns a waiting task: the next attempt, under a new claim id.
func Claim(t *Task, node, incarnation, claimID string, now int64) Change {
	c := t.change(EventClaim, now)
	c.Assign = &Assignment{Executor: node, Incarnation: incarnation, Attempt: t.Attempt + 1, ClaimID: claimID, At: now}
	return c
}

// Unclaim undoes a claim that certainly reached no node. It does not apply once another leader has adopted the claim,
// since that leader may have sent it.
func Unclaim(id string, a Assignment, now int64) Change {
	return Change{ID: id, From: sources(EventUnclaim, Created), Attempt: a.Attempt, ClaimID: a.ClaimID, AsOf: a.At,
		To: Created, UpdatedAt: now, Unassign: true}
}

// Adopt takes over the claim of an assigned task from the leader that made it. Afterwards the new leader may send the
// claim, and the old one cannot undo it any more.
func Adopt(t *Task, now int64) Change {
	a := t.Assignment()
	a.At = max(now, t.AssignedDateTime+1)
	return Change{ID: t.ID, From: Set(Assigning), Attempt: t.Attempt, ClaimID: t.ClaimID, AsOf: t.AssignedDateTime, To: Assigning, UpdatedAt: now, Assign: &a}
}

// Refuse fails a waiting task that can never run.
func Refuse(t *Task, reason string, now int64) Change {
	c := t.change(EventRefuse, now)
	c.FinishedAt, c.Error = now, reason
	return c
}

// Loss is the way a node was lost.
type Loss uint8

const (
	// LossLeft is a node that has left and holds nothing any more.
	LossLeft Loss = iota
	// LossSilent is a node without a heartbeat for too long: its process, its machine or its network may have failed.
	LossSilent
	// LossDied is a node whose process is known to have died while its machine went on.
	LossDied
	// LossForgotten is a live node that no longer holds the task: its last report was lost.
	LossForgotten
)

var lossOutcomes = [...]string{LossLeft: "left", LossSilent: "lost", LossDied: "crashed", LossForgotten: "forgotten"}

// Lose takes a task from a lost node. It reports false if no node holds the task.
//
// A task to be cancelled ends. A task to be paused, or paused without a request to resume, becomes Paused without a
// node. Any other waits again. Only the death of a process that was running the task counts as a crash; at the policy's
// limit of crashes the task fails.
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

// Retry runs an ended task again as a new attempt, as a person has asked. It reports false for a task that has not
// ended.
func Retry(t *Task, now int64) (Change, bool) {
	if _, ok := Next(t.LifecycleStatus, EventRetry); !ok {
		return Change{}, false
	}
	c := t.change(EventRetry, now)
	c.Unassign, c.Reset = true, true
	return c, true
}
