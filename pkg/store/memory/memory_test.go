package memory

import (
	"fmt"
	"testing"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/store/storetest"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) store.Store { return New() })
}

func fresh(i int) task.Task {
	return task.Task{ID: fmt.Sprintf("t%07d", i), ClassName: "demo.echo", Mode: task.ModePassive, LifecycleStatus: task.Created,
		CreateDateTime: 1796010393000 + int64(i/300), UpdateDateTime: 1796010393000, Attachments: []byte(`{"n":1}`)}
}

// TestKeepsTheLastEnded: what ended the longest ago goes first; what has not ended never goes.
func TestKeepsTheLastEnded(t *testing.T) {
	t.Parallel()
	const keep, n = 5, 12
	s := newStore(keep)
	var ends []task.Change
	for i := range n {
		tk := fresh(i)
		tk.IdempotencyKey = tk.ID
		if out, err := s.Create(t.Context(), []task.Task{tk}); err != nil || out[0].Status != store.CreateOK {
			t.Fatalf("create: %v, %v", out, err)
		}
		if i != 3 {
			ends = append([]task.Change{task.Refuse(&tk, "no", int64(1000-i))}, ends...) // the last one ends first
		}
	}
	if k, err := s.Apply(t.Context(), ends); err != nil || k != n-1 {
		t.Fatalf("apply: %d, %v", k, err)
	}
	page, err := s.List(t.Context(), store.Filter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tk := range page.Tasks {
		got = append(got, tk.ID)
	}
	want := []string{"t0000005", "t0000004", "t0000003", "t0000002", "t0000001", "t0000000"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("kept %v; want %v", got, want)
	}
	if len(s.tasks.byKey) != keep+1 || len(s.tasks.byID) != keep+1 || s.tasks.ended.Len() != keep {
		t.Errorf("left: %d keys, %d ids, %d ended", len(s.tasks.byKey), len(s.tasks.byID), s.tasks.ended.Len())
	}
}

// TestEmptyAfterAll: when the last task is gone, no index holds anything.
func TestEmptyAfterAll(t *testing.T) {
	t.Parallel()
	s := newStore(0)
	for i := range 50 {
		tk := fresh(i)
		tk.IdempotencyKey = tk.ID
		if _, err := s.Create(t.Context(), []task.Task{tk}); err != nil {
			t.Fatal(err)
		}
		for _, next := range []func() task.Change{
			func() task.Change {
				c := task.Claim(&tk, "n1", "i1", "c1", 5)
				c.Assign.KeyPermit, c.Assign.PoolPermit = "k#0", "p#0"
				return c
			},
			func() task.Change { c, _ := task.Cancel(&tk, 6); return c },
			func() task.Change {
				r := task.Report{ID: tk.ID, Attempt: tk.Attempt, ClaimID: tk.ClaimID, Kind: task.ReportCancelled}
				return r.Changes(7)[0]
			},
		} {
			c := next()
			c.Apply(&tk)
			if n, err := s.Apply(t.Context(), []task.Change{c}); err != nil || n != 1 {
				t.Fatalf("apply %+v: %d, %v", c, n, err)
			}
		}
	}
	x := s.tasks
	sizes := []int{len(x.byID), len(x.byKey), len(x.desired), len(x.queues.byName), len(x.keyPermits), len(x.poolPermits), x.queues.names.Len(), len(x.byExecutor), x.ended.Len()}
	for _, tree := range x.byStatus {
		sizes = append(sizes, tree.Len())
	}
	for i, n := range sizes {
		if n != 0 {
			t.Errorf("index %d holds %d: %v", i, n, sizes)
		}
	}
}
