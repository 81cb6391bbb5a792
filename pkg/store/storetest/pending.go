package storetest

import (
	"fmt"
	"testing"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

var pendingCases = map[string]func(*testing.T, store.Store){
	"pending/order": func(t *testing.T, s store.Store) {
		at := func(id string, priority int, at int64) task.Task {
			return with(fresh(id, at), func(t *task.Task) { t.Priority = priority })
		}
		create(t, s, at("e", 0, 1), at("d", 5, 9), at("c", 5, 2), at("b", 5, 2), at("a", 0, 1), at("f", 10, 99), at("g", 0, 0), at("h", -1, -5))
		want := []string{"f", "b", "c", "d", "g", "a", "e", "h"}
		for _, limit := range []int{1, 2, 3, 7, 8, 9, store.MaxBatch} {
			equal(t, fmt.Sprintf("in pages of %d", limit), ids(drain(t, s, limit)), want)
		}
	},
	"pending/only what waits for the controller": func(t *testing.T, s store.Store) {
		create(t, s, fresh("waits", 0), with(fresh("edge", 0), func(t *task.Task) { t.Mode = task.ModeActive }))
		for i, status := range task.All()[1:] {
			create(t, s, with(fresh(fmt.Sprintf("x%d", i), 0), func(t *task.Task) { t.LifecycleStatus = status }))
		}
		equal(t, "pending", ids(drain(t, s, 10)), []string{"waits"})
	},
	"pending/of an empty store": func(t *testing.T, s store.Store) {
		page, err := s.Pending(t.Context(), store.Place{}, 10)
		if err != nil || len(page.Tasks) != 0 || page.More || page.Next.Set {
			t.Errorf("page %+v, error %v", page, err)
		}
		at := store.Place{Set: true, Priority: 5, CreateDateTime: 3, ID: "x"}
		page, err = s.Pending(t.Context(), at, 10)
		if err != nil || len(page.Tasks) != 0 || page.More || page.Next != at {
			t.Errorf("behind a place: page %+v, error %v", page, err)
		}
	},
	"pending/limits": func(t *testing.T, s store.Store) {
		for _, limit := range []int{-1, 0, store.MaxBatch + 1} {
			if _, err := s.Pending(t.Context(), store.Place{}, limit); err == nil {
				t.Errorf("limit %d is taken", limit)
			}
		}
	},
	"pending/behind a place that is gone": func(t *testing.T, s store.Store) {
		create(t, s, many(3)...)
		tasks := drain(t, s, 10)
		claim(t, s, "t0001")
		page, err := s.Pending(t.Context(), store.After(&tasks[1]), 10)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "behind it", ids(page.Tasks), []string{"t0002"})
	},
	// Paging passes over what cannot be placed, and neither repeats nor misses a task while others come and go.
	"pending/paging while others come and go": func(t *testing.T, s store.Store) {
		create(t, s, many(10)...)
		first, err := s.Pending(t.Context(), store.Place{}, 4)
		if err != nil || !first.More {
			t.Fatalf("first page: %+v, %v", first, err)
		}
		create(t, s, with(fresh("urgent", 50), func(t *task.Task) { t.Priority = 9 }), fresh("t0000x", 0), fresh("t0003x", 3), fresh("t0009x", 9))
		claim(t, s, "t0005")
		rest, err := s.Pending(t.Context(), first.Next, 100)
		if err != nil || rest.More {
			t.Fatalf("rest: %+v, %v", rest, err)
		}
		equal(t, "first page", ids(first.Tasks), []string{"t0000", "t0001", "t0002", "t0003"})
		equal(t, "rest", ids(rest.Tasks), []string{"t0003x", "t0004", "t0006", "t0007", "t0008", "t0009", "t0009x"})
		equal(t, "from the head", ids(drain(t, s, 3))[:2], []string{"urgent", "t0000"})
	},
	"pending/comes back when it is given back": func(t *testing.T, s store.Store) {
		create(t, s, many(3)...)
		a := claim(t, s, "t0001")
		equal(t, "claimed", ids(drain(t, s, 10)), []string{"t0000", "t0002"})
		apply(t, s, 1, task.GiveBack("t0001", a, base))
		equal(t, "given back", ids(drain(t, s, 10)), []string{"t0000", "t0001", "t0002"})
	},
	"pending/an ended context": func(t *testing.T, s store.Store) {
		if _, err := s.Pending(cancelled(t), store.Place{}, 1); err == nil {
			t.Error("no error")
		}
	},
}
