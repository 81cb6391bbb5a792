package dispatcher_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/skalds-go/skalds/controller/dispatcher"
	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestANamespaceHasNoMoreTasksOnNodesThanItsLimit(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 100, "a"))
	b.d.Use(store.Dispatcher{NamespaceLimits: map[string]int{"shop": 3}})
	b.submit(t, "a", 10, namespace("shop"), named("s"))
	b.submit(t, "a", 10)
	if out := b.round(t); out.Placed != 13 {
		t.Fatalf("%+v, want 3 of the one and all 10 of the other", out)
	}
	shop := b.running(t)[10:]
	b.end(t, shop[0])
	if out := b.round(t); out.Placed != 1 {
		t.Errorf("%+v, want one for the one that ended", out)
	}
}

func TestConcurrencyKeysAndPoolsHoldTheirLimits(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 100, "a"))
	b.d.Use(store.Dispatcher{Pools: map[string]int{"gpu": 2}})
	b.submit(t, "a", 5, key("one", 0), named("k"))
	b.submit(t, "a", 5, key("two", 2), named("l"))
	b.submit(t, "a", 5, func(t *task.Task) { t.Pool = "gpu" }, named("p"))
	b.submit(t, "a", 5, func(t *task.Task) { t.Pool = "none" }, named("q"))
	if out := b.round(t); out.Placed != 5 {
		t.Fatalf("%+v, want 1 + 2 + 2", out)
	}
	held := map[string]bool{}
	for _, id := range b.running(t) {
		tk := b.get(t, id)
		if permit := tk.KeyPermit + tk.PoolPermit; permit == "" || held[permit] {
			t.Errorf("%s holds the permit %q", id, permit)
		} else {
			held[permit] = true
		}
	}
	for _, id := range b.running(t) {
		b.end(t, id)
	}
	if out := b.round(t); out.Placed != 5 {
		t.Errorf("%+v, want the next 5", out)
	}
	b.d.Use(store.Dispatcher{Pools: map[string]int{"gpu": 2, "none": 1}})
	if out := b.round(t); out.Placed != 1 {
		t.Errorf("%+v, want one of the pool that exists by now", out)
	}
}

// The second of two leaders does not know of the claim of the first. The store grants no permit twice.
func TestC71_NoPermitIsGivenTwiceWhateverALeaderKnows(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 100, "a"))
	b.submit(t, "a", 10, key("one", 1))
	other := fleet.New(fleet.Config{LostTimeout: time.Minute, StaleAfter: time.Hour, Protocol: 1})
	other.Observe(registry.Snapshot{RunID: "r", Nodes: []registry.Node{node("n1", 100, "a")}}, b.clock.Boot(), b.clock.Boot())
	second := dispatcher.New(dispatcher.Config{Strategy: placement.LeastTasks, ID: "l2", TaskMaxBytes: 1024}, b.store, other, b.wire, b.lease,
		b.clock, dispatcher.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
	if out := b.round(t); out.Placed != 1 {
		t.Fatalf("%+v", out)
	}
	for range 3 {
		if out, err := second.Round(t.Context(), true); err != nil || out.Placed != 0 || out.More {
			t.Fatalf("%+v %v: two tasks of one key", out, err)
		}
	}
	if got := len(b.running(t)); got != 1 {
		t.Fatalf("%d run", got)
	}
	b.end(t, b.running(t)[0])
	other.BeginCompare()
	other.EndCompare(nil) // the store has shown that nobody holds it
	if out, err := second.Round(t.Context(), true); err != nil || out.Placed != 1 {
		t.Fatalf("%+v %v", out, err)
	}
}

// A lost permit, a lost claim or a failure in between leaves no count behind. When all tasks have ended, everything is
// free.
func TestWhatWasReservedIsFreeInTheEnd(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 5, "a"), node("n2", 5, "a"))
	b.d.Use(store.Dispatcher{Pools: map[string]int{"gpu": 3}})
	for i := range 10 {
		b.submit(t, "a", 4, key(fmt.Sprint("k", i%3), 2), func(t *task.Task) { t.Pool, t.ID = "gpu", fmt.Sprint(i, t.ID) })
	}
	for i := range 60 {
		b.store.after = nil
		if i%4 == 3 {
			b.store.after = context.DeadlineExceeded // the store's answer is lost
		}
		_, _ = b.d.Round(t.Context(), true)
		b.store.after = nil
		for _, id := range b.running(t) {
			if n := b.fleet.PoolCount("gpu"); n > 3 {
				t.Fatalf("%d in the pool", n)
			}
			b.end(t, id)
		}
	}
	counted := [...]int{b.fleet.NamespaceCount(""), b.fleet.KeyCount("k0"), b.fleet.PoolCount("gpu"), b.fleet.Unstarted(), b.claims()}
	if counted != [5]int{} {
		t.Errorf("counts of the namespace, the key, the pool, unstarted tasks and claims are %d, want 0", counted)
	}
	counts, err := b.store.Counts(t.Context())
	if err != nil || counts[task.Finished] != 40 {
		t.Errorf("%v %v", counts, err)
	}
}
