package storetest

import (
	"fmt"
	"testing"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

var endCases = map[string]func(*testing.T, store.Store){
	"purge/only what has ended": func(t *testing.T, s store.Store) {
		for _, status := range task.All() {
			id := string(status)
			create(t, s, with(fresh(id, 0), func(t *task.Task) { t.LifecycleStatus = status }))
			for i, want := range []bool{status.Terminal(), false} {
				if ok, err := s.Purge(t.Context(), id); err != nil || ok != want {
					t.Errorf("%s, call %d: %t, error %v", id, i, ok, err)
				}
			}
		}
		equal(t, "left", ids(listAll(t, s, store.Filter{Limit: 10})), []string{"Running", "Paused", "Created", "Assigning"})
		if ok, err := s.Purge(t.Context(), "nobody"); err != nil || ok {
			t.Errorf("of nobody: %t, %v", ok, err)
		}
		if _, err := s.Purge(cancelled(t), "x"); err == nil {
			t.Error("an ended context is no error")
		}
	},
	"purge/frees the id and the idempotency key": func(t *testing.T, s store.Store) {
		tk := with(fresh("t1", 0), func(t *task.Task) { t.IdempotencyKey = "k" })
		for range 2 {
			create(t, s, tk)
			apply(t, s, 1, task.Refuse(&tk, "no", base))
			if ok, err := s.Purge(t.Context(), "t1"); err != nil || !ok {
				t.Fatalf("purge: %t, %v", ok, err)
			}
		}
	},
	"expire/the oldest ends first, at most limit": func(t *testing.T, s store.Store) {
		create(t, s, fresh("waits", -1000))
		for i := range 5 {
			end(t, s, fmt.Sprintf("e%d", i), int64(i))
		}
		expire := func(before int64, limit, want int) {
			t.Helper()
			if n, err := s.Expire(t.Context(), base+before, limit); err != nil || n != want {
				t.Fatalf("expire before %d, limit %d: %d, error %v; want %d", before, limit, n, err, want)
			}
		}
		expire(0, 10, 0)
		expire(1, 10, 1)
		expire(4, 2, 2)
		if _, err := s.Expire(t.Context(), base, 0); err == nil {
			t.Error("limit 0 is taken")
		}
		if _, err := s.Expire(t.Context(), base, store.MaxBatch+1); err == nil {
			t.Error("a limit over MaxBatch is taken")
		}
		expire(1_000_000, 10, 2)
		expire(1_000_000, 10, 0)
		equal(t, "left", ids(listAll(t, s, store.Filter{Limit: 10})), []string{"waits"})
	},
	"expire/of all three ends, not of a retried one": func(t *testing.T, s store.Store) {
		for _, status := range task.Terminal.List() {
			create(t, s, with(fresh(string(status), 0), func(t *task.Task) { t.LifecycleStatus = status }))
		}
		end(t, s, "again", 0)
		tk := get(t, s, "again")
		c, ok := task.Retry(&tk, base+1)
		if !ok {
			t.Fatal("cannot be retried")
		}
		apply(t, s, 1, c)
		if n, err := s.Expire(t.Context(), base+1000, 10); err != nil || n != 3 {
			t.Errorf("%d expired, error %v", n, err)
		}
		equal(t, "pending", ids(drain(t, s, 10)), []string{"again"})
	},
	"expire/goes by the last update, also of what had ended": func(t *testing.T, s store.Store) {
		end(t, s, "e", 1)
		apply(t, s, 1, task.Change{ID: "e", From: task.Terminal, To: task.Failed, UpdatedAt: base + 9})
		for _, c := range []struct{ before, want int }{{5, 0}, {9, 0}, {10, 1}, {99, 0}} {
			if n, err := s.Expire(t.Context(), base+int64(c.before), 10); err != nil || n != c.want {
				t.Errorf("before %d: %d, error %v; want %d", c.before, n, err, c.want)
			}
		}
	},
	"retry/waits again in its old place": func(t *testing.T, s store.Store) {
		create(t, s, many(3)...)
		a := claim(t, s, "t0001")
		report(t, s, 1, "t0001", a, task.ReportFailed)
		tk := get(t, s, "t0001")
		c, _ := task.Retry(&tk, base+99)
		apply(t, s, 1, c)
		equal(t, "pending", ids(drain(t, s, 10)), []string{"t0000", "t0001", "t0002"})
		if b := claim(t, s, "t0001"); b.Attempt != a.Attempt+1 {
			t.Errorf("attempt %d after %d", b.Attempt, a.Attempt)
		}
	},
}
