package task

import "math"

// Policy holds the limits for tasks that have none of their own.
type Policy struct {
	MaxAttempts int     // failures that end a task; 0 = it is tried without end
	MaxCrashes  int     // crashes that end it; 0 = never
	Backoff     Backoff // wait between attempts
}

// DefaultPolicy is the policy without configuration.
func DefaultPolicy() Policy {
	return Policy{MaxAttempts: 3, MaxCrashes: 3, Backoff: Backoff{BaseMs: 1000, Factor: 2, MaxMs: 300_000}}
}

func (p Policy) maxAttempts(t *Task) int {
	if t.MaxAttempts != nil {
		return *t.MaxAttempts
	}
	return p.MaxAttempts
}

func (p Policy) maxCrashes(t *Task) int {
	if t.MaxCrashes != nil {
		return *t.MaxCrashes
	}
	return p.MaxCrashes
}

// Delay returns the wait in milliseconds after so many failures: jitter, in [0, 1), times min(MaxMs, BaseMs *
// Factor^(failures-1)). This is the "full jitter" of Marc Brooker's "Exponential Backoff and Jitter" (AWS Architecture
// Blog, 2015).
func (b Backoff) Delay(failures int, jitter float64) int64 {
	if failures < 1 {
		return 0
	}
	most := float64(b.BaseMs) * math.Pow(max(b.Factor, 1), float64(failures-1))
	if limit := float64(b.MaxMs); most > limit || math.IsNaN(most) {
		most = limit
	}
	return int64(max(0, most) * min(max(jitter, 0), 1))
}

// Fail returns the changes that write down a report of a failure: the task waits for its next attempt, or has failed
// for good. At most one of them applies. The task is as the store has it; jitter, in [0, 1), spreads the waits.
//
// A report of another kind, or of another claim than the present one, changes nothing.
func Fail(t *Task, r *Report, p Policy, jitter float64, now int64) []Change {
	if r.Kind != ReportFailed || t.Attempt != r.Attempt || t.ClaimID != r.ClaimID {
		return nil
	}
	c := Change{ID: r.ID, Attempt: r.Attempt, ClaimID: r.ClaimID, UpdatedAt: now, StartedAt: r.StartedAt, Progress: r.Progress, Error: r.Error,
		Counts: &Counts{Failures: t.Failures + 1, Crashes: t.Crashes}, Run: r.run(string(ReportFailed), now)}
	var list []Change
	if t.Desired == DesiredCancelled { // nobody wants another attempt; but that may be undone meanwhile
		list = append(list, c.ending(EventCancel))
		list[0].IfDesired = new(DesiredCancelled)
	}
	if limit := p.maxAttempts(t); r.Permanent || limit > 0 && c.Counts.Failures >= limit || t.Late(now) {
		return append(list, c.ending(EventFail))
	}
	backoff := p.Backoff
	if t.Backoff != nil {
		backoff = *t.Backoff
	}
	c.Unassign, c.StartedAt, c.Progress = true, 0, nil
	c.NotBefore = max(now+backoff.Delay(c.Counts.Failures, jitter), r.retryAt(now), 1)
	// Whatever of these it is by now: between the reading and the writing it may have been paused. What else a person
	// asked for meanwhile stays in Desired, for ApplyDesired.
	again, hold := c, c
	again.To, again.From = Created, sources(EventFailAgain, Created)&held
	hold.To, hold.From = Paused, sources(EventFailAgain, Paused)&held
	return append(list, again, hold)
}

// retryAt returns the time before which a failure is not retried; 0 = none. The node's clock may be far off, so only
// the distance from the end of the run counts.
func (r *Report) retryAt(now int64) int64 {
	if r.RetryAt == 0 || r.FinishedAt == 0 {
		return r.RetryAt
	}
	return now + max(r.RetryAt-r.FinishedAt, 0)
}

// ending makes a failure one that ends its task by e.
func (c Change) ending(e Event) Change {
	c.To, _ = Next(Running, e)
	c.FinishedAt = c.Run.FinishDateTime
	c.From = sources(e, c.To) & held
	return c
}

// aloneAfter is the number of process deaths after which a task runs alone on its node, so that a further death is
// certainly its own.
const aloneAfter = 2

// Alone reports whether the task must be the only one on its node: processes died while it ran, and its part in that is
// unknown.
func (t *Task) Alone() bool { return t.Crashes >= aloneAfter }

// Crashed returns the nodes whose process died while the task ran, as far as its history shows.
func (t *Task) Crashed() []string {
	var nodes []string
	for i := range t.Attempts {
		if r := &t.Attempts[i]; t.Crashes > 0 && r.Outcome == lossOutcomes[LossDied] && r.StartDateTime != 0 {
			nodes = append(nodes, r.Executor)
		}
	}
	return nodes
}

// Late reports whether the task's deadline has passed.
func (t *Task) Late(now int64) bool { return t.DeadlineDateTime != 0 && now >= t.DeadlineDateTime }

// Overdue fails a task whose deadline has passed. A node ends the task that it holds; the controller does so only after
// a grace period.
func Overdue(t *Task, now int64) Change {
	if t.Held() {
		c := t.change(EventFail, now)
		c.FinishedAt, c.Error = now, "its deadline has passed, and its node did not end it"
		c.Run = &Run{Attempt: t.Attempt, Executor: t.Executor, StartDateTime: t.StartDateTime, FinishDateTime: now, Outcome: "overdue", Error: c.Error}
		return c
	}
	return Refuse(t, "its deadline has passed before it could run", now)
}
