package task_test

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/skalds-go/skalds/pkg/task"
)

// life is one task under a random interleaving of everything that can happen to it: what the controller, its nodes and persons do,
// with changes that were made for an earlier state of the task and arrive late.
type life struct {
	t      task.Task
	now    int64
	claims []task.Assignment
	late   []task.Change     // made once, not yet carried out
	ends   map[string]int    // final reports that applied, by claim id
	queue  []task.Report     // reports not yet folded
	fenced map[string]string // claim id -> why no report of it may apply any more
}

// apply carries a change out and checks what must hold whatever it is.
func (l *life) apply(t *rapid.T, c task.Change, retry bool) bool {
	before := l.t.Clone()
	ok := c.Apply(&l.t)
	switch {
	case !ok && !reflect.DeepEqual(l.t, before):
		t.Fatalf("a change that does not apply changed the task: %+v", c)
	case ok && (c.Attempt != before.Attempt || c.ClaimID != before.ClaimID):
		t.Fatalf("a change of attempt %d, claim %q applied to attempt %d, claim %q", c.Attempt, c.ClaimID, before.Attempt, before.ClaimID)
	case ok && before.LifecycleStatus.Terminal() && !retry:
		t.Fatalf("%s was left without a retry, for %s", before.LifecycleStatus, l.t.LifecycleStatus)
	}
	want := before.Attempt
	if ok && c.Assign != nil {
		want++
	}
	if l.t.Attempt != want {
		t.Fatalf("attempt went from %d to %d", before.Attempt, l.t.Attempt)
	}
	if l.t.LifecycleStatus == task.Created && l.t.Executor != "" {
		t.Fatalf("a task that waits has the executor %q", l.t.Executor)
	}
	if l.t.LifecycleStatus.Terminal() && (l.t.Desired != "" || l.t.FinishDateTime == 0) {
		t.Fatalf("an ended task has a wish %q, or no end: %d", l.t.Desired, l.t.FinishDateTime)
	}
	return ok
}

// once carries a change out now, or keeps it for later, or both.
func (l *life) once(t *rapid.T, c task.Change, retry bool) {
	when := rapid.IntRange(0, 3).Draw(t, "when")
	if when != 0 && l.apply(t, c, retry) && l.t.LifecycleStatus == task.Created {
		l.fenced[l.t.ClaimID] = "it waits again"
	}
	if when != 1 && !retry && len(l.late) < 20 {
		l.late = append(l.late, c)
	}
}

func (l *life) report(t *rapid.T, r task.Report) {
	before := l.t.Clone()
	applied := 0
	for _, c := range r.Changes(l.now) {
		if l.apply(t, c, false) {
			applied++
		}
	}
	if applied > 1 {
		t.Fatalf("%d changes of one report applied: %+v", applied, r)
	}
	if applied == 0 {
		return
	}
	if why, ok := l.fenced[r.ClaimID]; ok {
		t.Fatalf("a report of claim %s applied although %s: %+v on %+v", r.ClaimID, why, r, before)
	}
	if l.t.LifecycleStatus.Terminal() {
		if l.ends[r.ClaimID]++; l.ends[r.ClaimID] > 1 {
			t.Fatalf("claim %s ended twice", r.ClaimID)
		}
	}
	if l.t.LifecycleStatus == task.Created {
		l.fenced[r.ClaimID] = "it waits again"
	}
}

func (l *life) anyReport(t *rapid.T) (task.Report, bool) {
	if len(l.claims) == 0 {
		return task.Report{}, false
	}
	a := rapid.SampledFrom(l.claims).Draw(t, "claim")
	kind := rapid.SampledFrom([]task.Kind{
		task.ReportStarted, task.ReportProgress, task.ReportFinished, task.ReportFailed,
		task.ReportCancelled, task.ReportRejected, task.ReportReleased, "levitated",
	}).Draw(t, "kind")
	return task.Report{ID: l.t.ID, Attempt: a.Attempt, ClaimID: a.ClaimID, Kind: kind, StartedAt: l.now}, true
}

func TestInvariantsUnderAnyInterleaving(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := &life{t: task.Task{ID: "t1", LifecycleStatus: task.Created}, now: 1, ends: map[string]int{}, fenced: map[string]string{}}
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { l.now++ },
			"claim": func(t *rapid.T) {
				id := fmt.Sprintf("c%d", len(l.claims))
				c := task.Claim(&l.t, "n1", "i1", id, l.now)
				if l.apply(t, c, false) {
					l.claims = append(l.claims, *c.Assign)
				}
			},
			"give back": func(t *rapid.T) {
				if len(l.claims) > 0 {
					l.once(t, task.GiveBack(l.t.ID, rapid.SampledFrom(l.claims).Draw(t, "claim"), l.now), false)
				}
			},
			"report": func(t *rapid.T) {
				if r, ok := l.anyReport(t); ok {
					l.report(t, r)
				}
			},
			"queue a report": func(t *rapid.T) {
				if r, ok := l.anyReport(t); ok {
					l.queue = append(l.queue, r)
				}
			},
			"fold the queue": func(t *rapid.T) {
				for _, r := range task.Fold(l.queue) {
					l.report(t, r)
				}
				l.queue = nil
			},
			"cancel": func(t *rapid.T) {
				if c, ok := task.Cancel(&l.t, l.now); ok {
					l.once(t, c, false)
				}
			},
			"lose": func(t *rapid.T) {
				if c, ok := task.Lose(&l.t, task.LossSilent, task.DefaultPolicy(), l.now); ok {
					l.once(t, c, false)
				}
			},
			"refuse": func(t *rapid.T) {
				if l.t.LifecycleStatus == task.Created {
					l.once(t, task.Refuse(&l.t, "no", l.now), false)
				}
			},
			"retry": func(t *rapid.T) {
				if c, ok := task.Retry(&l.t, l.now); ok {
					l.once(t, c, true)
				}
			},
			"a late change arrives": func(t *rapid.T) {
				if len(l.late) > 0 {
					i := rapid.IntRange(0, len(l.late)-1).Draw(t, "which")
					if l.apply(t, l.late[i], false) && l.t.LifecycleStatus == task.Created {
						l.fenced[l.t.ClaimID] = "it waits again"
					}
				}
			},
		})
	})
}
