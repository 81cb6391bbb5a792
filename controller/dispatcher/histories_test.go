package dispatcher_test

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/skalds-go/skalds/controller/dispatcher"
	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/controller/transport"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// history is a random history of dispatchers on one store, with failures.
type history struct {
	*bundle
	t    *testing.T
	made int // tasks
}

func histories(t *testing.T, nodes ...registry.Node) *history {
	return &history{setup(t, nodes...), t, 0}
}

// add stores a task, after applying a function to it.
func (h *history) add(change func(*task.Task)) {
	tk := task.Task{ID: fmt.Sprintf("t%05d", h.made), ClassName: "a", Mode: task.ModePassive, LifecycleStatus: task.Created, CreateDateTime: int64(1000 + h.made)}
	h.made++
	change(&tk)
	if _, err := h.store.Create(h.t.Context(), []task.Task{tk}); err != nil {
		h.t.Fatal(err)
	}
}

// fail makes the next actions fail in some way, or not at all.
func (h *history) fail(t *rapid.T) {
	h.mend()
	switch rapid.IntRange(0, 6).Draw(t, "fault") {
	case 0:
		h.store.before = store.ErrUnavailable
	case 1:
		h.store.after = store.ErrUnavailable // the answer is lost
	case 2:
		h.wire.outcome, h.wire.err = transport.NotSent, errors.New("refused")
	case 3:
		h.wire.outcome, h.wire.err = transport.Unknown, errors.New("no answer")
	case 4:
		h.store.rival = h.rival
	}
}

func (h *history) mend() {
	h.store.rival = nil
	h.store.before, h.store.after, h.wire.outcome, h.wire.err = nil, nil, transport.Sent, nil
}

// active returns the tasks on nodes according to the store.
func (h *history) active() []task.Task {
	var list []task.Task
	if err := h.store.Active(h.t.Context(), func(tk *task.Task) error { list = append(list, *tk); return nil }); err != nil {
		h.t.Fatal(err)
	}
	return list
}

// compare compares a fleet with the store, as the monitor does.
func (h *history) compare(f *fleet.Fleet) {
	f.BeginCompare()
	var held []fleet.Held
	for _, tk := range h.active() {
		if one, ok := fleet.HeldBy(&tk); ok {
			held = append(held, one)
		}
	}
	f.EndCompare(held)
}

// report ends or starts a task, and reports it to the fleets.
func (h *history) report(tk *task.Task, kind task.Kind, fleets ...*fleet.Fleet) {
	r := task.Report{ID: tk.ID, Attempt: tk.Attempt, ClaimID: tk.ClaimID, Kind: kind, StartedAt: 1, FinishedAt: 5001}
	if kind == task.ReportStarted {
		r.FinishedAt = 0
	}
	if _, err := h.store.Store.Apply(h.t.Context(), r.Changes(1)); err != nil {
		h.t.Fatal(err)
	}
	for _, f := range fleets {
		f.Reported(fleet.Key{Node: tk.Executor, Incarnation: tk.Incarnation}, &r)
	}
}

// TestReservedIsWhatWasSentAndNotSeen runs random histories with refused and lost writes, failed and unknown sends,
// lost claims and comparisons. A node never holds more than its slots or less than nothing. Once everything is known,
// it holds exactly what the store says.
func TestReservedIsWhatWasSentAndNotSeen(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		nodes := []registry.Node{node("n1", 3, "a"), node("n2", 5, "a")}
		h := histories(t, nodes...)
		sizes := map[string]int{"n1": 3, "n2": 5}
		loads := func() map[string]int {
			per := make(map[string]int)
			for _, tk := range h.active() {
				per[tk.Executor] += tk.Width()
			}
			return per
		}
		rt.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				for range rapid.IntRange(1, 5).Draw(t, "tasks") {
					h.add(func(tk *task.Task) { tk.Slots = rapid.IntRange(0, 3).Draw(t, "slots") })
				}
			},
			"round": func(t *rapid.T) {
				h.fail(t)
				_, _ = h.d.Round(h.t.Context(), true)
				h.mend()
			},
			"start": func(t *rapid.T) {
				if list := h.active(); len(list) > 0 {
					h.report(&list[rapid.IntRange(0, len(list)-1).Draw(t, "task")], task.ReportStarted, h.fleet)
				}
			},
			"end": func(t *rapid.T) {
				if list := h.active(); len(list) > 0 {
					h.report(&list[rapid.IntRange(0, len(list)-1).Draw(t, "task")], task.ReportFinished, h.fleet)
				}
			},
			"compare": func(*rapid.T) { h.compare(h.fleet) },
			"beat": func(*rapid.T) {
				per := loads()
				for i := range nodes {
					nodes[i].Counter++
					nodes[i].Running = per[nodes[i].ID]
				}
				h.clock.Advance(time.Second)
				h.fleet.Observe(registry.Snapshot{RunID: "r", Nodes: nodes}, h.clock.Boot(), h.clock.Boot())
			},
			"": func(t *rapid.T) {
				for id, load := range loads() {
					if load > sizes[id] {
						t.Fatalf("%s has %d slots and holds %d", id, sizes[id], load)
					}
				}
				view, _ := h.fleet.View(h.clock.Boot())
				for _, n := range view {
					if n.Load < 0 || n.Load < loads()[n.ID] {
						t.Fatalf("%s counts as %d, and holds %d", n.ID, n.Load, loads()[n.ID])
					}
				}
			},
		})
		// Without failures and after a comparison, the fleet equals the store, and all tasks run to their end.
		for range 200 {
			h.clock.Advance(3 * time.Second)
			per := loads()
			for i := range nodes {
				nodes[i].Counter++
				nodes[i].Running = per[nodes[i].ID]
			}
			h.fleet.Observe(registry.Snapshot{RunID: "r", Nodes: nodes}, h.clock.Boot(), h.clock.Boot())
			h.compare(h.fleet)
			if _, err := h.d.Round(h.t.Context(), true); err != nil {
				rt.Fatal(err)
			}
			h.compare(h.fleet)
			list := h.active()
			if n, claims := len(list), h.claims(); n != claims {
				rt.Fatalf("the store says that %d are held, the fleet %d", n, claims)
			}
			if len(list) == 0 {
				break
			}
			for i := range list {
				h.report(&list[i], task.ReportFinished, h.fleet)
			}
		}
		counts, err := h.store.Counts(h.t.Context())
		if err != nil || counts[task.Created]+counts[task.Assigning]+counts[task.Running] != 0 || h.claims() != 0 || h.fleet.Unstarted() != 0 {
			rt.Fatalf("at the end: %v, %d claims, %d unstarted, %v", counts, h.claims(), h.fleet.Unstarted(), err)
		}
	})
}

// rival cancels every second task between its read and its claim.
func (h *history) rival(changes []task.Change) {
	for i := range changes {
		if i%2 == 1 || changes[i].To != task.Assigning {
			continue
		}
		list, err := h.store.Get(h.t.Context(), []string{changes[i].ID})
		if err != nil || len(list) != 1 {
			h.t.Fatal(list, err)
		}
		if c, ok := task.Cancel(&list[0], 2); ok {
			if _, err := h.store.Store.Apply(h.t.Context(), []task.Change{c}); err != nil {
				h.t.Fatal(err)
			}
		}
	}
}

// TestC71_KeysHoldWithTwoDispatchersAtOnce runs random histories of two leaders on one store that do not know of each
// other. No key and no pool ever has more tasks on nodes than its limit, and all tasks run in the end.
func TestC71_KeysHoldWithTwoDispatchersAtOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		h := histories(t, node("n1", 20, "a"))
		limits := map[string]int{"k0": 1, "k1": 2, "k2": 3}
		set := store.Dispatcher{Pools: map[string]int{"gpu": 2}}
		fleets := []*fleet.Fleet{h.fleet, fleet.New(fleet.Config{LostTimeout: time.Minute, StaleAfter: time.Hour, Protocol: 1})}
		fleets[1].Observe(registry.Snapshot{RunID: "r", Nodes: []registry.Node{node("n1", 20, "a")}}, h.clock.Boot(), h.clock.Boot())
		second := dispatcher.New(dispatcher.Config{Strategy: placement.LeastTasks, ID: "l2", TaskMaxBytes: 1024}, h.store, fleets[1], h.wire, h.lease,
			h.clock, dispatcher.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
		both := []*dispatcher.Dispatcher{h.d, second}
		for _, d := range both {
			d.Use(set)
		}
		check := func() {
			keys, pool := map[string]int{}, 0
			for _, tk := range h.active() {
				keys[tk.ConcurrencyKey]++
				if tk.Pool != "" {
					pool++
				}
			}
			for key, limit := range limits {
				if keys[key] > limit || pool > 2 {
					rt.Fatalf("%v of the keys are on nodes, and %d of the pool", keys, pool)
				}
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				for range rapid.IntRange(1, 6).Draw(t, "tasks") {
					h.add(func(tk *task.Task) {
						tk.ConcurrencyKey = rapid.SampledFrom([]string{"k0", "k1", "k2"}).Draw(t, "key")
						tk.ConcurrencyLimit = limits[tk.ConcurrencyKey]
						tk.Pool = rapid.SampledFrom([]string{"", "gpu"}).Draw(t, "pool")
					})
				}
			},
			"round": func(t *rapid.T) {
				h.fail(t)
				_, _ = both[rapid.IntRange(0, 1).Draw(t, "leader")].Round(h.t.Context(), true)
				h.mend()
			},
			"end": func(t *rapid.T) { // one of the leaders may miss it
				if list := h.active(); len(list) > 0 {
					h.report(&list[rapid.IntRange(0, len(list)-1).Draw(t, "task")], task.ReportFinished, fleets[rapid.IntRange(0, 1).Draw(t, "leader")])
				}
			},
			"compare": func(t *rapid.T) { h.compare(fleets[rapid.IntRange(0, 1).Draw(t, "leader")]) },
			"":        func(*rapid.T) { check() },
		})
		for range h.made + 100 {
			h.clock.Advance(3 * time.Second)
			for i, f := range fleets {
				n := node("n1", 20, "a")
				n.Counter = int64(h.clock.Boot() / time.Second)
				f.Observe(registry.Snapshot{RunID: "r", Nodes: []registry.Node{n}}, h.clock.Boot(), h.clock.Boot())
				h.compare(f)
				if _, err := both[i].Round(h.t.Context(), true); err != nil {
					rt.Fatal(err)
				}
				check()
			}
			for _, tk := range h.active() {
				h.report(&tk, task.ReportFinished, fleets...)
			}
			if counts, err := h.store.Counts(h.t.Context()); err == nil && counts[task.Finished]+counts[task.Cancelled] == int64(h.made) {
				return
			}
		}
		rt.Fatal("some tasks have not run in the end")
	})
}

// TestNamespacesThatHaveWorkDifferByTwoTurnsAtMost holds whatever else the namespaces have: tasks of lower priority,
// queues that wait for a key, and a varying number of tasks.
func TestNamespacesThatHaveWorkDifferByTwoTurnsAtMost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		const widest = 3
		capacity := rapid.IntRange(widest, 20).Draw(rt, "capacity")
		h := histories(t, node("n1", capacity, "a"))
		spaces := rapid.IntRange(2, 4).Draw(rt, "namespaces")
		for i := range spaces {
			width := rapid.IntRange(1, widest).Draw(rt, "slots")
			if capacity%width != 0 || i == 0 {
				width = 1 // otherwise the free slots may fit only the others
			}
			for j := range 40 + 30*i {
				h.add(func(tk *task.Task) {
					tk.Namespace, tk.Slots = string(rune('a'+i)), width
					if j%7 == 3 {
						tk.Priority = -1
					}
					if j%11 == 5 {
						tk.ConcurrencyKey = "k"
					}
				})
			}
		}
		served := make(map[string]int)
		for total := 0; total < 25*spaces; {
			if _, err := h.d.Round(h.t.Context(), true); err != nil {
				rt.Fatal(err)
			}
			list := h.active()
			for i := range list {
				total += list[i].Width()
				served[list[i].Namespace] += list[i].Width()
				h.report(&list[i], task.ReportFinished, h.fleet)
			}
			for a, n := range served {
				for b, m := range served {
					if n-m > 2*widest {
						rt.Fatalf("%s got %d slots and %s %d", a, n, b, m)
					}
				}
			}
			if len(list) == 0 {
				rt.Fatal("nothing runs")
			}
		}
	})
}
