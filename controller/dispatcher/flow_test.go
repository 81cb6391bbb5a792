package dispatcher_test

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/skalds-go/skalds/controller/dispatcher"
	"github.com/skalds-go/skalds/controller/fairqueue"
	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestPausesKeepTasksWaitingAndNothingElse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set    store.Dispatcher
		want   dispatcher.Reason
		placed int
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
			if out := b.round(t); out.Placed != c.placed || out.More {
				t.Errorf("%+v, want %d placed", out, c.placed)
			}
			tk := b.get(t, id)
			if e := b.d.Explain(&tk); e.Reason != c.want || e.Text == "" || e.Help == "" {
				t.Errorf("explained as %+v, want %s", e, c.want)
			}
			b.d.Use(store.Dispatcher{})
			if out := b.round(t); out.Placed != 2-c.placed {
				t.Errorf("%+v after the pause", out)
			}
		})
	}
}

func TestBackPressureStopsClaimsAndSlowsDownBefore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fleet = fleet.New(fleet.Config{LostTimeout: time.Minute, StaleAfter: time.Hour, Protocol: 1, MaxPending: 10})
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

// Prefetched tasks are also sent and not started. They must not come near the limit of back-pressure.
func TestDeepQueuesEndWhereBackPressureBegins(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.fleet = fleet.New(fleet.Config{LostTimeout: time.Minute, StaleAfter: time.Hour, Protocol: 1, MaxPending: 100})
	n := node("n1", 4, "a")
	n.Prefetch = 200
	b.fleet.Observe(registry.Snapshot{RunID: "r", Nodes: []registry.Node{n}}, b.clock.Boot(), b.clock.Boot())
	b.d = dispatcher.New(dispatcher.Config{Strategy: placement.LeastTasks, ID: "l1", TaskMaxBytes: 1024, MaxPending: 100}, b.store, b.fleet, b.wire, b.lease,
		b.clock, dispatcher.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
	b.submit(t, "a", 300)
	if out := b.round(t); out.Placed != 4 {
		t.Fatalf("%+v, want the free slots filled, since nobody knows how long the runs take", out)
	}
	got := b.get(t, b.running(t)[0])
	b.fleet.Reported(fleet.Key{Node: "n1", Incarnation: "n1-1"},
		&task.Report{ID: got.ID, ClaimID: got.ClaimID, Kind: task.ReportFinished, StartedAt: 1, FinishedAt: 2})
	b.rounds(t, true)
	if s := b.d.Status(); s.Unstarted != 50 || s.Throttle != 1 {
		t.Errorf("%+v, want it to end with half of what may be sent and not started", s)
	}
}

// Many blocked tasks are not read repeatedly to find a few that are not, whatever the reason.
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
			for _, id := range b.running(t) { // with a limit, one of them runs all the time
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
		Order: fairqueue.Config{Mode: fairqueue.Strict, Aging: time.Minute}}, b.store, b.fleet, b.wire, b.lease, b.clock,
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

// Queues with the same number of tasks are sorted by name, so that the output is stable.
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

// A slow read of the settings does not override newer ones.
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
		t.Error("a newer version is not in force")
	}
}
