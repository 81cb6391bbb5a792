package dispatcher_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// Queues with the same condition are checked as one, however many there are. Those that nothing blocks stay in the
// order and are checked in their turn.
func TestARoundDoesNotLookAtEachQueueThatWaits(t *testing.T) {
	t.Parallel()
	const queues = 400
	b := setup(t, node("n1", 1, "a"))
	for i := range queues {
		b.submit(t, "missing", 1, namespace(fmt.Sprint(i)), named(fmt.Sprint("m", i)))
		b.submit(t, "a", 1, func(t *task.Task) { t.Pool = "none" }, namespace(fmt.Sprint(i)), named(fmt.Sprint("p", i)))
	}
	b.submit(t, "a", 1)
	for i := range 100 {
		b.submit(t, "a", 1, func(t *task.Task) { t.ConcurrencyKey = fmt.Sprint(i) }, named(fmt.Sprint("k", i)))
	}
	if out := b.round(t); out.Placed != 1 {
		t.Fatalf("%+v", out)
	}
	if _, conditions := b.d.Overslept(); b.d.Free() > 1 || conditions != 2 {
		t.Errorf("%d queues are checked one by one, %d conditions, want at most 1 and 2", b.d.Free(), conditions)
	}
}

// Of two queues that wait for the same reason but for different conditions, each is unparked as soon as its own
// condition ends, whichever is checked first.
func TestQueuesThatWaitForDifferentThingsAreDifferent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		require func(t *task.Task, what string)
		block   func(t *testing.T, b *bundle) // blocks both queues
		free    func(t *testing.T, b *bundle, what string)
	}{
		"pools": {func(t *task.Task, what string) { t.Pool = what }, func(_ *testing.T, b *bundle) {
			b.d.Use(store.Dispatcher{Version: 1, Pools: map[string]int{"x": 0, "y": 0}})
		}, func(_ *testing.T, b *bundle, what string) {
			b.d.Use(store.Dispatcher{Version: 2, Pools: map[string]int{"x": 0, "y": 0, what: 1}})
		}},
		"anti-affinity": {func(t *task.Task, what string) { t.AntiAffinityKey = what }, func(t *testing.T, b *bundle) {
			t.Helper()
			for _, key := range []string{"x", "y"} {
				b.submit(t, "a", 1, named("holds-"+key), func(t *task.Task) { t.AntiAffinityKey = key })
			}
			b.round(t)
		}, func(t *testing.T, b *bundle, what string) {
			t.Helper()
			tk := b.get(t, "holds-"+what+"a-000000")
			b.fleet.Reported(fleet.Key{Node: "n1", Incarnation: "n1-1"}, &task.Report{ID: tk.ID, ClaimID: tk.ClaimID, Kind: task.ReportFinished})
		}},
		"labels": {func(t *task.Task, what string) { t.Labels = map[string]string{"zone": what} }, func(*testing.T, *bundle) {
		}, func(_ *testing.T, b *bundle, what string) {
			labelled := node("n2", 8, "a")
			labelled.Labels = map[string]string{"zone": what}
			b.fleet.Observe(registry.Snapshot{RunID: "r", Nodes: []registry.Node{node("n1", 8, "a"), labelled}}, b.clock.Boot(), b.clock.Boot())
		}},
	} {
		for _, what := range []string{"x", "y"} {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				b := setup(t, node("n1", 8, "a"))
				c.block(t, b)
				for _, of := range []string{"x", "y"} {
					b.submit(t, "a", 1, named(of), func(t *task.Task) { c.require(t, of) })
				}
				if out := b.round(t); out.Placed != 0 {
					t.Fatalf("%+v, want that both wait", out)
				}
				c.free(t, b, what)
				if out, err := b.d.Round(t.Context(), false); err != nil || out.Placed != 1 {
					t.Errorf("%+v %v, want that one is placed", out, err)
				}
			})
		}
	}
}

// TestNoQueueSleepsThroughTheEndOfItsWait runs random histories of tasks with all kinds of requirements, settings,
// nodes and time. A queue that nothing blocks never stays parked, and without any limits all tasks run.
func TestNoQueueSleepsThroughTheEndOfItsWait(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		nodes := []registry.Node{node("n1", 6, "a", "b"), node("n2", 3, "b", "c")}
		h := histories(t, nodes...)
		version := int64(0)
		use := func(s store.Dispatcher) {
			version++
			s.Version = version
			h.d.Use(s)
		}
		beat := func(all bool, t *rapid.T) {
			var there []registry.Node
			for i := range nodes {
				if nodes[i].Counter++; all || rapid.Bool().Draw(t, "there") {
					there = append(there, nodes[i])
				}
			}
			h.fleet.Observe(registry.Snapshot{RunID: "r", Nodes: there}, h.clock.Boot(), h.clock.Boot())
		}
		some := func(t *rapid.T, what string, of ...string) string {
			return rapid.SampledFrom(append(of, "", "")).Draw(t, what)
		}
		subset := func(t *rapid.T, what string, of ...string) []string {
			bits := rapid.IntRange(0, 1<<(len(of)+1)-1).Draw(t, what)
			var list []string
			for i := range of {
				if bits>>len(of) == 0 && bits>>i&1 == 1 { // in half of the cases none
					list = append(list, of[i])
				}
			}
			return list
		}
		add := func(t *rapid.T) {
			for range 12 {
				h.add(func(tk *task.Task) {
					tk.ClassName = rapid.SampledFrom([]string{"a", "a", "b", "b", "c", "d"}).Draw(t, "class")
					tk.Namespace, tk.ConcurrencyKey = some(t, "namespace", "x", "y"), some(t, "key", "k", "l")
					tk.Pool, tk.AntiAffinityKey = some(t, "pool", "p", "q"), some(t, "anti", "n", "m")
					tk.Slots = rapid.SampledFrom([]int{0, 0, 0, 2, 4}).Draw(t, "slots")
				})
			}
		}
		round := func(t *rapid.T) {
			h.fail(t)
			_, _ = h.d.Round(h.t.Context(), rapid.Bool().Draw(t, "list"))
			h.mend()
		}
		add(rt)
		add(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"add": add,
			"settings": func(t *rapid.T) {
				s := store.Dispatcher{Paused: rapid.IntRange(0, 9).Draw(t, "paused") == 0, Pools: map[string]int{}, NamespaceLimits: map[string]int{},
					ClassRates:    map[string]store.Rate{},
					PausedClasses: subset(t, "classes", "a", "b", "c"), PausedNamespaces: subset(t, "namespaces", "", "x", "y")}
				for _, pool := range subset(t, "pools", "p", "q") {
					s.Pools[pool] = rapid.IntRange(0, 2).Draw(t, "pool")
				}
				for _, name := range subset(t, "limits", "x", "y") {
					s.NamespaceLimits[name] = rapid.IntRange(0, 2).Draw(t, "limit")
				}
				for _, class := range subset(t, "rates", "a", "b") {
					s.ClassRates[class] = store.Rate{PerSecond: 0.5, Burst: 1}
				}
				if rapid.IntRange(0, 4).Draw(t, "rate") == 0 {
					s.Rate, s.NodeRates = &store.Rate{PerSecond: 1, Burst: 2}, map[string]store.Rate{"n1": {PerSecond: 0.5, Burst: 1}}
				}
				use(s)
			},
			"nodes": func(t *rapid.T) { beat(false, t) },
			"time": func(t *rapid.T) {
				h.clock.Advance(time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond)
			},
			"end": func(t *rapid.T) {
				if list := h.active(); len(list) > 0 {
					h.report(&list[rapid.IntRange(0, len(list)-1).Draw(t, "task")], task.ReportFinished, h.fleet)
				}
			},
			"round":         round,
			"another round": round,
			"": func(t *rapid.T) {
				if names, _ := h.d.Overslept(); len(names) > 0 {
					t.Fatalf("nothing blocks %q, but they are parked", names)
				}
			},
		})
		use(store.Dispatcher{Pools: map[string]int{"p": 2, "q": 2}})
		for range 300 {
			h.clock.Advance(3 * time.Second)
			beat(true, rt)
			h.compare(h.fleet)
			if _, err := h.d.Round(h.t.Context(), true); err != nil {
				rt.Fatal(err)
			}
			for _, tk := range h.active() {
				h.report(&tk, task.ReportFinished, h.fleet)
			}
		}
		waiting, err := h.d.Pending(h.t.Context())
		if err != nil {
			rt.Fatal(err)
		}
		for _, g := range waiting {
			if g.Reason != "NO_NODE_FOR_CLASS" && g.Reason != "SLOTS_OVER_CAPACITY" {
				rt.Fatalf("%d tasks wait for %s", g.Tasks, g.Reason)
			}
		}
	})
}
