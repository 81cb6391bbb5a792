package task_test

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/skalds-go/skalds/pkg/task"
)

// life is one task under a random interleaving of everything that can happen to it: what the controller, its nodes and
// persons do, with changes that were made for an earlier state of the task and arrive late.
type life struct {
	t      task.Task
	now    int64
	claims []task.Assignment
	late   []made            // made once, not yet carried out
	ends   map[string]int    // final reports that applied, by claim id
	queue  []task.Report     // reports not yet folded
	fenced map[string]string // claim id -> why no report of it may apply any more
}

// made is a change, and whether a person wished for it.
type made struct {
	task.Change
	wish bool
}

// apply carries a change out and checks what must hold whatever it is.
func (l *life) apply(t *rapid.T, c task.Change, retry, wish bool) bool {
	before := l.t.Clone()
	ok := c.Apply(&l.t)
	if l.t.LifecycleStatus == task.Created || l.t.LifecycleStatus == task.Paused && l.t.Executor == "" {
		l.fenced[before.ClaimID] = "no node holds it"
	}
	switch {
	case (l.t.LifecycleStatus == task.Assigning || l.t.LifecycleStatus == task.Running) && l.t.Executor == "":
		t.Fatalf("%s without a node, from %s", l.t.LifecycleStatus, before.LifecycleStatus)
	case ok && !wish && !retry && !l.t.LifecycleStatus.Terminal() && l.t.Target() != before.Target():
		t.Fatalf("it was to be %s, and is now to be %s, though nobody wished so: %+v, then %+v", before.Target(), l.t.Target(), before, l.t)
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
func (l *life) once(t *rapid.T, c task.Change, retry, wish bool) {
	when := rapid.IntRange(0, 3).Draw(t, "when")
	if when != 0 {
		l.apply(t, c, retry, wish)
	}
	if when != 1 && !retry && len(l.late) < 20 {
		l.late = append(l.late, made{c, wish})
	}
}

func (l *life) report(t *rapid.T, r task.Report) {
	before := l.t.Clone()
	why, over := l.fenced[r.ClaimID]
	applied := 0
	list := r.Changes(l.now)
	if r.Kind == task.ReportFailed {
		list = task.Fail(&before, &r, task.DefaultPolicy(), 0, l.now)
		if rapid.Bool().Draw(t, "paused meanwhile") { // between the reading and the writing
			c := task.Report{ID: r.ID, Attempt: r.Attempt, ClaimID: r.ClaimID, Kind: task.ReportPaused}
			for _, c := range c.Changes(l.now) {
				l.apply(t, c, false, false)
			}
		}
	}
	if len(list) > r.Kind.MaxChanges() {
		t.Fatalf("%d changes of a report %s", len(list), r.Kind)
	}
	for _, c := range list {
		if l.apply(t, c, false, false) {
			applied++
		}
	}
	if applied > 1 {
		t.Fatalf("%d changes of one report applied: %+v", applied, r)
	}
	if applied == 0 {
		return
	}
	if over {
		t.Fatalf("a report of claim %s applied although %s: %+v on %+v", r.ClaimID, why, r, before)
	}
	if l.t.LifecycleStatus.Terminal() {
		if l.ends[r.ClaimID]++; l.ends[r.ClaimID] > 1 {
			t.Fatalf("claim %s ended twice", r.ClaimID)
		}
	}
}

func (l *life) anyReport(t *rapid.T) (task.Report, bool) {
	if len(l.claims) == 0 {
		return task.Report{}, false
	}
	a := rapid.SampledFrom(l.claims).Draw(t, "claim")
	kind := rapid.SampledFrom([]task.Kind{
		task.ReportStarted, task.ReportProgress, task.ReportFinished, task.ReportFailed,
		task.ReportCancelled, task.ReportRejected, task.ReportReleased, task.ReportPaused, task.ReportPaused, task.ReportResumed, "levitated",
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
				if l.apply(t, c, false, false) {
					l.claims = append(l.claims, *c.Assign)
				}
			},
			"unclaim": func(t *rapid.T) {
				if len(l.claims) > 0 {
					l.once(t, task.Unclaim(l.t.ID, rapid.SampledFrom(l.claims).Draw(t, "claim"), l.now), false, false)
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
					l.once(t, c, false, true)
				}
			},
			"pause": func(t *rapid.T) {
				if c, ok := task.Pause(&l.t, l.now); ok {
					l.once(t, c, false, true)
				}
			},
			"resume": func(t *rapid.T) {
				if c, ok := task.Resume(&l.t, l.now); ok {
					l.once(t, c, false, true)
				}
			},
			"settle": func(t *rapid.T) {
				if c, ok := task.ApplyDesired(&l.t, l.now); ok {
					l.once(t, c, false, false)
				}
			},
			"attach": func(t *rapid.T) {
				if c, ok := task.Attach(&l.t, nil, l.now); ok {
					before := l.t.AttachmentsVersion
					l.once(t, c, false, false)
					if l.t.AttachmentsVersion != before && l.t.AttachmentsVersion != before+1 {
						t.Fatalf("the attachments went from version %d to %d", before, l.t.AttachmentsVersion)
					}
				}
			},
			"lose": func(t *rapid.T) {
				loss := rapid.SampledFrom([]task.Loss{task.LossLeft, task.LossSilent, task.LossDied}).Draw(t, "loss")
				if c, ok := task.Lose(&l.t, loss, task.DefaultPolicy(), l.now); ok {
					l.once(t, c, false, false)
				}
			},
			"refuse": func(t *rapid.T) {
				if l.t.LifecycleStatus == task.Created {
					l.once(t, task.Refuse(&l.t, "no", l.now), false, false)
				}
			},
			"retry": func(t *rapid.T) {
				if c, ok := task.Retry(&l.t, l.now); ok {
					l.once(t, c, true, false)
				}
			},
			"a late change arrives": func(t *rapid.T) {
				if len(l.late) > 0 {
					c := l.late[rapid.IntRange(0, len(l.late)-1).Draw(t, "which")]
					l.apply(t, c.Change, false, c.wish)
				}
			},
		})
	})
}
