package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

var raceCases = map[string]func(*testing.T, store.Store){
	// S4: many dispatchers at once, each task is claimed by exactly one of them.
	"S4 16 claimers on 2,000 tasks": func(t *testing.T, s store.Store) {
		const n, claimers = 2000, 16
		create(t, s, many(n)...)
		var wg sync.WaitGroup
		var total atomic.Int64
		for k := range claimers {
			wg.Go(func() {
				won, err := claimAll(t, s, fmt.Sprintf("n%d", k))
				if err != nil {
					t.Errorf("claimer %d: %v", k, err)
				}
				total.Add(int64(won))
			})
		}
		wg.Wait()
		if total.Load() != n {
			t.Errorf("%d claims won; want %d", total.Load(), n)
		}
		counts(t, s, map[task.Status]int64{task.Assigning: n})
		for _, tk := range listAll(t, s, store.Filter{Limit: 1000}) {
			if tk.Attempt != 1 || tk.ClaimID != tk.Executor+"/"+tk.ID {
				t.Fatalf("task %s: attempt %d, executor %s, claim %s", tk.ID, tk.Attempt, tk.Executor, tk.ClaimID)
			}
		}
	},
	"the same ids and keys created at once": func(t *testing.T, s store.Store) {
		const writers = 8
		var wg sync.WaitGroup
		var stored atomic.Int64
		for k := range writers {
			wg.Go(func() {
				tasks := make([]task.Task, 0, 100)
				for i := range 50 {
					tasks = append(tasks, fresh(fmt.Sprintf("same-%d", i), 0),
						with(fresh(fmt.Sprintf("w%d-%d", k, i), 0), func(t *task.Task) { t.IdempotencyKey = fmt.Sprintf("key-%d", i) }))
				}
				out, err := s.Create(t.Context(), tasks)
				if err != nil {
					t.Errorf("create: %v", err)
				}
				for i, o := range out {
					switch {
					case o.Status == store.CreateOK:
						stored.Add(1)
					case o.Existing == nil || o.Existing.ID != tasks[i].ID && o.Existing.IdempotencyKey != tasks[i].IdempotencyKey:
						t.Errorf("outcome of %s: %+v", tasks[i].ID, o)
					}
				}
			})
		}
		wg.Wait()
		if got := len(drain(t, s, 1000)); got != 100 || stored.Load() != 100 {
			t.Errorf("%d tasks are stored, %d writers were told so; want 100", got, stored.Load())
		}
	},
	// Each report of one claim competes with its loss and with a cancel; the task ends once, or waits again.
	"reports against losses": func(t *testing.T, s store.Store) {
		const n = 100
		create(t, s, many(n)...)
		if won, err := claimAll(t, s, "n1"); err != nil || won != n {
			t.Fatalf("claimed %d, error %v", won, err)
		}
		var wg sync.WaitGroup
		var applied atomic.Int64
		all := listAll(t, s, store.Filter{Limit: n})
		for _, kind := range []task.Kind{task.ReportFinished, task.ReportFailed, task.ReportReleased, task.ReportCancelled} {
			wg.Go(func() {
				changes := make([]task.Change, 0, 2*len(all))
				for i := range all {
					r := task.Report{ID: all[i].ID, Attempt: all[i].Attempt, ClaimID: all[i].ClaimID, Kind: kind}
					changes = append(changes, r.Changes(base)...)
				}
				k, err := s.Apply(t.Context(), changes)
				if err != nil {
					t.Errorf("apply: %v", err)
				}
				applied.Add(int64(k))
			})
		}
		wg.Wait()
		if applied.Load() != n {
			t.Errorf("%d changes applied to %d claims", applied.Load(), n)
		}
	},
}

// claimAll claims what waits, a page at a time, until nothing does. It returns how many it won, and checks that it is
// told the truth.
func claimAll(t tester, s store.Store, node string) (int, error) {
	won := 0
	for {
		page, err := s.Waiting(t.Context(), "0||resize", store.Place{}, 100)
		if err != nil || len(page.Tasks) == 0 {
			return won, err
		}
		claims := make([]task.Change, len(page.Tasks))
		for i := range page.Tasks {
			claims[i] = task.Claim(&page.Tasks[i], node, "i-"+node, node+"/"+page.Tasks[i].ID, base)
		}
		n, err := s.Apply(t.Context(), claims)
		if err != nil {
			return won, err
		}
		got, err := s.Get(t.Context(), ids(page.Tasks))
		if err != nil {
			return won, err
		}
		mine := 0
		for i := range got {
			if got[i].ClaimID == node+"/"+got[i].ID {
				mine++
			}
		}
		if mine != n {
			return won, fmt.Errorf("%d claims applied, %d tasks carry them", n, mine)
		}
		won += n
	}
}
