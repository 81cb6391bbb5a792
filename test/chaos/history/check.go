package history

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skalds-go/skalds/pkg/task"
)

// May is what else than its end by a result may become of a task, since somebody asked for it.
type May struct {
	Cancel  bool   // it may be cancelled
	Fail    string // it may be failed with an error that has this in it; empty = it may not
	Overlap bool   // its handler does not stop when it is told to, so that its runs may overlap
}

// Check says in which ways the rules were broken. Tasks are those that the store has, in which every id of submitted
// must be.
func (r *Record) Check(submitted []string, tasks map[string]task.Task, may map[string]May) []string {
	byTask, wrong := r.Runs()
	for _, id := range submitted {
		t, ok := tasks[id]
		if !ok {
			wrong = append(wrong, fmt.Sprintf("task %s was acknowledged and is lost", id))
			continue
		}
		wrong = append(wrong, ended(&t, byTask[id], may[id])...)
		if !may[id].Overlap {
			wrong = append(wrong, r.apart(byTask[id])...)
		}
	}
	slices.Sort(wrong)
	return wrong
}

// ended checks that the task reached its end, and that the end is that of its last run.
func ended(t *task.Task, runs []Run, may May) (wrong []string) {
	say := func(format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("task %s: ", t.ID)+fmt.Sprintf(format, args...))
	}
	for i := range runs {
		if runs[i].Attempt > t.Attempt {
			say("attempt %d ran, and the store has only come to %d", runs[i].Attempt, t.Attempt)
		}
	}
	switch {
	case t.LifecycleStatus == task.Cancelled && may.Cancel:
	case t.LifecycleStatus == task.Failed && may.Fail != "" && strings.Contains(t.Error, may.Fail):
	case t.LifecycleStatus == task.Finished:
		var got Result
		if err := json.Unmarshal(t.Result, &got); err != nil {
			say("the result %q does not decode: %v", t.Result, err)
			break
		}
		if got.Attempt != t.Attempt {
			say("the result of attempt %d was accepted, the task's last attempt is %d", got.Attempt, t.Attempt)
		}
		if !slices.ContainsFunc(runs, func(r Run) bool { return r.Attempt == got.Attempt && r.PID == got.PID && r.Outcome == Finished }) {
			say("no run finished with its result %s", t.Result)
		}
	default:
		say("is %s in attempt %d on %q, error %q", t.LifecycleStatus, t.Attempt, t.Executor, t.Error)
	}
	return wrong
}

// apart checks that the runs of one task, in the order of attempts, came one after the other.
func (r *Record) apart(runs []Run) (wrong []string) {
	for i := 1; i < len(runs); i++ {
		b := &runs[i]
		for k := range runs[:i] {
			a := &runs[k]
			switch {
			case a.Attempt == b.Attempt:
				wrong = append(wrong, fmt.Sprintf("task %s: attempt %d ran twice, in processes %d and %d", b.Task, b.Attempt, a.PID, b.PID))
			case a.Start > b.Start:
				wrong = append(wrong, fmt.Sprintf("task %s: attempt %d started in process %d, %s after attempt %d did",
					b.Task, a.Attempt, a.PID, a.Start-b.Start, b.Attempt))
			case a.End > b.Start+r.StopMargin:
				wrong = append(wrong, fmt.Sprintf("task %s: attempt %d started in process %d, and attempt %d ran on for %s in process %d (%s)",
					b.Task, b.Attempt, b.PID, a.Attempt, since(b.Start, a.End), a.PID, a.Outcome))
			}
		}
	}
	return wrong
}

// Witness remembers the ends that tasks were seen to have: an end is for good.
type Witness struct {
	seen map[string]task.Task
}

// See takes in a task and says what is wrong if it had another end before.
func (w *Witness) See(t *task.Task) string {
	if w.seen == nil {
		w.seen = map[string]task.Task{}
	}
	old, had := w.seen[t.ID]
	if had && !sameEnd(&old, t) {
		return fmt.Sprintf("task %s had ended as %s of attempt %d with %s at %s, and is %s of attempt %d with %s at %s", t.ID,
			old.LifecycleStatus, old.Attempt, old.Result, stamp(&old), t.LifecycleStatus, t.Attempt, t.Result, stamp(t))
	}
	if !had && t.LifecycleStatus.Terminal() {
		w.seen[t.ID] = *t
	}
	return ""
}

func sameEnd(a, b *task.Task) bool {
	return a.LifecycleStatus == b.LifecycleStatus && a.Attempt == b.Attempt && a.ClaimID == b.ClaimID &&
		a.FinishDateTime == b.FinishDateTime && string(a.Result) == string(b.Result)
}

func stamp(t *task.Task) string {
	return time.UnixMilli(t.FinishDateTime).UTC().Format(time.RFC3339Nano)
}
