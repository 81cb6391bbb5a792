package storetest

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// promote lets tasks wait by now, and fails the test if it is not want of them, or another time is next.
func promote(t tester, s store.Store, now int64, limit, want int, next int64) {
	t.Helper()
	n, at, err := s.Promote(t.Context(), now, limit)
	if err != nil || n != want || at != next {
		t.Fatalf("promote by %d: %d, next %d, error %v; want %d, next %d", now, n, at, err, want, next)
	}
}

func notBefore(id string, at int64) task.Task {
	return with(fresh(id, 0), func(t *task.Task) { t.NotBefore = at })
}

func deadline(id string, at int64) task.Task {
	return with(fresh(id, 0), func(t *task.Task) { t.DeadlineDateTime = at })
}

var laterCases = map[string]func(*testing.T, store.Store){
	"later/a task waits from its time on": func(t *testing.T, s store.Store) {
		create(t, s, notBefore("b", base+20), notBefore("a", base+10), fresh("now", 5), notBefore("c", base+30))
		equal(t, "before", ids(drain(t, s, 10)), []string{"now"})
		promote(t, s, base+9, 10, 0, base+10)
		promote(t, s, base+10, 10, 1, base+20)
		equal(t, "at its time", ids(drain(t, s, 10)), []string{"a", "now"})
		promote(t, s, base+100, 1, 1, base+30)
		promote(t, s, base+100, 10, 1, 0)
		promote(t, s, base+100, 10, 0, 0)
		equal(t, "all", ids(drain(t, s, 10)), []string{"a", "b", "c", "now"})
		if got := get(t, s, "a"); got.NotBefore != 0 || got.LifecycleStatus != task.Created {
			t.Errorf("%+v", got)
		}
	},
	"later/limits": func(t *testing.T, s store.Store) {
		for _, limit := range []int{0, store.MaxBatch + 1} {
			if _, _, err := s.Promote(t.Context(), base, limit); err == nil {
				t.Errorf("Promote takes the limit %d", limit)
			}
			if _, _, err := s.Overdue(t.Context(), base, limit); err == nil {
				t.Errorf("Overdue takes the limit %d", limit)
			}
		}
	},
	"later/a failure waits for its time": func(t *testing.T, s store.Store) {
		create(t, s, fresh("x", 0))
		a := claim(t, s, "x")
		tk := get(t, s, "x")
		c := task.Change{ID: "x", From: task.Set(task.Assigning), Attempt: a.Attempt, ClaimID: a.ClaimID, To: task.Created, UpdatedAt: base + 1,
			Unassign: true, NotBefore: base + 50, Counts: &task.Counts{Failures: 1}, Error: "boom",
			Run: &task.Run{Attempt: 1, Executor: "n1", StartDateTime: base, FinishDateTime: base + 1, Outcome: "failed", Error: "boom"}}
		apply(t, s, 1, c)
		c.Apply(&tk)
		same(t, get(t, s, "x"), tk)
		equal(t, "before", ids(drain(t, s, 10)), nil)
		promote(t, s, base+50, 10, 1, 0)
		equal(t, "at its time", ids(drain(t, s, 10)), []string{"x"})
	},
	"later/a cancelled task does not come back": func(t *testing.T, s store.Store) {
		create(t, s, notBefore("x", base+10))
		tk := get(t, s, "x")
		c, _ := task.Cancel(&tk, base+1)
		apply(t, s, 1, c)
		promote(t, s, base+100, 10, 0, 0)
		equal(t, "pending", ids(drain(t, s, 10)), nil)
	},
	"later/the history keeps the last runs": func(t *testing.T, s store.Store) {
		create(t, s, fresh("x", 0))
		tk := get(t, s, "x")
		for i := range task.MaxRuns + 5 {
			c := task.Change{ID: "x", From: task.Set(task.Created), To: task.Created, UpdatedAt: base + int64(i), Run: &task.Run{Attempt: int64(i), Executor: "n", Outcome: "failed"}}
			apply(t, s, 1, c)
			c.Apply(&tk)
		}
		if len(tk.Attempts) != task.MaxRuns || tk.Attempts[0].Attempt != 5 {
			t.Fatalf("%d runs, the first %+v", len(tk.Attempts), tk.Attempts[0])
		}
		same(t, get(t, s, "x"), tk)
	},
	"later/attachments change by version": func(t *testing.T, s store.Store) {
		create(t, s, fresh("x", 0))
		update := func(from int64, text string) task.Change {
			return task.Change{ID: "x", From: task.Set(task.Created), To: task.Created, UpdatedAt: base,
				Update: &task.Update{From: from, Attachments: json.RawMessage(text)}}
		}
		apply(t, s, 1, update(0, `{"n":2}`))
		apply(t, s, 0, update(0, `{"n":3}`))
		apply(t, s, 1, update(1, `{"n":4}`))
		if got := get(t, s, "x"); got.AttachmentsVersion != 2 || string(got.Attachments) != `{"n":4}` {
			t.Errorf("version %d, %s", got.AttachmentsVersion, got.Attachments)
		}
		apply(t, s, 1, update(2, ""))
		if got := get(t, s, "x"); len(got.Attachments) != 0 {
			t.Errorf("%s", got.Attachments)
		}
	},
	"later/a request is withdrawn": func(t *testing.T, s store.Store) {
		create(t, s, fresh("x", 0))
		claim(t, s, "x")
		tk := get(t, s, "x")
		c, _ := task.Cancel(&tk, base)
		apply(t, s, 1, c)
		undo := task.Change{ID: "x", From: task.Set(task.Assigning), Attempt: tk.Attempt, ClaimID: tk.ClaimID, To: task.Assigning, UpdatedAt: base, ClearDesired: true}
		apply(t, s, 1, undo)
		if got := get(t, s, "x"); got.Desired != "" {
			t.Errorf("desired %q", got.Desired)
		}
		if left, err := s.Desired(t.Context(), 10); err != nil || len(left) != 0 {
			t.Errorf("desired %v, error %v", ids(left), err)
		}
	},
	"overdue/the earliest first": func(t *testing.T, s store.Store) {
		create(t, s, deadline("b", base+20), deadline("a", base+10), fresh("none", 0), deadline("c", base+30))
		for _, c := range []struct {
			now   int64
			limit int
			want  []string
			next  int64
		}{
			{base + 9, 10, nil, base + 10},
			{base + 10, 10, []string{"a"}, base + 20},
			{base + 25, 10, []string{"a", "b"}, base + 30},
			{base + 25, 1, []string{"a"}, base + 30},
			{base + 30, 10, []string{"a", "b", "c"}, 0},
		} {
			got, next, err := s.Overdue(t.Context(), c.now, c.limit)
			if err != nil || next != c.next {
				t.Errorf("by %d: next %d, error %v; want %d", c.now, next, err, c.next)
			}
			equal(t, fmt.Sprint("by ", c.now), ids(got), c.want)
		}
	},
	"overdue/only what has not ended": func(t *testing.T, s store.Store) {
		for i, status := range task.All() {
			create(t, s, with(deadline(fmt.Sprintf("x%d", i), base+int64(i)), func(t *task.Task) { t.LifecycleStatus = status }))
		}
		got, _, err := s.Overdue(t.Context(), base+100, 10)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "overdue", ids(got), []string{"x0", "x1", "x2", "x3"})
		tk := get(t, s, "x0")
		apply(t, s, 1, task.Refuse(&tk, "too late", base+200))
		got, _, err = s.Overdue(t.Context(), base+100, 10)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "after one has ended", ids(got), []string{"x1", "x2", "x3"})
	},
}
