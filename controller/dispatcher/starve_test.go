package dispatcher_test

import (
	"fmt"
	"testing"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// The first queues of a round may use up what all others need. The others are not read only to find that out.
func TestQueuesThatWaitSinceOthersWentFirstAreNotRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set    store.Dispatcher
		change func(*task.Task)
		slots  int
	}{
		"namespace": {store.Dispatcher{NamespaceLimits: map[string]int{"shop": 1}}, namespace("shop"), 100},
		"pool":      {store.Dispatcher{Pools: map[string]int{"gpu": 1}}, func(t *task.Task) { t.Pool = "gpu" }, 100},
		"labels":    {store.Dispatcher{}, func(t *task.Task) { t.Selector = "zone=a" }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zone := node("n1", c.slots, "a")
			zone.Labels = map[string]string{"zone": "a"}
			b := setup(t, zone, node("n2", 100, "a"))
			b.d.Use(c.set)
			const queues = 300
			for i := range queues {
				b.submit(t, "a", 2, key(fmt.Sprint(i), 1), c.change, named(fmt.Sprint(i, "-")))
			}
			if placed := b.rounds(t, true); placed != 1 {
				t.Fatalf("%d placed, want one", placed)
			}
			b.end(t, b.running(t)[0])
			before := b.store.pages
			if placed := b.rounds(t, false); placed != 1 {
				t.Fatalf("%d placed, want one", placed)
			}
			if pages := b.store.pages - before; pages > 3 {
				t.Errorf("%d queues read to place one task", pages)
			}
		})
	}
}

// A task that must be alone gets a node once it is empty, although many tasks behind it could use each slot that
// becomes free.
func TestATaskThatMustBeAloneGetsANodeWhileOthersWait(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 2, "a"))
	b.submit(t, "a", 2, named("first"))
	b.rounds(t, true)
	alone := "alone"
	b.submit(t, "a", 1, func(t *task.Task) { t.ID, t.Crashes, t.CreateDateTime = alone, 2, 2000 })
	b.submit(t, "a", 100, func(t *task.Task) { t.CreateDateTime += 3000 })
	b.rounds(t, true)
	for range 5 { // one slot at a time, and without a signal of new tasks
		b.end(t, b.running(t)[0])
		b.rounds(t, false)
		if b.get(t, alone).LifecycleStatus == task.Assigning {
			return
		}
	}
	t.Errorf("it waits, and others run: %v", b.running(t))
}

// A task that crashed a node waits for another node, and gets it before the tasks behind it.
func TestATaskThatCrashedANodeGetsTheNextSlotOfAnother(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 3, "a"), node("n2", 1, "a"))
	b.submit(t, "a", 4, named("first"))
	b.rounds(t, true)
	crashed := "crashed"
	b.submit(t, "a", 1, func(t *task.Task) {
		t.ID = crashed
		t.Crashes, t.CreateDateTime = 1, 2000
		t.Attempts = []task.Run{{Executor: "n1", StartDateTime: 1, Outcome: "crashed"}}
	})
	tk := b.get(t, crashed)
	if nodes := tk.Crashed(); len(nodes) != 1 {
		t.Fatalf("it crashed %v", nodes)
	}
	b.submit(t, "a", 100, func(t *task.Task) { t.CreateDateTime += 3000 })
	b.rounds(t, true)
	for _, node := range []string{"n1", "n2"} { // other tasks take the slots of the node that it crashed
		for _, id := range b.running(t) {
			if b.get(t, id).Executor == node {
				b.end(t, id)
				break
			}
		}
		b.rounds(t, false)
	}
	if tk := b.get(t, crashed); tk.Executor != "n2" {
		t.Errorf("it is %s on %q; these run: %v", tk.LifecycleStatus, tk.Executor, b.running(t))
	}
}

// A round looks at a limited number of tasks, and the next continues behind them until all were looked at.
func TestTasksThatArePassedOverHideNothingAndAreNotAskedForEver(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 2, "a", "b"), node("n2", 1, "a", "b"))
	b.submit(t, "a", 3, named("first"))
	b.rounds(t, true)
	for i, class := range []string{"a", "b"} {
		b.submit(t, class, 6000, named("crashed"), func(t *task.Task) {
			t.Crashes, t.Attempts = 1, []task.Run{{Executor: "n1", StartDateTime: 1, Outcome: "crashed"}}
			t.CreateDateTime += int64(10_000 * i)
		})
		b.submit(t, class, 1, named("few"), func(t *task.Task) { t.CreateDateTime = 1_000_000 })
	}
	for _, id := range b.running(t) {
		if b.get(t, id).Executor == "n1" {
			b.end(t, id)
		}
	}
	if placed := b.rounds(t, true); placed != 2 {
		t.Errorf("%d placed, want the two behind 12,000 that wait for another node; these run: %v", placed, b.running(t))
	}
	before := b.store.pages
	b.end(t, "fewa-000000")
	if placed := b.rounds(t, false); placed != 0 || b.store.pages-before > 50 {
		t.Errorf("%d placed, %d pages read to look at all once more", placed, b.store.pages-before)
	}
}
