package task_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/skalds-go/skalds/pkg/task"
)

const now = int64(1796010393269)

// waiting is a task that waits, after its second attempt.
func waiting() task.Task {
	return task.Task{ID: "t1", ClassName: "resize", Mode: task.ModePassive, LifecycleStatus: task.Created, Attempt: 2, ClaimID: "c2"}
}

// running is a task that runs as its third attempt.
func running() task.Task {
	t := waiting()
	claim := task.Claim(&t, "n1", "i1", "c3", now)
	claim.Apply(&t)
	t.LifecycleStatus, t.StartDateTime = task.Running, now+1
	return t
}

func with(t task.Task, set func(*task.Task)) task.Task { set(&t); return t }

func TestClaim(t *testing.T) {
	t.Parallel()
	tk := with(waiting(), func(t *task.Task) { t.Error, t.StartDateTime, t.Progress = "old", 5, &task.Progress{Percent: 50} })
	c := task.Claim(&tk, "n1", "i1", "c3", now)
	if !c.Apply(&tk) {
		t.Fatal("a claim of a task that waits does not apply")
	}
	want := with(waiting(), func(t *task.Task) {
		t.LifecycleStatus, t.Executor, t.Incarnation, t.Attempt, t.ClaimID = task.Assigning, "n1", "i1", 3, "c3"
		t.AssignedDateTime, t.UpdateDateTime = now, now
	})
	if !reflect.DeepEqual(tk, want) {
		t.Errorf("got  %+v\nwant %+v", tk, want)
	}
	if c.Apply(&tk) {
		t.Error("the same claim applies twice")
	}
	back := task.Unclaim("t1", *c.Assign, now+1)
	if !back.Apply(&tk) || tk.LifecycleStatus != task.Created || tk.Executor != "" || tk.Attempt != 3 || tk.ClaimID != "c3" {
		t.Errorf("after giving back: %+v", tk)
	}
	if c.Apply(&tk) {
		t.Error("a claim that was given back applies again")
	}
}

// TestApplyOnlyWhatMatches: id, status, attempt and claim id must all be the change's.
func TestApplyOnlyWhatMatches(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*task.Task){
		"another id":       func(t *task.Task) { t.ID = "t2" },
		"another status":   func(t *task.Task) { t.LifecycleStatus = task.Finished },
		"another attempt":  func(t *task.Task) { t.Attempt++ },
		"another claim id": func(t *task.Task) { t.ClaimID = "c9" },
		"no claim id":      func(t *task.Task) { t.ClaimID = "" },
	}
	for name, set := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := task.Report{ID: "t1", Attempt: 3, ClaimID: "c3", Kind: task.ReportFinished, FinishedAt: now, Result: json.RawMessage(`1`)}
			tk := with(running(), set)
			before := tk.Clone()
			for _, c := range r.Changes(now) {
				if c.Apply(&tk) {
					t.Error("the change applied")
				}
			}
			if !reflect.DeepEqual(tk, before) {
				t.Errorf("the task changed: %+v", tk)
			}
		})
	}
}

func TestLose(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		t      task.Task
		ok     bool
		status task.Status
	}{
		{"running", running(), true, task.Created},
		{"assigning", with(running(), func(t *task.Task) { t.LifecycleStatus = task.Assigning }), true, task.Created},
		{"paused stays paused", with(running(), func(t *task.Task) { t.LifecycleStatus = task.Paused }), true, task.Paused},
		{"cancelled meanwhile", with(running(), func(t *task.Task) { t.Desired = task.DesiredCancelled }), true, task.Cancelled},
		{"to be paused", with(running(), func(t *task.Task) { t.Desired = task.DesiredPaused }), true, task.Paused},
		{"to be paused, not started", with(running(), func(t *task.Task) { t.LifecycleStatus, t.Desired = task.Assigning, task.DesiredPaused }), true, task.Paused},
		{"paused, to go on", with(running(), func(t *task.Task) { t.LifecycleStatus, t.Desired = task.Paused, task.DesiredRunning }), true, task.Created},
		{"paused, cancelled", with(running(), func(t *task.Task) { t.LifecycleStatus, t.Desired = task.Paused, task.DesiredCancelled }), true, task.Cancelled},
		{"waiting", waiting(), false, ""},
		{"paused without a node", with(waiting(), func(t *task.Task) { t.LifecycleStatus = task.Paused }), false, ""},
		{"ended", with(running(), func(t *task.Task) { t.LifecycleStatus = task.Finished }), false, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			change, ok := task.Lose(&c.t, task.LossSilent, task.DefaultPolicy(), now)
			if ok != c.ok {
				t.Fatalf("ok = %t", ok)
			}
			if !ok {
				return
			}
			if !change.Apply(&c.t) || c.t.LifecycleStatus != c.status {
				t.Fatalf("after it: %+v", c.t)
			}
			fence := "c3"
			if c.status == task.Paused {
				fence = ""
			}
			if c.t.Attempt != 3 || c.t.ClaimID != fence || c.t.Desired != "" {
				t.Errorf("the fence is gone: attempt %d, claim %q", c.t.Attempt, c.t.ClaimID)
			}
			if !c.status.Terminal() && (c.t.Executor != "" || c.t.Incarnation != "") {
				t.Errorf("a node still holds it: %+v", c.t)
			}
			if c.status.Terminal() && (c.t.FinishDateTime != now || c.t.Desired != "") {
				t.Errorf("not ended in good order: %+v", c.t)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		t       task.Task
		ok      bool
		status  task.Status
		desired task.Desired
	}{
		{"waiting ends at once", waiting(), true, task.Cancelled, ""},
		{"held by nobody, paused", with(waiting(), func(t *task.Task) { t.LifecycleStatus = task.Paused }), true, task.Cancelled, ""},
		{"running is a wish", running(), true, task.Running, task.DesiredCancelled},
		{"assigning is a wish", with(running(), func(t *task.Task) { t.LifecycleStatus = task.Assigning }), true, task.Assigning, task.DesiredCancelled},
		{"ended", with(running(), func(t *task.Task) { t.LifecycleStatus = task.Failed }), false, "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			change, ok := task.Cancel(&c.t, now)
			if ok != c.ok {
				t.Fatalf("ok = %t", ok)
			}
			if !ok {
				return
			}
			if !change.Apply(&c.t) || c.t.LifecycleStatus != c.status || c.t.Desired != c.desired {
				t.Errorf("after it: %+v", c.t)
			}
		})
	}
}

func TestRetryForgetsTheLastRun(t *testing.T) {
	t.Parallel()
	tk := with(running(), func(t *task.Task) {
		t.LifecycleStatus, t.FinishDateTime, t.Result, t.Error = task.Failed, now, json.RawMessage(`1`), "boom"
		t.Failures, t.Crashes, t.Progress = 3, 1, &task.Progress{Percent: 9}
	})
	c, ok := task.Retry(&tk, now+5)
	if !ok || !c.Apply(&tk) {
		t.Fatal("a failed task cannot be retried")
	}
	want := with(waiting(), func(t *task.Task) { t.Attempt, t.ClaimID, t.UpdateDateTime = 3, "c3", now+5 })
	if !reflect.DeepEqual(tk, want) {
		t.Errorf("got  %+v\nwant %+v", tk, want)
	}
	if _, ok := task.Retry(&tk, now); ok {
		t.Error("a task that waits can be retried")
	}
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	tk := waiting()
	c := task.Refuse(&tk, "attachments too large", now)
	if !c.Apply(&tk) || tk.LifecycleStatus != task.Failed || tk.Error != "attachments too large" || tk.FinishDateTime != now {
		t.Errorf("after it: %+v", tk)
	}
}

// TestHotPathAllocatesNothing guards what runs once per task: asking for the next status, matching, applying.
func TestHotPathAllocatesNothing(t *testing.T) {
	tk := running()
	c := task.Change{ID: "t1", From: task.Set(task.Running), Attempt: 3, ClaimID: "c3", To: task.Running, StartedAt: now}
	n := testing.AllocsPerRun(100, func() {
		if _, ok := task.Next(tk.LifecycleStatus, task.EventFinish); !ok || !c.Apply(&tk) {
			t.Fatal("does not apply")
		}
	})
	if n != 0 {
		t.Errorf("%v allocations per change; want 0", n)
	}
}

// TestCloneSharesNothingWritten fills every field, so that a new one is not forgotten in Clone.
func TestCloneSharesNothingWritten(t *testing.T) {
	t.Parallel()
	src := full(t)
	c := src.Clone()
	if !reflect.DeepEqual(src, c) {
		t.Fatalf("a clone differs: %+v", c)
	}
	a, b := reflect.ValueOf(src), reflect.ValueOf(c)
	for i := range a.NumField() {
		f := a.Type().Field(i)
		switch f.Type.Kind() {
		case reflect.Pointer, reflect.Map, reflect.Slice:
			if f.Type == reflect.TypeFor[json.RawMessage]() {
				continue
			}
			if a.Field(i).Pointer() == b.Field(i).Pointer() {
				t.Errorf("%s is shared", f.Name)
			}
		default:
		}
	}
}

// TestNotAccepted: a change that the life cycle does not accept applies to nothing, whoever made it.
func TestNotAccepted(t *testing.T) {
	t.Parallel()
	for _, s := range task.All() {
		tk := with(waiting(), func(t *task.Task) { t.LifecycleStatus = s })
		claim, refuse := task.Claim(&tk, "n1", "i1", "c3", now), task.Refuse(&tk, "no", now)
		if s == task.Created {
			continue
		}
		if claim.Apply(&tk) || s != task.Paused && refuse.Apply(&tk) || tk.LifecycleStatus != s {
			t.Errorf("a claim or a refusal applied to a task that is %s: %+v", s, tk)
		}
	}
}
