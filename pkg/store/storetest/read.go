package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

var readCases = map[string]func(*testing.T, store.Store){
	"get/some that exist": func(t *testing.T, s store.Store) {
		create(t, s, many(3)...)
		got, err := s.Get(t.Context(), []string{"t0002", "nobody", "", "t0000", "t0002"})
		if err != nil {
			t.Fatal(err)
		}
		list := ids(got)
		slices.Sort(list)
		equal(t, "got", list, []string{"t0000", "t0002"})
	},
	"get/none, and too many": func(t *testing.T, s store.Store) {
		if got, err := s.Get(t.Context(), nil); err != nil || len(got) != 0 {
			t.Errorf("got %v, error %v", got, err)
		}
		if _, err := s.Get(t.Context(), make([]string, store.MaxBatch+1)); err == nil {
			t.Error("a batch over the limit is taken")
		}
		if _, err := s.Get(cancelled(t), []string{"a"}); err == nil {
			t.Error("an ended context is no error")
		}
	},
	"active/what nodes may hold": func(t *testing.T, s store.Store) {
		for _, status := range task.All() {
			create(t, s, with(fresh(string(status), 0), func(t *task.Task) { t.LifecycleStatus, t.Result = status, json.RawMessage(`1`) }))
		}
		equal(t, "active", active(t, s), []string{"Assigning", "Paused", "Running"})
		stop := errors.New("enough")
		n := 0
		err := s.Active(t.Context(), func(*task.Task) error { n++; return stop })
		if !errors.Is(err, stop) || n != 1 {
			t.Errorf("yield gave an error: called %d times, error %v", n, err)
		}
		if err := s.Active(cancelled(t), func(*task.Task) error { return nil }); err == nil {
			t.Error("an ended context is no error")
		}
	},
	"active/more than a page, and yield uses the store": func(t *testing.T, s store.Store) {
		tasks := many(2500)
		for i := range tasks {
			tasks[i].LifecycleStatus = task.Running
		}
		create(t, s, tasks...)
		n := 0
		err := s.Active(t.Context(), func(tk *task.Task) error {
			if n++; n%1000 != 0 {
				return nil
			}
			got, err := s.Get(t.Context(), []string{tk.ID})
			if err == nil && len(got) != 1 {
				err = fmt.Errorf("%s is active, but does not exist", tk.ID)
			}
			return err
		})
		if err != nil || n != 2500 {
			t.Errorf("%d tasks, error %v", n, err)
		}
	},
	"desired/of tasks on nodes": func(t *testing.T, s store.Store) {
		create(t, s, many(6)...)
		for _, id := range []string{"t0001", "t0002", "t0003", "t0004"} {
			claim(t, s, id)
		}
		for _, id := range []string{"t0000", "t0001", "t0002", "t0003"} {
			tk := get(t, s, id)
			c, _ := task.Cancel(&tk, base)
			apply(t, s, 1, c)
		}
		checkDesired(t, s, 10, "t0001", "t0002", "t0003")
		held := get(t, s, "t0002")
		report(t, s, 1, "t0002", task.Assignment{Attempt: held.Attempt, ClaimID: held.ClaimID}, task.ReportCancelled)
		checkDesired(t, s, 10, "t0001", "t0003")
		if got, err := s.Desired(t.Context(), 1); err != nil || len(got) != 1 {
			t.Errorf("limit 1: %v, %v", got, err)
		}
		for _, limit := range []int{0, store.MaxBatch + 1} {
			if _, err := s.Desired(t.Context(), limit); err == nil {
				t.Errorf("limit %d is taken", limit)
			}
		}
	},
	"counts": func(t *testing.T, s store.Store) {
		counts(t, s, map[task.Status]int64{})
		create(t, s, many(5)...)
		a := claim(t, s, "t0000")
		report(t, s, 1, "t0000", a, task.ReportStarted)
		claim(t, s, "t0001")
		end(t, s, "x", 1)
		counts(t, s, map[task.Status]int64{task.Created: 3, task.Assigning: 1, task.Running: 1, task.Failed: 1})
	},
	"list/filters and order": func(t *testing.T, s store.Store) {
		at := func(id, class, executor string, status task.Status, at int64) task.Task {
			return with(fresh(id, at), func(t *task.Task) { t.ClassName, t.Executor, t.LifecycleStatus = class, executor, status })
		}
		create(t, s,
			at("a1", "x", "n1", task.Running, 3), at("a2", "y", "n1", task.Running, 3), at("b1", "x", "n2", task.Finished, 1),
			at("b2", "x", "", task.Created, 2), at("c1", "y", "n1", task.Finished, 0), at("a.1", "x", "n11", task.Failed, 9))
		cases := []struct {
			name string
			f    store.Filter
			want []string
		}{
			{"all", store.Filter{}, []string{"a.1", "a2", "a1", "b2", "b1", "c1"}},
			{"one status", store.Filter{Status: []task.Status{task.Finished}}, []string{"b1", "c1"}},
			{"two statuses", store.Filter{Status: []task.Status{task.Finished, task.Running}}, []string{"a2", "a1", "b1", "c1"}},
			{"a class", store.Filter{ClassName: "x"}, []string{"a.1", "a1", "b2", "b1"}},
			{"an executor", store.Filter{Executor: "n1"}, []string{"a2", "a1", "c1"}},
			{"an executor and a status", store.Filter{Executor: "n1", Status: []task.Status{task.Finished}}, []string{"c1"}},
			{"an id prefix", store.Filter{IDPrefix: "a"}, []string{"a.1", "a2", "a1"}},
			{"an id prefix that is no pattern", store.Filter{IDPrefix: "a."}, []string{"a.1"}},
			{"everything", store.Filter{IDPrefix: "a", ClassName: "x", Executor: "n1", Status: []task.Status{task.Running}}, []string{"a1"}},
			{"nothing", store.Filter{ClassName: "z"}, nil},
		}
		for _, c := range cases {
			for _, limit := range []int{1, 2, 6, store.MaxBatch} {
				f := c.f
				f.Limit = limit
				equal(t, fmt.Sprintf("%s, in pages of %d", c.name, limit), ids(listAll(t, s, f)), c.want)
				f.Total = true
				page, err := s.List(t.Context(), f)
				if err != nil || page.Total != int64(len(c.want)) {
					t.Errorf("%s: total %d, error %v; want %d", c.name, page.Total, err, len(c.want))
				}
				for skip := range len(c.want) + 2 {
					f.Skip = skip
					page, err := s.List(t.Context(), f)
					if err != nil {
						t.Fatalf("%s, skip %d: %v", c.name, skip, err)
					}
					want := c.want[min(skip, len(c.want)):]
					equal(t, fmt.Sprintf("%s, skip %d, limit %d", c.name, skip, limit), ids(page.Tasks), want[:min(limit, len(want))])
				}
			}
		}
	},
	"list/whole tasks": func(t *testing.T, s store.Store) {
		create(t, s, many(1)...)
		page, err := s.List(t.Context(), store.Filter{Limit: 1})
		if err != nil || len(page.Tasks) != 1 || page.NextCursor != "" {
			t.Fatalf("page %+v, error %v", page, err)
		}
		same(t, page.Tasks[0], many(1)[0])
	},
	"list/a later page is not moved by new tasks": func(t *testing.T, s store.Store) {
		create(t, s, many(10)...)
		first, err := s.List(t.Context(), store.Filter{Limit: 4})
		if err != nil {
			t.Fatal(err)
		}
		create(t, s, fresh("newest", 99))
		rest := listAll(t, s, store.Filter{Limit: 4, Cursor: first.NextCursor})
		equal(t, "rest", ids(rest), []string{"t0005", "t0004", "t0003", "t0002", "t0001", "t0000"})
	},
	"list/more than a few pages of one filter": func(t *testing.T, s store.Store) {
		tasks := many(2500)
		for i := range tasks {
			if i%500 == 0 {
				tasks[i].ClassName = "rare"
			}
		}
		create(t, s, tasks...)
		equal(t, "rare", ids(listAll(t, s, store.Filter{Limit: 2, ClassName: "rare"})), []string{"t2000", "t1500", "t1000", "t0500", "t0000"})
		if page, err := s.List(t.Context(), store.Filter{Limit: 10, Skip: 2495}); err != nil || len(page.Tasks) != 5 || page.Tasks[0].ID != "t0004" {
			t.Errorf("skip 2495: %v, %v", ids(page.Tasks), err)
		}
	},
	"list/bad input": func(t *testing.T, s store.Store) {
		create(t, s, many(2)...)
		for _, cursor := range []string{"x", "!", "AAAA"} {
			if _, err := s.List(t.Context(), store.Filter{Limit: 1, Cursor: cursor}); !errors.Is(err, store.ErrBadCursor) {
				t.Errorf("cursor %q: error %v", cursor, err)
			}
		}
		for _, f := range []store.Filter{{}, {Limit: -1}, {Limit: store.MaxBatch + 1}, {Limit: 1, Skip: -1}, {Limit: 1, Skip: 1, Cursor: "x"}} {
			if _, err := s.List(t.Context(), f); err == nil {
				t.Errorf("%+v is taken", f)
			}
		}
		if _, err := s.List(cancelled(t), store.Filter{Limit: 1}); !errors.Is(err, context.Canceled) {
			t.Errorf("an ended context: error %v", err)
		}
	},
}

// checkDesired checks the ids of all tasks with a desired state.
func checkDesired(t tester, s store.Store, limit int, want ...string) {
	t.Helper()
	got, err := s.Desired(t.Context(), limit)
	if err != nil {
		t.Fatalf("desired: %v", err)
	}
	for i := range got {
		if got[i].Desired == "" || got[i].Attachments != nil || got[i].Result != nil {
			t.Errorf("desired %+v", got[i])
		}
	}
	list := ids(got)
	slices.Sort(list)
	equal(t, "desired", list, want)
}

// counts checks the counts; a missing one is 0.
func counts(t tester, s store.Store, want map[task.Status]int64) {
	t.Helper()
	got, err := s.Counts(t.Context())
	if err != nil {
		t.Fatalf("counts: %v", err)
	}
	for _, status := range task.All() {
		if got[status] != want[status] {
			t.Errorf("%s: %d; want %d", status, got[status], want[status])
		}
	}
}
