package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// permitted is a claim of a task, as it is in the store, with permits.
func permitted(t tester, s store.Store, id, key, pool string) task.Change {
	t.Helper()
	tk := get(t, s, id)
	c := task.Claim(&tk, "n1", "i1", fmt.Sprintf("%s-claim-%d", id, tk.Attempt+1), base+10_000)
	c.Assign.KeyPermit, c.Assign.PoolPermit = key, pool
	return c
}

// holds checks which permits a task has.
func holds(t tester, s store.Store, id, key, pool string) {
	t.Helper()
	if got := get(t, s, id); got.KeyPermit != key || got.PoolPermit != pool {
		t.Fatalf("task %s holds %q and %q; want %q and %q", id, got.KeyPermit, got.PoolPermit, key, pool)
	}
}

var permitCases = map[string]func(*testing.T, store.Store){
	"permits/one task holds each": func(t *testing.T, s store.Store) {
		create(t, s, many(6)...)
		apply(t, s, 1, permitted(t, s, "t0000", "k#0", "p#0"))
		holds(t, s, "t0000", "k#0", "p#0")
		before := get(t, s, "t0001")
		for _, c := range []struct{ key, pool string }{{"k#0", ""}, {"", "p#0"}, {"k#0", "p#1"}, {"k#1", "p#0"}, {"k#0", "p#0"}} {
			apply(t, s, 0, permitted(t, s, "t0001", c.key, c.pool))
			same(t, get(t, s, "t0001"), before)
		}
		// What a claim that did not apply asked for is free, and a key's permits are not a pool's.
		apply(t, s, 1, permitted(t, s, "t0001", "k#1", "p#1"))
		apply(t, s, 1, permitted(t, s, "t0002", "p#0", "k#0"))
		apply(t, s, 2, permitted(t, s, "t0003", "", ""), permitted(t, s, "t0004", "", ""))
		apply(t, s, 1, permitted(t, s, "t0005", "k#0\x00", "é"))
		holds(t, s, "t0005", "k#0\x00", "é")
	},
	"permits/a claim whose reply got lost": func(t *testing.T, s store.Store) {
		create(t, s, many(1)...)
		c := permitted(t, s, "t0000", "k#0", "p#0")
		apply(t, s, 1, c)
		apply(t, s, 0, c)
		holds(t, s, "t0000", "k#0", "p#0")
	},
	// What ends a claim frees its permits; what does not, does not.
	"permits/until the claim ends": func(t *testing.T, s store.Store) {
		create(t, s, many(1)...)
		said := func(kind task.Kind) func(*task.Task) []task.Change {
			return func(tk *task.Task) []task.Change {
				r := task.Report{ID: tk.ID, Attempt: tk.Attempt, ClaimID: tk.ClaimID, Kind: kind, StartedAt: base, FinishedAt: base}
				return r.Changes(base)
			}
		}
		one := func(c task.Change, ok bool) []task.Change {
			if !ok {
				t.Error("a change does not apply")
			}
			return []task.Change{c}
		}
		cases := []struct {
			name    string
			desired task.Desired
			steps   []func(*task.Task) []task.Change // the last one ends the claim
		}{
			{"finished", "", []func(*task.Task) []task.Change{said(task.ReportStarted), said(task.ReportProgress), said(task.ReportFinished)}},
			{"finished at once", "", []func(*task.Task) []task.Change{said(task.ReportFinished)}},
			{"failed", "", []func(*task.Task) []task.Change{said(task.ReportStarted), said(task.ReportFailed)}},
			{"cancelled", "", []func(*task.Task) []task.Change{said(task.ReportCancelled)}},
			{"rejected", "", []func(*task.Task) []task.Change{said(task.ReportRejected)}},
			{"released", "", []func(*task.Task) []task.Change{said(task.ReportStarted), said(task.ReportReleased)}},
			{"paused, resumed, finished", "", []func(*task.Task) []task.Change{said(task.ReportStarted), said(task.ReportPaused), said(task.ReportResumed), said(task.ReportFinished)}},
			{"paused and lost", task.DesiredPaused, []func(*task.Task) []task.Change{said(task.ReportStarted), func(tk *task.Task) []task.Change {
				return one(task.Lose(tk, task.LossSilent, task.DefaultPolicy(), base))
			}}},
			{"lost", "", []func(*task.Task) []task.Change{func(tk *task.Task) []task.Change {
				return one(task.Lose(tk, task.LossSilent, task.DefaultPolicy(), base))
			}}},
			{"given back", "", []func(*task.Task) []task.Change{func(tk *task.Task) []task.Change {
				return one(task.Unclaim(tk.ID, task.Assignment{Attempt: tk.Attempt, ClaimID: tk.ClaimID}, base), true)
			}}},
		}
		for i, c := range cases {
			id := fmt.Sprintf("c%d", i)
			create(t, s, fresh(id, 0))
			apply(t, s, 1, permitted(t, s, id, "k#0", "p#0"))
			if c.desired != "" {
				tk := get(t, s, id)
				apply(t, s, 1, task.Change{ID: id, From: task.Set(task.Assigning), Attempt: tk.Attempt, ClaimID: tk.ClaimID, To: task.Assigning, UpdatedAt: base, Desired: c.desired})
			}
			for j, step := range c.steps {
				apply(t, s, 0, permitted(t, s, "t0000", "k#0", "p#0"))
				holds(t, s, id, "k#0", "p#0")
				tk := get(t, s, id)
				changes := step(&tk)
				if n, err := s.Apply(t.Context(), changes); err != nil || n != 1 {
					t.Fatalf("%s, step %d: %d applied, error %v", c.name, j, n, err)
				}
			}
			holds(t, s, id, "", "")
			a := permitted(t, s, "t0000", "k#0", "p#0")
			apply(t, s, 1, a)
			apply(t, s, 1, task.Unclaim("t0000", *a.Assign, base))
		}
	},
	"permits/of a task that runs again": func(t *testing.T, s store.Store) {
		create(t, s, many(2)...)
		a := permitted(t, s, "t0000", "k#0", "p#0")
		apply(t, s, 1, a)
		report(t, s, 1, "t0000", *a.Assign, task.ReportFailed)
		retry, _ := task.Retry(new(get(t, s, "t0000")), base)
		apply(t, s, 1, retry)
		holds(t, s, "t0000", "", "")
		apply(t, s, 1, permitted(t, s, "t0001", "k#0", "p#1"))
		apply(t, s, 0, permitted(t, s, "t0000", "k#0", "p#0"))
		apply(t, s, 1, permitted(t, s, "t0000", "k#1", "p#0"))
	},
	"permits/of a task that comes with them": func(t *testing.T, s store.Store) {
		running := func(id, key, pool string) task.Task {
			return with(fresh(id, 0), func(t *task.Task) { t.LifecycleStatus, t.KeyPermit, t.PoolPermit = task.Running, key, pool })
		}
		create(t, s, running("a", "k#0", ""), running("b", "", "p#0"), fresh("c", 0))
		out, err := s.Create(t.Context(), []task.Task{running("d", "k#0", ""), running("e", "k#1", "p#0"), running("a", "k#0", ""), running("f", "k#1", "p#1")})
		if err != nil {
			t.Fatal(err)
		}
		outcomes(t, out, store.CreateFailed, store.CreateFailed, store.CreateExists, store.CreateOK)
		apply(t, s, 0, permitted(t, s, "c", "k#1", ""))
		apply(t, s, 1, permitted(t, s, "c", "k#2", "p#2"))
		same(t, get(t, s, "a"), running("a", "k#0", ""))
		if got, err := s.Get(t.Context(), []string{"d", "e"}); err != nil || len(got) != 0 {
			t.Errorf("stored all the same: %v, error %v", ids(got), err)
		}
	},
	"permits/many claims in one call": func(t *testing.T, s store.Store) {
		const n, keys, pools = 200, 7, 11
		create(t, s, many(n)...)
		claims := make([]task.Change, 0, n)
		for i := range n {
			claims = append(claims, permitted(t, s, fmt.Sprintf("t%04d", i), fmt.Sprintf("k#%d", i%keys), ""))
			if i%2 == 0 {
				claims[i].Assign.KeyPermit, claims[i].Assign.PoolPermit = "", fmt.Sprintf("p#%d", i/2%pools)
			}
		}
		apply(t, s, keys+pools, claims...)
		counts(t, s, map[task.Status]int64{task.Assigning: keys + pools, task.Created: n - keys - pools})
		onePermitEach(t, s)
	},
	// Several leaders at once: the limits hold.
	"permits/many claimers at once": func(t *testing.T, s store.Store) {
		const n, claimers, rounds, limit = 200, 8, 6, 3
		create(t, s, many(n)...)
		var wg sync.WaitGroup
		var claimed, ended atomic.Int64
		for k := range claimers {
			wg.Go(func() {
				for round := range rounds {
					page, err := s.Waiting(t.Context(), "0||resize", store.Place{}, 10)
					if err != nil {
						t.Errorf("claimer %d: %v", k, err)
						return
					}
					claims := make([]task.Change, len(page.Tasks))
					for i := range page.Tasks {
						tk := &page.Tasks[i]
						claims[i] = task.Claim(tk, "n1", "i1", fmt.Sprintf("%d/%d/%s", k, round, tk.ID), base)
						claims[i].Assign.KeyPermit = task.Permit("k", (i+k)%limit)
					}
					won, err := s.Apply(t.Context(), claims)
					if err != nil {
						t.Errorf("claimer %d: %v", k, err)
						return
					}
					claimed.Add(int64(won))
					if round == rounds-1 {
						return
					}
					var reports []task.Change
					for i := range claims {
						a := claims[i].Assign
						r := task.Report{ID: claims[i].ID, Attempt: a.Attempt, ClaimID: a.ClaimID, Kind: task.ReportFinished}
						reports = append(reports, r.Changes(base)...)
					}
					done, err := s.Apply(t.Context(), reports)
					if err != nil || done != won {
						t.Errorf("claimer %d: %d claims applied, %d of them ended, error %v", k, won, done, err)
					}
					ended.Add(int64(done))
				}
			})
		}
		wg.Wait()
		onePermitEach(t, s)
		held := claimed.Load() - ended.Load()
		if claimed.Load() < limit || held > limit {
			t.Errorf("%d claimed, %d ended: %d are held; want at most %d", claimed.Load(), ended.Load(), held, limit)
		}
		counts(t, s, map[task.Status]int64{task.Assigning: held, task.Finished: ended.Load(), task.Created: n - claimed.Load()})
	},
}

// onePermitEach checks that no two tasks on nodes have the same permit, and that no other has any.
func onePermitEach(t tester, s store.Store) {
	t.Helper()
	holder := map[string]string{}
	for _, tk := range listAll(t, s, store.Filter{Limit: 1000}) {
		for kind, permit := range map[string]string{"key ": tk.KeyPermit, "pool ": tk.PoolPermit} {
			switch {
			case permit == "":
			case !tk.LifecycleStatus.Active():
				t.Errorf("task %s is %s and holds %q", tk.ID, tk.LifecycleStatus, permit)
			case holder[kind+permit] != "":
				t.Errorf("tasks %s and %s hold %q", holder[kind+permit], tk.ID, permit)
			default:
				holder[kind+permit] = tk.ID
			}
		}
	}
}
