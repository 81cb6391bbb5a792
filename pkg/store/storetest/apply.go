package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

var applyCases = map[string]func(*testing.T, store.Store){
	"apply/nothing, and too much": func(t *testing.T, s store.Store) {
		apply(t, s, 0)
		if _, err := s.Apply(t.Context(), make([]task.Change, store.MaxBatch+1)); err == nil {
			t.Error("a batch over the limit is taken")
		}
	},
	"apply/to an unknown status": func(t *testing.T, s store.Store) {
		create(t, s, many(1)...)
		c := task.Change{ID: "t0000", From: task.Set(task.Created), To: "Sleeping"}
		if n, err := s.Apply(t.Context(), []task.Change{c}); err == nil || n != 0 {
			t.Errorf("%d applied, error %v", n, err)
		}
		if got := get(t, s, "t0000"); got.LifecycleStatus != task.Created {
			t.Errorf("it is %s", got.LifecycleStatus)
		}
	},
	"apply/to a task that does not exist": func(t *testing.T, s store.Store) {
		tk := fresh("t1", 0)
		apply(t, s, 0, task.Claim(&tk, "n1", "i1", "c1", base))
		if got, err := s.Get(t.Context(), []string{"t1"}); err != nil || len(got) != 0 {
			t.Errorf("it exists now: %v, %v", got, err)
		}
	},
	// Every field that a change can set, alone and together, does what Change.Apply says.
	"apply/means what the task package says": func(t *testing.T, s store.Store) {
		var waits []task.Task
		for i, c := range changeSamples() {
			for _, from := range task.All() {
				id := fmt.Sprintf("%s-%d", from, i)
				if c.Assign != nil {
					c.Assign = new(*c.Assign)
					c.Assign.KeyPermit, c.Assign.PoolPermit = "key "+id, "new pool "+id // one that it has, and one that it has not
				}
				tk := with(fresh(id, 0), func(t *task.Task) {
					t.LifecycleStatus, t.Attempt, t.ClaimID = from, 2, "c2"
					t.Executor, t.Incarnation, t.StartDateTime, t.FinishDateTime, t.AssignedDateTime = "n1", "i1", 1, 2, 3
					t.Result, t.Error, t.Progress = json.RawMessage(`{"old":true}`), "old", &task.Progress{Percent: 5, Message: "old"}
					t.Failures, t.Crashes, t.Desired = 4, 5, task.DesiredCancelled
					t.NotBefore, t.KeyPermit, t.PoolPermit = base+5, "key "+id, "pool "+id
					if from == task.Paused || from == task.Assigning {
						t.Desired = ""
					}
				})
				create(t, s, tk)
				c.ID = id
				want, n := tk.Clone(), 0
				if c.Apply(&want) {
					n = 1
				}
				apply(t, s, n, c)
				same(t, get(t, s, id), want)
				if want.LifecycleStatus == task.Created && want.NotBefore == 0 {
					waits = append(waits, want)
				}
			}
		}
		slices.SortFunc(waits, urgency)
		equal(t, "waiting then", ids(lines(t, s, 10)[waits[0].Queue()]), ids(waits))
	},
	"apply/a first claim of a task without attempt and claim id": func(t *testing.T, s store.Store) {
		create(t, s, many(1)...)
		a := claim(t, s, "t0000")
		got := get(t, s, "t0000")
		if got.LifecycleStatus != task.Assigning || got.Attempt != 1 || got.ClaimID != a.ClaimID || got.Executor != "n1" || got.Incarnation != "i1" {
			t.Errorf("after it: %+v", got)
		}
	},
	"apply/stale changes": func(t *testing.T, s store.Store) {
		create(t, s, many(1)...)
		old := claim(t, s, "t0000")
		report(t, s, 1, "t0000", old, task.ReportReleased)
		now := claim(t, s, "t0000")
		for _, kind := range []task.Kind{task.ReportStarted, task.ReportFinished, task.ReportFailed, task.ReportCancelled, task.ReportRejected, task.ReportReleased} {
			report(t, s, 0, "t0000", old, kind)
			report(t, s, 0, "t0000", task.Assignment{Attempt: now.Attempt, ClaimID: old.ClaimID}, kind)
			report(t, s, 0, "t0000", task.Assignment{Attempt: now.Attempt}, kind)
		}
		report(t, s, 1, "t0000", now, task.ReportFinished)
		report(t, s, 0, "t0000", now, task.ReportFinished)
	},
	// A give-back that was under way for long comes after another leader has taken the claim over, and perhaps sent it.
	"apply/a give-back of a claim that was adopted": func(t *testing.T, s store.Store) {
		create(t, s, many(2)...)
		a, b := claim(t, s, "t0000"), claim(t, s, "t0001")
		tk := get(t, s, "t0000")
		c := task.Adopt(&tk, base+10_000) // in the same millisecond
		apply(t, s, 1, c)
		apply(t, s, 0, c)
		want := tk
		want.AssignedDateTime, want.UpdateDateTime = a.At+1, base+10_000
		same(t, get(t, s, "t0000"), want)
		apply(t, s, 0, task.Unclaim("t0000", a, base+10_001))
		apply(t, s, 1, task.Unclaim("t0001", b, base+10_001))
		apply(t, s, 0, task.Adopt(new(get(t, s, "t0001")), base+10_002))
		report(t, s, 1, "t0000", a, task.ReportFinished)
	},
	"apply/many at once, some of which do not apply": func(t *testing.T, s store.Store) {
		tasks := many(100)
		create(t, s, tasks...)
		for i := range 30 {
			claim(t, s, tasks[i*3].ID)
		}
		changes := make([]task.Change, 0, len(tasks))
		for i := range tasks {
			changes = append(changes, task.Claim(&tasks[i], "n2", "i2", fmt.Sprintf("late-%d", i), base))
		}
		apply(t, s, 70, changes...)
		got := listAll(t, s, store.Filter{Executor: "n2", Limit: 1000})
		if len(got) != 70 {
			t.Errorf("%d are n2's; want 70", len(got))
		}
	},
	// S4 and C30: a claim whose reply got lost is sent again, and does not claim again.
	"apply/a claim whose reply got lost": func(t *testing.T, s store.Store) {
		tasks := many(3)
		create(t, s, tasks...)
		claims := make([]task.Change, 0, len(tasks))
		for i := range tasks {
			claims = append(claims, task.Claim(&tasks[i], "n1", "i1", fmt.Sprintf("c%d", i), base))
		}
		apply(t, s, 3, claims...)
		apply(t, s, 0, claims...)
		got, err := s.Get(t.Context(), ids(tasks))
		if err != nil || len(got) != 3 {
			t.Fatalf("get: %v, %v", got, err)
		}
		for i := range got {
			at := slices.IndexFunc(claims, func(c task.Change) bool { return c.ID == got[i].ID })
			if got[i].ClaimID != claims[at].Assign.ClaimID || got[i].Attempt != 1 || got[i].LifecycleStatus != task.Assigning {
				t.Errorf("after it: %+v", got[i])
			}
		}
	},
	"apply/progress is not shared": func(t *testing.T, s store.Store) {
		create(t, s, many(1)...)
		a := claim(t, s, "t0000")
		mine := &task.Progress{Percent: 10}
		r := task.Report{ID: "t0000", Attempt: a.Attempt, ClaimID: a.ClaimID, Kind: task.ReportProgress, Progress: mine}
		apply(t, s, 1, r.Changes(base)...)
		mine.Percent = 90
		if got := get(t, s, "t0000"); got.Progress == nil || got.Progress.Percent != 10 {
			t.Errorf("progress %+v", got.Progress)
		}
	},
	"apply/a result that is not storable as it is": func(t *testing.T, s store.Store) {
		for i, result := range []string{`{"a\u0000":1}`, `{"$where":[1e999,123456789012345678901234567890123456789012]}`} {
			id := fmt.Sprintf("t%d", i)
			create(t, s, fresh(id, 0))
			a := claim(t, s, id)
			r := task.Report{ID: id, Attempt: a.Attempt, ClaimID: a.ClaimID, Kind: task.ReportFinished, Result: json.RawMessage(result)}
			apply(t, s, 1, r.Changes(base)...)
			if got := get(t, s, id); string(got.Result) != result {
				t.Errorf("result %s; want %s", got.Result, result)
			}
		}
	},
	"apply/an ended context changes nothing": func(t *testing.T, s store.Store) {
		tasks := many(1)
		create(t, s, tasks...)
		if n, err := s.Apply(cancelled(t), []task.Change{task.Claim(&tasks[0], "n1", "i1", "c1", base)}); err == nil || n != 0 {
			t.Errorf("%d applied, error %v", n, err)
		}
		same(t, get(t, s, "t0000"), tasks[0])
	},
}

// changeSamples are changes of attempt 2 under c2, from some statuses to some, each with other fields set.
func changeSamples() []task.Change {
	progress := &task.Progress{Percent: 50, Message: "half"}
	assign := &task.Assignment{Executor: "n2", Incarnation: "i2", Attempt: 3, ClaimID: "c3", At: base + 7}
	all := task.Set(task.All()...)
	samples := []task.Change{
		{From: task.Set(task.Created, task.Running), To: task.Running},
		{From: all, To: task.Finished},
		{From: all, To: task.Paused, Desired: task.DesiredCancelled},
		{From: all, To: task.Cancelled, Desired: task.DesiredCancelled, FinishedAt: base},
		{From: all, To: task.Assigning, Assign: assign},
		{From: all, To: task.Assigning, Assign: assign, Reset: true},
		{From: all, To: task.Assigning, Assign: assign, StartedAt: base, Progress: progress, Error: "new"},
		{From: all, To: task.Created, Unassign: true},
		{From: all, To: task.Created, Unassign: true, Reset: true},
		{From: all, To: task.Created, Unassign: true, Assign: assign},
		{
			From: all, To: task.Created, Reset: true, StartedAt: base, FinishedAt: base, Error: "new", Progress: progress,
			Result: json.RawMessage(`1`), Desired: task.DesiredCancelled,
		},
		{From: all, To: task.Failed, StartedAt: base, FinishedAt: base + 1, Error: "new", Result: json.RawMessage(`{"new":[1.5]}`), Progress: progress},
		{From: 0, To: task.Failed},
		{From: all, To: task.Paused, IfDesired: new(task.Desired)},
		{From: all, To: task.Paused, IfDesired: new(task.DesiredCancelled), ClearDesired: true},
		{From: all, To: task.Running, IfDesired: new(task.DesiredPaused), ClearDesired: true},
		{From: all, To: task.Paused, Unassign: true},
		{From: all, To: task.Paused, Unassign: true, Assign: assign},
		{From: all, To: task.Created, NotBefore: base + 9, Unassign: true},
		{From: all, To: task.Created, NotBefore: base + 9, Reset: true},
	}
	for i := range samples {
		samples[i].Attempt, samples[i].ClaimID, samples[i].UpdatedAt = 2, "c2", base+int64(i)
	}
	return samples
}
