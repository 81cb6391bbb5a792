package dispatcher_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/skalds-go/skalds/controller/dispatcher"
	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/order"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

func namespace(ns string) func(*task.Task) { return func(t *task.Task) { t.Namespace = ns } }
func key(k string, limit int) func(*task.Task) {
	return func(t *task.Task) { t.ConcurrencyKey, t.ConcurrencyLimit = k, limit }
}
func named(prefix string) func(*task.Task) { return func(t *task.Task) { t.ID = prefix + t.ID } }

// round makes a round and says what it did.
func (b *bundle) round(t *testing.T) dispatcher.Outcome {
	t.Helper()
	out, err := b.d.Round(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// running gives the ids of the tasks that nodes hold, in order.
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

// end ends one task that a node holds.
func (b *bundle) end(t *testing.T, id string) {
	t.Helper()
	tk := b.get(t, id)
	r := task.Report{ID: id, Attempt: tk.Attempt, ClaimID: tk.ClaimID, Kind: task.ReportFinished, FinishedAt: 2}
	if n, err := b.store.Store.Apply(t.Context(), r.Changes(1)); err != nil || n != 1 {
		t.Fatalf("%d changed, %v", n, err)
	}
	b.fleet.Reported(fleet.Key{Node: tk.Executor, Incarnation: tk.Incarnation}, &r)
}

func TestPausesKeepTasksWaitingAndNothingElse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set  store.Dispatcher
		want dispatcher.Reason
		left int
	}{
		"dispatcher": {store.Dispatcher{Paused: true}, dispatcher.DispatcherPaused, 0},
		"class":      {store.Dispatcher{PausedClasses: []string{"a"}}, dispatcher.ClassPaused, 1},
		"namespace":  {store.Dispatcher{PausedNamespaces: []string{"shop"}}, dispatcher.NamespacePaused, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, node("n1", 10, "a", "b"))
			b.d.Use(c.set)
			id := b.submit(t, "a", 1, namespace("shop"))[0]
			b.submit(t, "b", 1)
			if out := b.round(t); out.Placed != c.left || out.More {
				t.Errorf("%+v, want %d placed", out, c.left)
			}
			tk := b.get(t, id)
			if e := b.d.Explain(&tk); e.Reason != c.want || e.Text == "" || e.Help == "" {
				t.Errorf("explained as %+v, want %s", e, c.want)
			}
			b.d.Use(store.Dispatcher{})
			if out := b.round(t); out.Placed != 2-c.left {
				t.Errorf("%+v after the pause", out)
			}
		})
	}
}

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
		t.Errorf("%+v, want one of the pool that there is by now", out)
	}
}

// Two leaders at once: the second does not know of the first one's claim, and the store gives no permit twice.
func TestC71_NoPermitIsGivenTwiceWhateverALeaderKnows(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 100, "a"))
	b.submit(t, "a", 10, key("one", 1))
	other := fleet.New(fleet.Config{GiveAwayAfter: time.Minute, StaleAfter: time.Hour, Protocol: 1})
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

func TestRatesAreKeptAndSayWhenToLookAgain(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]store.Dispatcher{
		"all":       {Rate: &store.Rate{PerSecond: 2, Burst: 1}},
		"class":     {ClassRates: map[string]store.Rate{"a": {PerSecond: 2, Burst: 1}}},
		"node":      {NodeRates: map[string]store.Rate{"n1": {PerSecond: 2, Burst: 1}}},
		"any node":  {NodeRates: map[string]store.Rate{store.AnyNode: {PerSecond: 2, Burst: 1}}},
		"any class": {ClassRates: map[string]store.Rate{store.AnyNode: {PerSecond: 2, Burst: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, node("n1", 100, "a"))
			b.d.Use(set)
			b.submit(t, "a", 50)
			began := b.clock.Boot()
			placed := 0
			for b.clock.Boot()-began < 10*time.Second {
				out := b.round(t)
				placed += out.Placed
				if out.Next <= 0 || out.Next > 501*time.Millisecond {
					t.Fatalf("%+v, want when the next token comes", out)
				}
				b.clock.Advance(out.Next)
			}
			if placed < 20 || placed > 22 {
				t.Errorf("%d placed in 10 s at 2 a second", placed)
			}
		})
	}
}

// A task that waits for a token holds no permit; and a change of leader does not end the queue.
func TestC72_ATaskThatWaitsForATokenHoldsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 100, "a"))
	set := store.Dispatcher{ClassRates: map[string]store.Rate{"a": {PerSecond: 1, Burst: 1}}}
	b.d.Use(set)
	b.submit(t, "a", 30, key("k", 1))
	placed := 0
	for i := range 20 {
		if i == 10 { // another leader
			b.fleet = fleet.New(fleet.Config{GiveAwayAfter: time.Minute, StaleAfter: time.Hour, Protocol: 1})
			b.fleet.Observe(registry.Snapshot{RunID: "r", Nodes: []registry.Node{node("n1", 100, "a")}}, b.clock.Boot(), b.clock.Boot())
			b.d = b.dispatcher("l2")
			b.d.Use(set)
		}
		placed += b.round(t).Placed
		if n := b.fleet.OfKey("k"); n != 1 {
			t.Fatalf("after %d s %d of the key are on nodes", i, n)
		}
		for _, id := range b.running(t) {
			b.end(t, id)
		}
		if out := b.round(t); out.Placed != 0 {
			t.Fatalf("%+v without a token", out)
		}
		if b.fleet.OfKey("k") != 0 {
			t.Fatal("a task that waits for a token holds its permit")
		}
		b.clock.Advance(time.Second)
	}
	if placed != 20 {
		t.Errorf("%d placed in 20 s at 1 a second", placed)
	}
}

func TestBackPressureStopsClaimsAndSlowsDownBefore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fleet = fleet.New(fleet.Config{GiveAwayAfter: time.Minute, StaleAfter: time.Hour, Protocol: 1, MaxPending: 10})
	b.fleet.Observe(registry.Snapshot{RunID: "r", Nodes: []registry.Node{node("n1", 100, "a")}}, b.clock.Boot(), b.clock.Boot())
	b.d = dispatcher.New(dispatcher.Config{Strategy: placement.LeastTasks, ID: "l1", TaskMaxBytes: 1024, MaxPending: 10}, b.store, b.fleet, b.wire, b.lease,
		b.clock, dispatcher.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
	ids := b.submit(t, "a", 30)
	if out := b.round(t); out.Placed != 10 || out.More {
		t.Fatalf("%+v, want as many as may be sent and not started", out)
	}
	if s := b.d.Status(); s.Unstarted != 10 || s.Throttle != 5 {
		t.Errorf("%+v, want the last step", s)
	}
	tk := b.get(t, ids[29])
	if e := b.d.Explain(&tk); e.Reason != dispatcher.Throttled {
		t.Errorf("%+v", e)
	}
	steps := []int{}
	woken := 0
	for _, id := range b.running(t) {
		got := b.get(t, id)
		if b.fleet.Reported(fleet.Key{Node: "n1", Incarnation: "n1-1"}, &task.Report{ID: id, ClaimID: got.ClaimID, Kind: task.ReportStarted}) {
			woken++
		}
		steps = append(steps, b.d.Status().Throttle)
	}
	if !slices.Equal(steps, []int{5, 4, 3, 2, 1, 0, 0, 0, 0, 0}) || woken != 1 {
		t.Errorf("steps %v, woken %d times, want them to go down one by one, and a signal when the first may go", steps, woken)
	}
	if out := b.round(t); out.Placed != 10 {
		t.Errorf("%+v", out)
	}
}

// Nothing of the many is read again and again to find the few, whatever keeps the many waiting.
func TestC14_WhatCannotBePlacedIsNotRead(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*task.Task){
		"class": func(t *task.Task) { t.ClassName = "missing" }, "labels": func(t *task.Task) { t.Selector = "zone=nowhere" },
		"slots": func(t *task.Task) { t.Slots = 1000 }, "key": key("busy", 1), "pool": func(t *task.Task) { t.Pool = "gpu" },
		"namespace": namespace("full"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, node("n1", 8, "a"))
			b.d.Use(store.Dispatcher{Pools: map[string]int{"gpu": 1}, NamespaceLimits: map[string]int{"full": 1}})
			b.submit(t, "a", 20_000, change, priority(9), named("many"))
			b.round(t)
			for _, id := range b.running(t) { // the one that may run does so all the time
				if name == "class" || name == "labels" || name == "slots" {
					t.Fatalf("%s runs", id)
				}
			}
			b.submit(t, "a", 100)
			few, pages := 0, b.store.pages
			for range 50 {
				few += b.round(t).Placed
				for _, id := range b.running(t) {
					if id[:4] != "many" {
						b.end(t, id)
					}
				}
			}
			if few != 100 || b.store.pages-pages > 120 {
				t.Errorf("%d of 100 placed, %d pages read", few, b.store.pages-pages)
			}
		})
	}
}

func TestPrioritiesNamespacesAndAgeShareTheNodes(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 6, "a"))
	b.d = dispatcher.New(dispatcher.Config{Strategy: placement.LeastTasks, ID: "l1", TaskMaxBytes: 1024,
		Order: order.Config{Mode: order.Strict, Aging: time.Minute}}, b.store, b.fleet, b.wire, b.lease, b.clock,
		dispatcher.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
	young := func(t *task.Task) { t.CreateDateTime = 1_700_000_000_000 }
	b.submit(t, "a", 50, named("big"), namespace("big"), young)
	b.submit(t, "a", 50, named("small"), namespace("small"), young, func(t *task.Task) { t.CreateDateTime += 1000 })
	b.submit(t, "a", 2, named("urgent"), priority(5), namespace("big"), young)
	b.round(t)
	got := map[string]int{}
	for _, id := range b.running(t) {
		got[id[:3]]++
	}
	if got["urg"] != 2 || got["big"] != 2 || got["sma"] != 2 {
		t.Errorf("%v, want the urgent ones, and the others in turn", got)
	}
}

// A lost permit, a lost claim or a crash of anything in between leaves no count behind: when all has ended, all is free.
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
			if n := b.fleet.OfPool("gpu"); n > 3 {
				t.Fatalf("%d in the pool", n)
			}
			b.end(t, id)
		}
	}
	left := [...]int{b.fleet.OfNamespace(""), b.fleet.OfKey("k0"), b.fleet.OfPool("gpu"), b.fleet.Unstarted(), b.claims()}
	if left != [5]int{} {
		t.Errorf("left of the namespace, the key, the pool, unstarted, and claims: %d", left)
	}
	counts, err := b.store.Counts(t.Context())
	if err != nil || counts[task.Finished] != 40 {
		t.Errorf("%v %v", counts, err)
	}
}

// Queues of one length and one number of tasks stand in the order of their names, so that what people see does not jump about.
func TestGroupsOfWhatWaitsAreInOrder(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 1, "a"))
	for i := range 9 {
		b.submit(t, fmt.Sprint("missing", 8-i), 1)
	}
	b.submit(t, "later", 2)
	b.round(t)
	groups, err := b.d.Pending(t.Context())
	if err != nil || len(groups) != 1 || groups[0].Tasks != 11 || groups[0].Queues != 10 || groups[0].Text == "" {
		t.Fatalf("%+v %v", groups, err)
	}
	if want := []string{"0||later", "0||missing0", "0||missing1", "0||missing2", "0||missing3"}; !slices.Equal(groups[0].Sample, want) {
		t.Errorf("%q, want %q", groups[0].Sample, want)
	}
}

// What a slow read of the settings brings is not put in force over what has been set since.
func TestOlderSettingsAreNotTakenOver(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 4, "a"))
	for _, c := range []struct {
		set   store.Dispatcher
		newer bool
	}{
		{store.Dispatcher{Version: 2, Paused: true}, true},
		{store.Dispatcher{Version: 2, Paused: true}, false},
		{store.Dispatcher{Version: 1}, false},
	} {
		if newer := b.d.Use(c.set); newer != c.newer {
			t.Errorf("version %d: newer %t, want %t", c.set.Version, newer, c.newer)
		}
	}
	b.submit(t, "a", 1)
	if out, err := b.d.Round(t.Context(), true); err != nil || out.Placed != 0 || !b.d.Status().Paused {
		t.Errorf("%+v %v: an older version has undone the pause", out, err)
	}
	if b.d.Use(store.Dispatcher{Version: 3}); b.d.Status().Paused {
		t.Error("a newer version is not taken over")
	}
}

// A round reads no more than there are tokens for, whatever room there is.
func TestARoundReadsWhatItHasTokensFor(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]store.Dispatcher{
		"all":   {Rate: &store.Rate{PerSecond: 10, Burst: 1}},
		"class": {ClassRates: map[string]store.Rate{"a": {PerSecond: 10, Burst: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, node("n1", 1000, "a"))
			b.d.Use(set)
			b.submit(t, "a", 500)
			b.round(t) // it learns what the queue asks for
			b.store.read = 0
			for range 10 {
				b.clock.Advance(100 * time.Millisecond)
				if out := b.round(t); out.Placed != 1 {
					t.Fatalf("%+v", out)
				}
			}
			if b.store.read > 50 {
				t.Errorf("%d tasks were read to place 10", b.store.read)
			}
		})
	}
}
