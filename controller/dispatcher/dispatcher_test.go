package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
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

// wire is a transport that remembers what it was given, and answers as it is told.
type wire struct {
	mu      sync.Mutex
	sent    map[string][]string // node -> task ids
	claims  map[string]int      // claim id -> times
	outcome transport.Outcome
	err     error
}

func (w *wire) Assign(_ context.Context, _ int64, batches []transport.Batch) []transport.Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	results := make([]transport.Result, len(batches))
	for i, b := range batches {
		results[i] = transport.Result{Outcomes: make([]transport.Outcome, len(b.Tasks)), Err: w.err}
		for j := range b.Tasks {
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

type lease struct{ left time.Duration }

func (l *lease) Term() int64              { return 1 }
func (l *lease) Remaining() time.Duration { return l.left }

// faulty is a store whose Apply fails, before or after it had its effect.
type faulty struct {
	*memory.Store
	before, after error
	rival         func([]task.Change) // does something before what is applied
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
		fleet: fleet.New(fleet.Config{GiveAwayAfter: time.Minute, StaleAfter: time.Hour, Protocol: 1}),
		wire:  &wire{sent: map[string][]string{}, claims: map[string]int{}},
		lease: &lease{left: time.Second},
		clock: clocktest.New(time.UnixMilli(1_700_000_000_000)),
	}
	b.fleet.Observe(registry.Snapshot{RunID: "r", Nodes: nodes}, b.clock.Boot(), b.clock.Boot())
	b.d = b.dispatcher("l1")
	return b
}

func (b *bundle) dispatcher(id string) *dispatcher.Dispatcher { return b.on(b.store, id) }

// on makes a dispatcher on a store of its own.
func (b *bundle) on(s dispatcher.Store, id string) *dispatcher.Dispatcher {
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

func TestAPlacedTaskIsClaimedAndPublished(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 4, "a"))
	id := b.submit(t, "a", 1)[0]
	out, err := b.d.Round(t.Context(), true)
	if err != nil || out.Placed != 1 {
		t.Fatalf("%+v %v", out, err)
	}
	got := b.get(t, id)
	if got.LifecycleStatus != task.Assigning || got.Executor != "n1" || got.Incarnation != "n1-1" || got.Attempt != 1 || b.wire.claims[got.ClaimID] != 1 {
		t.Fatalf("task %+v, sent %v", got, b.wire.sent)
	}
}

func TestOfAClaimWithUnknownOutcomeNothingIsPublished(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 4, "a"))
	id := b.submit(t, "a", 1)[0]
	b.store.after = store.ErrUnavailable
	if _, err := b.d.Round(t.Context(), true); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("error %v, want the store's", err)
	}
	if b.wire.total() != 0 {
		t.Fatal("published without an acknowledgement")
	}
	b.store.after = nil
	got := b.get(t, id)
	due := b.fleet.Due(b.clock.Boot()+2*time.Second, 2*time.Second, 10)
	if got.LifecycleStatus != task.Assigning || len(due) != 1 || due[0].ID != got.ClaimID {
		t.Fatalf("task %s, due %v: the monitor must find the claim", got.LifecycleStatus, due)
	}
	// A second round does not claim it twice.
	if out, err := b.d.Round(t.Context(), true); err != nil || out.Placed != 0 {
		t.Fatalf("%+v %v", out, err)
	}
}

func TestWhatCertainlyWasNotSentIsGivenBack(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 4, "a"))
	id := b.submit(t, "a", 1)[0]
	b.wire.outcome, b.wire.err = transport.NotSent, errors.New("refused")
	out, err := b.d.Round(t.Context(), true)
	if err != nil || out.Failed != 1 || out.Placed != 0 {
		t.Fatalf("%+v %v", out, err)
	}
	got := b.get(t, id)
	if got.LifecycleStatus != task.Created || got.Executor != "" || got.Attempt != 1 || b.claims() != 0 {
		t.Fatalf("task %+v, %d claims held", got, b.claims())
	}
	b.wire.outcome, b.wire.err = transport.Sent, nil
	n := node("n1", 4, "a")
	n.Counter = 2
	b.clock.Advance(time.Second)
	b.fleet.Observe(registry.Snapshot{RunID: "r", Nodes: []registry.Node{n}}, b.clock.Boot(), b.clock.Boot())
	if out, err := b.d.Round(t.Context(), true); err != nil || out.Placed != 1 {
		t.Fatalf("%+v %v", out, err)
	}
	if got := b.get(t, id); got.Attempt != 2 {
		t.Fatalf("attempt %d, want 2: the first stays as a fence", got.Attempt)
	}
}

func TestWhatMayHaveBeenSentStaysWithItsNode(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 4, "a"))
	id := b.submit(t, "a", 1)[0]
	b.wire.outcome, b.wire.err = transport.Unknown, errors.New("timed out")
	if _, err := b.d.Round(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if got := b.get(t, id); got.LifecycleStatus != task.Assigning || b.claims() != 1 {
		t.Fatalf("task %s, %d claims held", got.LifecycleStatus, b.claims())
	}
}

func TestAfterItsLeaseALeaderGivesNothingBack(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 4, "a"))
	id := b.submit(t, "a", 1)[0]
	ending := &endingWire{wire: b.wire, lease: b.lease}
	b.wire.outcome, b.wire.err = transport.NotSent, errors.New("refused")
	d := dispatcher.New(dispatcher.Config{Strategy: placement.LeastTasks, ID: "l1", TaskMaxBytes: 1024}, b.store, b.fleet, ending, b.lease,
		b.clock, dispatcher.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
	if _, err := d.Round(t.Context(), true); !errors.Is(err, dispatcher.ErrNotLeading) {
		t.Fatalf("error %v, want that it leads no more", err)
	}
	if got := b.get(t, id); got.LifecycleStatus != task.Assigning {
		t.Fatalf("task %s: another leader may have sent it meanwhile", got.LifecycleStatus)
	}
}

// endingWire is a transport whose answer comes when the leadership is over.
type endingWire struct {
	*wire
	lease *lease
}

func (w *endingWire) Assign(ctx context.Context, term int64, batches []transport.Batch) []transport.Result {
	w.lease.left = 0
	return w.wire.Assign(ctx, term, batches)
}

func TestClaimsLostToAnotherAreReadBack(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 10, "a"))
	ids := b.submit(t, "a", 4)
	// Another leader claims two of them after this one has read the page.
	thief := &thievingStore{faulty: b.store, steal: ids[:2]}
	d := dispatcher.New(dispatcher.Config{Strategy: placement.LeastTasks, ID: "l1", TaskMaxBytes: 1024}, thief, b.fleet, b.wire, b.lease,
		b.clock, dispatcher.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
	out, err := d.Round(t.Context(), true)
	if err != nil || out.Placed != 2 {
		t.Fatalf("%+v %v, want the two that were left", out, err)
	}
	for i, id := range ids {
		own := strings.HasPrefix(b.get(t, id).ClaimID, "l1-")
		if own != (i >= 2) {
			t.Errorf("task %s: own claim %v", id, own)
		}
	}
	if b.claims() != 2 || b.wire.total() != 2 {
		t.Errorf("%d claims held, %d published, want 2 of each", b.claims(), b.wire.total())
	}
}

type thievingStore struct {
	*faulty
	steal []string
}

func (s *thievingStore) Apply(ctx context.Context, changes []task.Change) (int, error) {
	if s.steal != nil {
		tasks, _ := s.Get(ctx, s.steal)
		s.steal = nil
		for i := range tasks {
			if _, err := s.faulty.Apply(ctx, []task.Change{task.Claim(&tasks[i], "other", "other-1", fmt.Sprint("thief-", i), 1)}); err != nil {
				return 0, err
			}
		}
	}
	return s.faulty.Apply(ctx, changes)
}

func TestS4_TwoControllersAssignEachTaskOnce(t *testing.T) {
	t.Parallel()
	const n = 10_000
	b := setup(t, node("n1", n, "a"), node("n2", n, "a"))
	b.submit(t, "a", n)
	var wg sync.WaitGroup
	for _, id := range []string{"l1", "l2"} {
		// Each leader has its own picture, as two processes have.
		f := fleet.New(fleet.Config{GiveAwayAfter: time.Minute, StaleAfter: time.Hour, Protocol: 1})
		f.Observe(registry.Snapshot{RunID: "r", Nodes: []registry.Node{node("n1", n, "a"), node("n2", n, "a")}}, b.clock.Boot(), b.clock.Boot())
		d := dispatcher.New(dispatcher.Config{Strategy: placement.LeastTasks, ID: id, TaskMaxBytes: 1024}, b.store.Store, f, b.wire, b.lease,
			b.clock, dispatcher.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
		wg.Go(func() {
			for {
				out, err := d.Round(t.Context(), true)
				if err != nil {
					t.Error(err)
					return
				}
				if !out.More && out.Placed == 0 {
					return
				}
			}
		})
	}
	wg.Wait()
	seen := make(map[string]int)
	for _, ids := range b.wire.sent {
		for _, id := range ids {
			seen[id]++
		}
	}
	if len(seen) != n || b.wire.total() != n {
		t.Fatalf("%d tasks by %d claims were published, want %d of each", len(seen), b.wire.total(), n)
	}
}

func TestC14_TasksForAMissingClassHideNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 8, "a"))
	b.submit(t, "missing", 12_000, func(t *task.Task) { t.Priority = 9 })
	id := b.submit(t, "a", 1)[0]
	for range 3 { // ten pages a round
		if _, err := b.d.Round(t.Context(), true); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.get(t, id); got.LifecycleStatus != task.Assigning {
		t.Fatalf("the one task that can run is %s behind 12,000 that cannot", got.LifecycleStatus)
	}
	if n := b.d.Status().Waiting[placement.NoNodeForClass]; n == 0 {
		t.Error("no reason for those that wait")
	}
}

func TestC13_WithoutNodesNothingIsWritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.submit(t, "a", 500)
	for range 50 {
		if _, err := b.d.Round(t.Context(), true); err != nil {
			t.Fatal(err)
		}
	}
	if b.store.applies != 0 {
		t.Errorf("%d writes, want none", b.store.applies)
	}
	if b.store.pages != 1 {
		t.Errorf("%d pages read in 50 rounds, want one, to know what the tasks ask for", b.store.pages)
	}
	if n := b.d.Status().Waiting[placement.NoEligibleNode]; n != 1 {
		t.Errorf("%d queues have the reason %s, want the one there is", n, placement.NoEligibleNode)
	}
}

func TestAFullFleetIsNotAskedFor(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 2, "a"))
	b.submit(t, "a", 10)
	if out, err := b.d.Round(t.Context(), true); err != nil || out.Placed != 2 || out.More {
		t.Fatalf("%+v %v", out, err)
	}
	pages := b.store.pages
	if _, err := b.d.Round(t.Context(), true); err != nil || b.store.pages != pages {
		t.Fatalf("read %d pages without room", b.store.pages-pages)
	}
	k := fleet.Key{Node: "n1", Incarnation: "n1-1"}
	first := b.get(t, "a-000000")
	b.fleet.Reported(k, &task.Report{ID: first.ID, ClaimID: first.ClaimID, Kind: task.ReportFinished})
	if out, err := b.d.Round(t.Context(), true); err != nil || out.Placed != 1 {
		t.Fatalf("%+v %v, want the slot that came free", out, err)
	}
}

func TestTasksThatMustNotRunEnd(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 10, "a"))
	big := b.submit(t, "a", 1, func(t *task.Task) {
		t.ID, t.Attachments = "big", json.RawMessage(`"`+strings.Repeat("x", 2000)+`"`)
	})
	_ = big
	b.submit(t, "a", 1, func(t *task.Task) { t.ID, t.Desired = "unwanted", task.DesiredCancelled })
	b.submit(t, "a", 1, func(t *task.Task) { t.ID, t.Desired = "held back", task.DesiredPaused })
	b.submit(t, "a", 1, func(t *task.Task) { t.ID, t.ClassName = "nameless", "" })
	if _, err := b.d.Round(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]task.Status{"big": task.Failed, "unwanted": task.Cancelled, "held back": task.Paused, "nameless": task.Failed} {
		if got := b.get(t, id); got.LifecycleStatus != want || want == task.Failed && got.Error == "" {
			t.Errorf("%s is %s (%q), want %s with a reason", id, got.LifecycleStatus, got.Error, want)
		}
	}
	if b.wire.total() != 0 {
		t.Error("one of them was published")
	}
}

func TestS6_AClassGoesOnlyWhereItRuns(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 100, "a"), node("n2", 100, "b"))
	b.submit(t, "a", 20)
	b.submit(t, "b", 20)
	if _, err := b.d.Round(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	for n, ids := range b.wire.sent {
		for _, id := range ids {
			if want := map[string]string{"n1": "a-", "n2": "b-"}[n]; !strings.HasPrefix(id, want) {
				t.Errorf("%s went to %s", id, n)
			}
		}
	}
	if b.wire.total() != 40 {
		t.Errorf("%d published, want 40", b.wire.total())
	}
}

func TestTheStrategyChangesWhileItRuns(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 10, "a"), node("n2", 90, "a"))
	b.submit(t, "a", 20)
	if _, err := b.d.Round(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if got := len(b.wire.sent["n1"]); got != 2 {
		t.Fatalf("LEAST_TASKS gave n1 %d of 20, want 2 (a tenth of the capacity)", got)
	}
	b.d.Use(store.Dispatcher{Strategy: "ROUND_ROBIN"})
	b.submit(t, "b", 0)
	b.submit(t, "a", 8, func(t *task.Task) { t.ID = "second-" + t.ID })
	if _, err := b.d.Round(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if got := len(b.wire.sent["n1"]); got != 10 {
		t.Fatalf("ROUND_ROBIN gave n1 %d of 8 more, want all: n2 was given 16 more before", got-2)
	}
	if s := b.d.Status(); s.Strategy != placement.RoundRobin || s.Placed != 28 || s.Rounds != 2 {
		t.Errorf("status %+v", s)
	}
}

func TestAWithoutALeaseNothingIsClaimed(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 10, "a"))
	b.submit(t, "a", 1)
	b.lease.left = 0
	if _, err := b.d.Round(t.Context(), true); !errors.Is(err, dispatcher.ErrNotLeading) {
		t.Fatalf("error %v", err)
	}
	if b.store.applies != 0 {
		t.Error("claimed without a lease")
	}
}

func TestRunWakesAtSignalsAndEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 10, "a"))
	sent := make(chan int, 10)
	w := &signallingWire{wire: b.wire, sent: sent}
	d := dispatcher.New(dispatcher.Config{Strategy: placement.LeastTasks, ID: "l1", TaskMaxBytes: 1024}, b.store.Store, b.fleet, w, b.lease,
		b.clock, dispatcher.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	wake, done := dispatcher.NewWake(), make(chan struct{})
	go func() {
		defer close(done)
		d.Run(ctx, dispatcher.Wakes{Stored: wake, Room: dispatcher.NewWake()}, 5*time.Second)
	}()
	b.clock.BlockUntil(1)
	b.submit(t, "a", 3)
	wake.Signal()
	wake.Signal()
	if n := <-sent; n != 3 {
		t.Errorf("%d sent at the signal, want 3", n)
	}
	// Nobody signals what a script inserts: the interval finds it.
	b.clock.BlockUntil(1)
	b.submit(t, "a", 2, func(t *task.Task) { t.ID = "script-" + t.ID })
	b.clock.Advance(5 * time.Second)
	if n := <-sent; n != 2 {
		t.Errorf("%d sent at the interval, want 2", n)
	}
	cancel()
	<-done
}

type signallingWire struct {
	*wire
	sent chan int
}

func (w *signallingWire) Assign(ctx context.Context, term int64, batches []transport.Batch) []transport.Result {
	r := w.wire.Assign(ctx, term, batches)
	n := 0
	for _, b := range batches {
		n += len(b.Tasks)
	}
	w.sent <- n
	return r
}

func BenchmarkRound(b *testing.B) {
	bun := &bundle{store: &faulty{Store: memory.New()}, wire: &wire{sent: map[string][]string{}, claims: map[string]int{}}, lease: &lease{left: time.Hour}, clock: clocktest.New(time.UnixMilli(1_700_000_000_000))}
	bun.fleet = fleet.New(fleet.Config{GiveAwayAfter: time.Minute, StaleAfter: time.Hour, Protocol: 1})
	bun.fleet.Observe(registry.Snapshot{RunID: "r", Nodes: []registry.Node{node("n1", 16, "a"), node("n2", 16, "a")}}, bun.clock.Boot(), bun.clock.Boot())
	d := bun.dispatcher("l1")
	n := 0
	for b.Loop() {
		tasks := make([]task.Task, 32)
		for i := range tasks {
			n++
			tasks[i] = task.Task{ID: fmt.Sprint("t", n), ClassName: "a", Mode: task.ModePassive, LifecycleStatus: task.Created, CreateDateTime: int64(n)}
		}
		if _, err := bun.store.Create(b.Context(), tasks); err != nil {
			b.Fatal(err)
		}
		if out, err := d.Round(b.Context(), true); err != nil || out.Placed != 32 {
			b.Fatalf("%+v %v", out, err)
		}
		for i := range tasks {
			got, _ := bun.store.Get(b.Context(), []string{tasks[i].ID})
			r := task.Report{ID: got[0].ID, Attempt: got[0].Attempt, ClaimID: got[0].ClaimID, Kind: task.ReportFinished, FinishedAt: 2}
			if _, err := bun.store.Apply(b.Context(), r.Changes(1)); err != nil {
				b.Fatal(err)
			}
			bun.fleet.Reported(fleet.Key{Node: got[0].Executor, Incarnation: got[0].Incarnation}, &r)
		}
	}
	b.ReportMetric(float64(32*b.N)/b.Elapsed().Seconds(), "tasks/s")
}
