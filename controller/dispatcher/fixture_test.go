package dispatcher_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/skalds-go/skalds/controller/dispatcher"
	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/controller/transport"
	"github.com/skalds-go/skalds/pkg/clock/clocktest"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/store/memory"
	"github.com/skalds-go/skalds/pkg/task"
)

// wire is a transport that records what was sent and returns the given outcome.
type wire struct {
	mu      sync.Mutex
	sent    map[string][]string // node -> task ids
	claims  map[string]int      // claim id -> times
	outcome transport.Outcome
	err     error
	never   map[string]error // task id -> why it fits into no event
}

func (w *wire) Assign(_ context.Context, _ int64, batches []transport.Batch) []transport.Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	results := make([]transport.Result, len(batches))
	for i, b := range batches {
		results[i] = transport.Result{Outcomes: make([]transport.Outcome, len(b.Tasks)), Err: w.err}
		for j := range b.Tasks {
			if why := w.never[b.Tasks[j].ID]; why != nil {
				results[i].Outcomes[j], results[i].Never = transport.NotSent, map[int]error{j: why}
				continue
			}
			results[i].Outcomes[j] = w.outcome
			if w.outcome == transport.Sent {
				w.sent[b.To.Node] = append(w.sent[b.To.Node], b.Tasks[j].ID)
				w.claims[b.Tasks[j].ClaimID]++
			}
		}
	}
	return results
}

func (w *wire) total() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.claims)
}

type lease struct{ remaining time.Duration }

func (l *lease) Term() int64              { return 1 }
func (l *lease) Remaining() time.Duration { return l.remaining }

// faulty is a store whose Apply fails, before or after it has taken effect.
type faulty struct {
	*memory.Store
	before, after error
	rival         func([]task.Change) // runs before the changes are applied
	pages         int
	read          int // tasks
	applies       int
}

func (f *faulty) Waiting(ctx context.Context, queue string, after store.Place, limit int) (store.PendingPage, error) {
	f.pages++
	page, err := f.Store.Waiting(ctx, queue, after, limit)
	f.read += len(page.Tasks)
	return page, err
}

func (f *faulty) Apply(ctx context.Context, changes []task.Change) (int, error) {
	f.applies++
	if f.rival != nil {
		f.rival(changes)
	}
	if f.before != nil {
		return 0, f.before
	}
	n, err := f.Store.Apply(ctx, changes)
	if f.after != nil {
		return 0, f.after
	}
	return n, err
}

type bundle struct {
	store *faulty
	fleet *fleet.Fleet
	wire  *wire
	lease *lease
	clock *clocktest.Fake
	d     *dispatcher.Dispatcher
}

func setup(t testing.TB, nodes ...registry.Node) *bundle {
	t.Helper()
	b := &bundle{
		store: &faulty{Store: memory.New()},
		fleet: fleet.New(fleet.Config{LostTimeout: time.Minute, StaleAfter: time.Hour, Protocol: 1}),
		wire:  &wire{sent: map[string][]string{}, claims: map[string]int{}},
		lease: &lease{remaining: time.Second},
		clock: clocktest.New(time.UnixMilli(1_700_000_000_000)),
	}
	b.fleet.Observe(registry.Snapshot{RunID: "r", Nodes: nodes}, b.clock.Boot(), b.clock.Boot())
	b.d = b.dispatcher("l1")
	return b
}

func (b *bundle) dispatcher(id string) *dispatcher.Dispatcher { return b.dispatcherOn(b.store, id) }

// dispatcherOn returns a dispatcher with a store of its own.
func (b *bundle) dispatcherOn(s dispatcher.Store, id string) *dispatcher.Dispatcher {
	return dispatcher.New(dispatcher.Config{Strategy: placement.LeastTasks, ID: id, TaskMaxBytes: 1024}, s, b.fleet, b.wire, b.lease,
		b.clock, dispatcher.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
}

func node(id string, capacity int, classes ...string) registry.Node {
	return registry.Node{ID: id, Incarnation: id + "-1", Counter: 1, Mode: registry.ModeNode, State: registry.Online,
		Classes: classes, Capacity: capacity, Protocol: 1}
}

// submit stores n tasks of a class.
func (b *bundle) submit(t *testing.T, class string, n int, change ...func(*task.Task)) []string {
	t.Helper()
	ids := make([]string, n)
	for from := 0; from < n; from += store.MaxBatch {
		var tasks []task.Task
		for i := from; i < min(n, from+store.MaxBatch); i++ {
			ids[i] = fmt.Sprintf("%s-%06d", class, i)
			tk := task.Task{ID: ids[i], ClassName: class, Mode: task.ModePassive, LifecycleStatus: task.Created, CreateDateTime: int64(1000 + i)}
			for _, f := range change {
				f(&tk)
			}
			tasks = append(tasks, tk)
		}
		if _, err := b.store.Create(t.Context(), tasks); err != nil {
			t.Fatal(err)
		}
	}
	return ids
}

func (b *bundle) get(t *testing.T, id string) task.Task {
	t.Helper()
	list, err := b.store.Get(t.Context(), []string{id})
	if err != nil || len(list) != 1 {
		t.Fatalf("get %s: %v, %v", id, list, err)
	}
	return list[0]
}

func (b *bundle) claims() int {
	_, n := b.fleet.Size()
	return n
}

func namespace(ns string) func(*task.Task) { return func(t *task.Task) { t.Namespace = ns } }

func key(k string, limit int) func(*task.Task) {
	return func(t *task.Task) { t.ConcurrencyKey, t.ConcurrencyLimit = k, limit }
}

func named(prefix string) func(*task.Task) { return func(t *task.Task) { t.ID = prefix + t.ID } }

// round makes a round and returns its outcome.
func (b *bundle) round(t *testing.T) dispatcher.Outcome {
	t.Helper()
	out, err := b.d.Round(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// running returns the sorted ids of the tasks on nodes.
func (b *bundle) running(t *testing.T) []string {
	t.Helper()
	var ids []string
	err := b.store.Active(t.Context(), func(tk *task.Task) error { ids = append(ids, tk.ID); return nil })
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ids)
	return ids
}

// end ends one task that is on a node.
func (b *bundle) end(t *testing.T, id string) {
	t.Helper()
	tk := b.get(t, id)
	r := task.Report{ID: id, Attempt: tk.Attempt, ClaimID: tk.ClaimID, Kind: task.ReportFinished, FinishedAt: 2}
	if n, err := b.store.Store.Apply(t.Context(), r.Changes(1)); err != nil || n != 1 {
		t.Fatalf("%d changed, %v", n, err)
	}
	b.fleet.Reported(fleet.Key{Node: tk.Executor, Incarnation: tk.Incarnation}, &r)
}
