// Package storetest is the suite that every implementation of store.Store passes. It is for tests only.
//
// Each case gets an empty store of its own. A case says what every store does; what only one does (how much it keeps,
// what it makes of a document that someone else wrote) is tested where that store is.
package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// base is the time of the suite's tasks, epoch ms.
const base = int64(1796010393000)

// Run runs the suite. Open gives an empty store and sees to its end.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	t.Helper()
	for _, group := range []map[string]func(*testing.T, store.Store){
		createCases, queueCases, applyCases, permitCases, readCases, endCases, laterCases, restCases, settingsCases, raceCases,
	} {
		for name, run := range group {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				run(t, open(t))
			})
		}
	}
	t.Run("model", func(t *testing.T) {
		t.Parallel()
		runModel(t, open)
	})
}

// tester is a test, or one run of the model test.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Fatal(args ...any)
	Context() context.Context
}

// fresh is a task that waits. Its creation time is that many ms after the base.
func fresh(id string, at int64) task.Task {
	return task.Task{ID: id, ClassName: "resize", Mode: task.ModePassive, CreateDateTime: base + at, UpdateDateTime: base + at,
		LifecycleStatus: task.Created, Attachments: json.RawMessage(`{"n":1}`)}
}

func with(t task.Task, set func(*task.Task)) task.Task { set(&t); return t }

// many are n tasks that wait, t0000 first.
func many(n int) []task.Task {
	tasks := make([]task.Task, n)
	for i := range tasks {
		tasks[i] = fresh(fmt.Sprintf("t%04d", i), int64(i))
	}
	return tasks
}

// create stores tasks, and fails the test if one of them is not stored.
func create(t tester, s store.Store, tasks ...task.Task) {
	t.Helper()
	for part := range slices.Chunk(tasks, store.MaxBatch) {
		out, err := s.Create(t.Context(), part)
		if err != nil {
			t.Fatalf("create: %v", err)
		}
		if len(out) != len(part) {
			t.Fatalf("create: %d outcomes for %d tasks", len(out), len(part))
		}
		for i, o := range out {
			if o.Status != store.CreateOK || o.Err != nil || o.Existing != nil {
				t.Fatalf("create %s: %+v", part[i].ID, o)
			}
		}
	}
}

// apply carries changes out, and fails the test if it is not want of them that apply.
func apply(t tester, s store.Store, want int, changes ...task.Change) {
	t.Helper()
	if n, err := s.Apply(t.Context(), changes); err != nil || n != want {
		t.Fatalf("apply: %d of %d applied, error %v; want %d", n, len(changes), err, want)
	}
}

// get reads one task that must exist.
func get(t tester, s store.Store, id string) task.Task {
	t.Helper()
	got, err := s.Get(t.Context(), []string{id})
	if err != nil || len(got) != 1 {
		t.Fatalf("get %s: %d tasks, error %v", id, len(got), err)
	}
	return got[0]
}

// claim assigns a task that waits to node n1, as it is in the store.
func claim(t tester, s store.Store, id string) task.Assignment {
	t.Helper()
	tk := get(t, s, id)
	c := task.Claim(&tk, "n1", "i1", fmt.Sprintf("%s-claim-%d", id, tk.Attempt+1), base+10_000)
	apply(t, s, 1, c)
	return *c.Assign
}

// report carries out what a node says of a claim; want is how many changes must apply.
func report(t tester, s store.Store, want int, id string, a task.Assignment, kind task.Kind) {
	t.Helper()
	r := task.Report{ID: id, Attempt: a.Attempt, ClaimID: a.ClaimID, Kind: kind, StartedAt: base + 10_001, FinishedAt: base + 10_002}
	apply(t, s, want, r.Changes(base+10_003)...)
}

// end creates a task and ends it at that many ms after the base.
func end(t tester, s store.Store, id string, at int64) {
	t.Helper()
	tk := fresh(id, 0)
	create(t, s, tk)
	apply(t, s, 1, task.Refuse(&tk, "ended", base+at))
}

// text is a task as its JSON, which says all of it; a missing field and an empty one are the same.
func text(t tester, tk *task.Task) string {
	t.Helper()
	b, err := json.Marshal(tk)
	if err != nil {
		t.Fatalf("task %s is not JSON: %v", tk.ID, err)
	}
	return string(b)
}

// same fails the test if got is not want.
func same(t tester, got, want task.Task) {
	t.Helper()
	if g, w := text(t, &got), text(t, &want); g != w {
		t.Errorf("got  %s\nwant %s", g, w)
	}
}

// ids are the ids of tasks, in order.
func ids(tasks []task.Task) []string {
	out := make([]string, len(tasks))
	for i := range tasks {
		out[i] = tasks[i].ID
	}
	return out
}

// equal fails the test if got is not want.
func equal[T comparable](t tester, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v; want %v", what, got, want)
	}
}

// drain reads all that waits, in pages of that size, the most urgent first.
func drain(t tester, s store.Store, limit int) []task.Task {
	t.Helper()
	return slices.SortedFunc(func(yield func(task.Task) bool) {
		for _, name := range queueNames(t, s, limit) {
			for _, tk := range line(t, s, name, limit) {
				if !yield(tk) {
					return
				}
			}
		}
	}, urgency)
}

// listAll reads all pages of a List.
func listAll(t tester, s store.Store, f store.Filter) []task.Task {
	t.Helper()
	var all []task.Task
	for {
		page, err := s.List(t.Context(), f)
		if err != nil {
			t.Fatalf("list: %v", err)
		}
		if len(page.Tasks) > f.Limit {
			t.Fatalf("list: a page of %d; limit %d", len(page.Tasks), f.Limit)
		}
		all = append(all, page.Tasks...)
		if page.NextCursor == "" {
			return all
		}
		if len(page.Tasks) == 0 {
			t.Fatal("list: an empty page has a next one")
		}
		f.Cursor, f.Skip = page.NextCursor, 0
	}
}

// active reads all that is on nodes, by id.
func active(t tester, s store.Store) []string {
	t.Helper()
	var all []string
	err := s.Active(t.Context(), func(tk *task.Task) error {
		if tk.Attachments != nil || tk.Result != nil {
			return fmt.Errorf("task %s comes with attachments or a result", tk.ID)
		}
		all = append(all, tk.ID)
		return nil
	})
	if err != nil {
		t.Fatalf("active: %v", err)
	}
	slices.Sort(all)
	return all
}

// cancelled is a context that has ended.
func cancelled(t tester) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
