package node_test

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/node/nodetest"
	"github.com/skalds-go/skalds/node/session"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

// wide assigns a node a new task of so many slots.
func (w *world) wide(nodeID, class string, slots int) events.AssignedTask {
	w.t.Helper()
	t, err := w.Task(class, nil)
	w.ok(err)
	t.Slots = slots
	w.ok(w.Assign(w.ctx, nodeID, t))
	synctest.Wait()
	return t
}

// nextBeat waits for the next heartbeat and gives what it says.
func (w *world) nextBeat(nodeID string) registry.Node {
	w.t.Helper()
	pass(time.Second)
	synctest.Wait()
	n, found, err := w.Registry.Node(w.ctx, nodeID)
	w.ok(err)
	if !found {
		w.t.Fatal("the node is not there")
	}
	return n
}

func (w *world) startsAll(b *blocker, want ...events.AssignedTask) {
	w.t.Helper()
	synctest.Wait()
	for _, t := range want {
		select {
		case id := <-b.began:
			if id != t.ID {
				w.t.Errorf("%s began, want %s", id, t.ID)
			}
		default:
			w.t.Errorf("%s did not begin", t.ID)
		}
	}
	select {
	case id := <-b.began:
		w.t.Errorf("%s began, too", id)
	default:
	}
}

func TestSlots(t *testing.T) {
	bubble(t, func(w *world) {
		big, small := newBlocker(), newBlocker()
		n := w.node("n", func(c *node.Config) { c.Capacity, c.Prefetch = 4, 8 }, node.WithClassCapacity("small", 2))
		node.Handle(n, "big", big.run)
		node.Handle(n, "small", small.run)
		w.start(n)

		three := w.wide("n", "big", 3)
		w.startsAll(big, three)
		one := w.wide("n", "small", 1)
		w.startsAll(small, one)
		two, last, more := w.wide("n", "big", 2), w.wide("n", "small", 0), w.wide("n", "small", 1)
		w.startsAll(big)
		w.startsAll(small)

		got := w.nextBeat("n")
		if got.Running != 2 || got.Queued != 3 || got.SlotsRunning != 4 || got.SlotsQueued != 4 ||
			!maps.Equal(got.CapacityByClass, map[string]int{"small": 2}) || !maps.Equal(got.RunningByClass, map[string]int{"big": 5, "small": 3}) {
			t.Errorf("the heartbeat says %+v", got)
		}
		if got.CPUs < 1 || got.MemoryTotal < 0 {
			t.Errorf("it has %d cores and %d bytes", got.CPUs, got.MemoryTotal)
		}
		if r := w.final(w.wide("n", "big", 5)); r.Kind != task.ReportRejected || r.Error != "the task takes 5 slots, the capacity of this node is 4" {
			t.Errorf("five slots: %+v", r)
		}

		// An end that gives three slots back starts more than one.
		big.free <- struct{}{}
		w.startsAll(big, two)
		w.startsAll(small, last)
		w.ok(w.Cancel(w.ctx, "n", one))
		w.startsAll(small, more)
		close(big.free)
		close(small.free)
		for _, c := range []events.AssignedTask{three, two, last, more} {
			if r := w.final(c); r.Kind != task.ReportFinished {
				t.Errorf("%s: %+v", c.ID, r)
			}
		}
		if got := w.nextBeat("n"); got.SlotsRunning != 0 || got.SlotsQueued != 0 || len(got.RunningByClass) != 0 {
			t.Errorf("at the end the heartbeat says %+v", got)
		}
	})
}

func TestWhatKeptOthersWaitingMakesWay(t *testing.T) {
	for name, leave := range map[string]func(w *world, wide events.AssignedTask){
		"by a cancel": func(w *world, wide events.AssignedTask) { w.ok(w.Cancel(w.ctx, "n", wide)) },
		"by a pause":  func(w *world, wide events.AssignedTask) { w.ok(w.Command(w.ctx, "n", events.CommandPause, wide)) },
		"by waiting too long": func(w *world, wide events.AssignedTask) {
			if r := w.final(wide); r.Kind != task.ReportRejected {
				w.t.Errorf("%+v", r)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				b := newBlocker()
				n := w.node("n", func(c *node.Config) { c.Capacity, c.Prefetch = 2, 8 })
				node.Handle(n, "c", b.run)
				w.start(n)
				first := w.wide("n", "c", 1)
				w.startsAll(b, first)
				wide, behind := w.wide("n", "c", 2), w.wide("n", "c", 1)
				w.startsAll(b)
				leave(w, wide)
				w.startsAll(b, behind)
			})
		})
	}
}

// The slots of a handler that was abandoned are taken until it returns.
func TestSlotsOfAnAbandonedHandler(t *testing.T) {
	bubble(t, func(w *world) {
		stuck, b := newBlocker(), newBlocker()
		n := w.node("n", func(c *node.Config) { c.Capacity = 3 })
		node.Handle(n, "stuck", stuck.stubborn)
		node.Handle(n, "c", b.run)
		w.start(n)
		first := w.wide("n", "stuck", 2)
		w.startsAll(stuck, first)
		w.ok(w.Cancel(w.ctx, "n", first))
		w.final(first)
		if got := w.nextBeat("n"); got.Running != 0 || got.SlotsRunning != 2 || got.RunningByClass["stuck"] != 2 {
			t.Errorf("the heartbeat says %+v", got)
		}
		second := w.wide("n", "c", 2)
		w.startsAll(b)
		close(stuck.free)
		w.startsAll(b, second)
	})
}

// A new leader reads in the first heartbeat that names its term what the one before had counted, and need not wait for
// that heartbeat.
func TestTurnOverAChangeOfLeader(t *testing.T) {
	bubble(t, func(w *world) {
		reg := &hooked{Registry: w.Registry}
		n := w.node("n", nil, node.WithSeams(session.Seams{Registry: reg}))
		node.Handle(n, "c", noop)
		w.start(n)
		read := func() registry.Node {
			w.t.Helper()
			synctest.Wait()
			got, _, err := w.Registry.Node(w.ctx, "n")
			w.ok(err)
			return got
		}
		say := func(term, turn int64) {
			w.t.Helper()
			w.Term(term)
			w.RoundRobinCount(turn)
			w.assign("n", "c", 1)
		}
		say(1, 5)
		if got := read(); got.Term != 1 || got.RoundRobinCount != 0 {
			t.Errorf("of the first leader: term %d, turn %d", got.Term, got.RoundRobinCount)
		}
		say(1, 6)
		pass(10 * time.Second)
		before := read()
		if before.Term != 1 || before.RoundRobinCount != 0 {
			t.Errorf("later: term %d, turn %d", before.Term, before.RoundRobinCount)
		}
		say(2, 7)
		got := read()
		if got.Term != 2 || got.RoundRobinCount != 6 || got.Counter != before.Counter+1 {
			t.Errorf("of the second leader: term %d, turn %d, heartbeat %d after %d", got.Term, got.RoundRobinCount, got.Counter, before.Counter)
		}
		say(1, 99) // not heard
		say(3, 8)  // its heartbeat must wait: only one in an interval goes out of turn
		if again := read(); again.Counter != got.Counter {
			t.Errorf("heartbeat %d after %d at once", again.Counter, got.Counter)
		}
		if got := w.nextBeat("n"); got.Term != 3 || got.RoundRobinCount != 7 || got.Counter != before.Counter+2 {
			t.Errorf("of the third leader: term %d, turn %d, heartbeat %d after %d", got.Term, got.RoundRobinCount, got.Counter, before.Counter)
		}
		reg.set(refuse) // heartbeats go over task.status
		say(4, 0)
		synctest.Wait()
		if list := w.beats(); len(list) != 1 || list[0].Heartbeat.Term != 4 || list[0].Heartbeat.RoundRobinCount != 8 {
			t.Errorf("over task.status: %+v", list)
		}
	})
}

func ExampleWithClassCapacity() {
	cfg := nodetest.Config("trainer")
	n, err := node.New(cfg, node.WithClassCapacity("train", 1))
	if err != nil {
		panic(err)
	}
	node.Handle(n, "train", func(context.Context, any) (any, error) { return nil, nil })
	// Output:
}
