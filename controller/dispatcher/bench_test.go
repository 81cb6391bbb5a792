package dispatcher_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/skalds-go/skalds/controller/dispatcher"
	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/clock/clocktest"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/store/memory"
	"github.com/skalds-go/skalds/pkg/task"
)

// crowd is a dispatcher on a store with n waiting tasks that a node of one slot can run one after the other, and others
// that no node can run.
func crowd(b *testing.B, n, hopeless int) *bundle {
	b.Helper()
	bun := setup(b, node("n1", 1, "a"))
	fill := func(n int, class string) {
		for from := 0; from < n; from += store.MaxBatch {
			tasks := make([]task.Task, min(store.MaxBatch, n-from))
			for i := range tasks {
				tasks[i] = task.Task{ID: fmt.Sprint(class, from+i), ClassName: class, Mode: task.ModePassive, LifecycleStatus: task.Created,
					CreateDateTime: int64(from + i), Priority: (from + i) % 11}
			}
			if _, err := bun.store.Create(b.Context(), tasks); err != nil {
				b.Fatal(err)
			}
		}
	}
	fill(hopeless, "missing")
	fill(n, "a")
	if _, err := bun.d.Round(b.Context(), true); err != nil {
		b.Fatal(err)
	}
	return bun
}

// serve ends the running task and places the next one.
func (b *bundle) serve(tb testing.TB) { tb.Helper(); b.serveAfter(tb, true) }

func (b *bundle) serveAfter(tb testing.TB, list bool) {
	tb.Helper()
	var held task.Task
	if err := b.store.Active(tb.Context(), func(t *task.Task) error { held = *t; return nil }); err != nil || held.ID == "" {
		tb.Fatalf("nothing runs: %v", err)
	}
	r := task.Report{ID: held.ID, Attempt: held.Attempt, ClaimID: held.ClaimID, Kind: task.ReportFinished, FinishedAt: 2}
	if _, err := b.store.Store.Apply(tb.Context(), r.Changes(1)); err != nil {
		tb.Fatal(err)
	}
	b.fleet.Reported(fleet.Key{Node: held.Executor, Incarnation: held.Incarnation}, &r)
	if out, err := b.d.Round(tb.Context(), list); err != nil || out.Placed != 1 {
		tb.Fatalf("%+v %v", out, err)
	}
}

// BenchmarkBacklog compares how long it takes to place one task while 1,000,000 wait and while 1,000 wait. It reports
// the ratio of the two within one run. The goal is 1.5.
func BenchmarkBacklog(b *testing.B) {
	small, large := crowd(b, 1000, 0), crowd(b, 1_000_000, 0)
	var times [2]time.Duration
	n := 0
	for b.Loop() {
		for i, bun := range []*bundle{small, large} {
			began := time.Now()
			bun.serve(b)
			times[i] += time.Since(began)
		}
		n++
		if n%900 == 0 {
			small = crowd(b, 1000, 0)
		}
	}
	b.ReportMetric(float64(times[1])/float64(times[0]), "ratio")
	b.ReportMetric(float64(times[1].Nanoseconds())/float64(n), "ns/large")
}

// BenchmarkHopeless places 10,000 tasks one by one beside 990,000 that no node can run, of ten priorities above and
// below theirs.
func BenchmarkHopeless(b *testing.B) {
	bun := crowd(b, 10_000, 990_000)
	before := bun.store.pages
	n := 0
	for b.Loop() {
		bun.serve(b)
		if n++; n%9000 == 0 {
			bun = crowd(b, 10_000, 990_000)
			before = bun.store.pages
		}
	}
	b.ReportMetric(float64(bun.store.pages-before)/float64(max(n%9000, 1)), "pages/task")
}

func BenchmarkRound(b *testing.B) {
	bun := &bundle{store: &faulty{Store: memory.New()}, wire: &wire{sent: map[string][]string{}, claims: map[string]int{}}, lease: &lease{remaining: time.Hour}, clock: clocktest.New(time.UnixMilli(1_700_000_000_000))}
	bun.fleet = fleet.New(fleet.Config{LostTimeout: time.Minute, StaleAfter: time.Hour, Protocol: 1})
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

// BenchmarkQueues places tasks one by one beside 99,000 queues. Either each has a key of its own and could be next, or
// each has a namespace of its own and is blocked, beside one queue that is not. It also measures Status.
func BenchmarkQueues(b *testing.B) {
	const queues = 99_000
	for name, c := range map[string]struct {
		of  func(t *task.Task, name string)
		why dispatcher.Reason
	}{
		"hopeless": {func(t *task.Task, name string) { t.ClassName, t.Namespace = "missing", name }, placement.NoNodeForClass},
		"ready":    {func(t *task.Task, name string) { t.ClassName, t.ConcurrencyKey = "a", name }, placement.NodesFull},
	} {
		bun := crowd(b, 200_000, 0) // more than a run places
		for from := 0; from < queues; from += store.MaxBatch {
			tasks := make([]task.Task, store.MaxBatch)
			for i := range tasks {
				n := from + i
				tasks[i] = task.Task{ID: fmt.Sprint("q", n), Mode: task.ModePassive, LifecycleStatus: task.Created, CreateDateTime: int64(n)}
				c.of(&tasks[i], fmt.Sprint("q", n))
			}
			if _, err := bun.store.Create(b.Context(), tasks); err != nil {
				b.Fatal(err)
			}
		}
		for bun.d.Status().Waiting[c.why] < queues {
			if _, err := bun.d.Round(b.Context(), true); err != nil {
				b.Fatal(err)
			}
		}
		for range 20 { // to the end of the listing
			bun.serveAfter(b, false)
		}
		b.Run(name+"/round", func(b *testing.B) {
			for b.Loop() {
				bun.serveAfter(b, false)
			}
		})
		b.Run(name+"/anew", func(b *testing.B) { // as the round at each interval does
			n := node("n1", 1, "a")
			for b.Loop() {
				bun.clock.Advance(time.Second)
				n.Counter++ // or the node would be lost
				bun.fleet.Observe(registry.Snapshot{RunID: "r", Nodes: []registry.Node{n}}, bun.clock.Boot(), bun.clock.Boot())
				bun.serveAfter(b, false)
			}
		})
		b.Run(name+"/status", func(b *testing.B) {
			for b.Loop() {
				bun.d.Status()
			}
		})
	}
}
