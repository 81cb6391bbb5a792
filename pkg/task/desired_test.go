package task_test

import (
	"encoding/json"
	"testing"

	"github.com/skalds-go/skalds/pkg/task"
)

// stands is a task in a situation: its status, whether a node holds it, and what is asked of it.
func stands(s task.Status, held bool, d task.Desired) task.Task {
	t := running()
	t.LifecycleStatus, t.Desired = s, d
	if !held {
		t.Executor, t.Incarnation = "", ""
	}
	return t
}

// TestWishes: what each wish makes of a task in each situation.
func TestWishes(t *testing.T) {
	t.Parallel()
	const no = task.Status("") // refused, or needless
	type now struct {
		status  task.Status
		desired task.Desired
	}
	nothing := now{}
	for _, c := range []struct {
		name                   string
		t                      task.Task
		target                 task.Status
		pause, resume, settled now
	}{
		{"waits", stands(task.Created, false, ""), task.Running, now{task.Paused, ""}, nothing, nothing},
		{"waits again, to be paused", stands(task.Created, false, task.DesiredPaused), task.Paused, nothing, now{task.Created, ""}, now{task.Paused, ""}},
		{"waits again, to be cancelled", stands(task.Created, false, task.DesiredCancelled), task.Cancelled, nothing, now{task.Created, ""}, now{task.Cancelled, ""}},
		{"on hold", stands(task.Paused, false, ""), task.Paused, nothing, now{task.Created, ""}, nothing},
		{"on hold, to go on", stands(task.Paused, false, task.DesiredRunning), task.Running, now{task.Paused, ""}, nothing, now{task.Created, ""}},
		{"on hold, to be cancelled", stands(task.Paused, false, task.DesiredCancelled), task.Cancelled, nothing, now{task.Created, ""}, now{task.Cancelled, ""}},
		{"assigned", stands(task.Assigning, true, ""), task.Running, now{task.Assigning, task.DesiredPaused}, nothing, nothing},
		{"runs", stands(task.Running, true, ""), task.Running, now{task.Running, task.DesiredPaused}, nothing, nothing},
		{"runs, to be paused", stands(task.Running, true, task.DesiredPaused), task.Paused, nothing, now{task.Running, ""}, nothing},
		{"runs, to be cancelled", stands(task.Running, true, task.DesiredCancelled), task.Cancelled, nothing, now{task.Running, ""}, nothing},
		{"is paused", stands(task.Paused, true, ""), task.Paused, nothing, now{task.Paused, task.DesiredRunning}, nothing},
		{"is paused, to go on", stands(task.Paused, true, task.DesiredRunning), task.Running, now{task.Paused, ""}, nothing, nothing},
		{"is paused, to be cancelled", stands(task.Paused, true, task.DesiredCancelled), task.Cancelled, nothing, now{task.Paused, task.DesiredRunning}, nothing},
		{"finished", stands(task.Finished, true, ""), task.Finished, nothing, nothing, nothing},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := c.t.Target(); got != c.target {
				t.Errorf("to be %s, want %s", got, c.target)
			}
			for name, wish := range map[string]struct {
				make func(*task.Task, int64) (task.Change, bool)
				want now
			}{"pause": {task.Pause, c.pause}, "resume": {task.Resume, c.resume}, "settle": {task.ApplyDesired, c.settled}} {
				tk := c.t.Clone()
				change, ok := wish.make(&tk, 9)
				if ok != (wish.want.status != no) {
					t.Errorf("%s: %t", name, ok)
					continue
				}
				if !ok {
					continue
				}
				other := tk.Clone()
				other.Desired = "another"
				if change.Apply(&other) {
					t.Errorf("%s applies though something else was asked for meanwhile", name)
				}
				if !change.Apply(&tk) || tk.LifecycleStatus != wish.want.status || tk.Desired != wish.want.desired {
					t.Errorf("%s: %s, %q; want %+v", name, tk.LifecycleStatus, tk.Desired, wish.want)
				}
				if tk.LifecycleStatus == task.Paused && !tk.Held() && tk.ClaimID != "" {
					t.Errorf("%s: a late report could still change it", name)
				}
			}
		})
	}
}

// TestATurnKeepsWhatWasAskedForLast: a report that the run is paused, or goes on, may be of an older wish than the
// last.
func TestATurnKeepsWhatWasAskedForLast(t *testing.T) {
	t.Parallel()
	for _, from := range []task.Status{task.Assigning, task.Running, task.Paused} {
		for _, d := range []task.Desired{"", task.DesiredCancelled, task.DesiredPaused, task.DesiredRunning} {
			tk := stands(from, true, d)
			if d != "" && task.Status(d) == from || from == task.Assigning && d == task.DesiredRunning {
				continue // never so
			}
			for kind, to := range map[task.Kind]task.Status{task.ReportPaused: task.Paused, task.ReportResumed: task.Running} {
				got, target := tk.Clone(), tk.Target()
				r := task.Report{ID: "t1", Attempt: 3, ClaimID: "c3", Kind: kind, StartedAt: 7, Progress: &task.Progress{Percent: 5}}
				applied := 0
				for _, c := range r.Changes(9) {
					if c.Apply(&got) {
						applied++
					}
				}
				if applied != 1 || got.LifecycleStatus != to || got.Target() != target || got.StartDateTime != 7 || got.Progress == nil || !got.Held() {
					t.Errorf("%s of a task that is %s, asked for %q: %d applied, %s, asked for %q", kind, from, d, applied, got.LifecycleStatus, got.Desired)
				}
				if target == to && got.Desired != "" {
					t.Errorf("%s of a task that is %s, asked for %q: %q is left", kind, from, d, got.Desired)
				}
			}
		}
	}
}

func TestAttach(t *testing.T) {
	t.Parallel()
	for _, s := range task.All() {
		tk := stands(s, s.Active(), "")
		c, ok := task.Attach(&tk, json.RawMessage(`{"n":2}`), 9)
		if ok == s.Terminal() {
			t.Errorf("%s: %t", s, ok)
		}
		if !ok {
			continue
		}
		other := tk.Clone()
		other.AttachmentsVersion = 4
		if c.Apply(&other) {
			t.Errorf("%s: it overwrites what it has not seen", s)
		}
		if !c.Apply(&tk) || tk.LifecycleStatus != s || tk.AttachmentsVersion != 1 || string(tk.Attachments) != `{"n":2}` {
			t.Errorf("%s: %+v", s, tk)
		}
	}
}
