package monitor_test

import (
	"errors"
	"testing"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestTheWorkOfASilentNodeIsReassigned(t *testing.T) {
	t.Parallel()
	b := setup(t)
	running, waiting := b.assigned(t, "running", true), b.assigned(t, "waiting", true)
	b.apply(t, started(&running))
	b.silence(t)
	b.round(t)
	for _, id := range []string{running.ID, waiting.ID} {
		if got := b.get(t, id); got.LifecycleStatus != task.Created || got.Executor != "" || got.Attempt != 1 || got.Failures != 0 {
			t.Errorf("%s: %+v, want it to wait again, nothing counted against it", id, got)
		}
	}
	if _, claims := b.fleet.Size(); claims != 0 || b.capacity == 0 {
		t.Errorf("%d claims held, dispatcher woken %d times", claims, b.capacity)
	}
	snap, _ := b.registry.Snapshot(t.Context())
	if len(snap.Nodes) != 0 {
		t.Error("the dead node keeps its id from its successor")
	}
}

func TestABeatingNodeKeepsItsWorkForAnHour(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tk := b.assigned(t, "t", true)
	b.apply(t, started(&tk))
	for range 3600 {
		b.beat(t)
		b.round(t)
		b.clock.Advance(time.Second)
	}
	if got := b.get(t, "t"); got.LifecycleStatus != task.Running || got.Attempt != 1 {
		t.Fatalf("%+v", got)
	}
}

func TestReportsUnderWayCountBeforeWorkIsReassigned(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tk := b.assigned(t, "t", true)
	b.silence(t)
	b.tide.reached = false
	if !b.round(t) {
		t.Error("the next round does not come soon though one waits for ingest")
	}
	if got := b.get(t, "t"); got.LifecycleStatus != task.Assigning {
		t.Fatalf("reassigned before ingest had read what the node said: %s", got.LifecycleStatus)
	}
	// Ingest takes in the node's last report: it had finished.
	r := task.Report{ID: tk.ID, Attempt: 1, ClaimID: tk.ClaimID, Kind: task.ReportFinished, FinishedAt: 1}
	b.apply(t, r.Changes(1)[0])
	b.fleet.Reported(n1, &r)
	b.tide.reached = true
	b.round(t)
	if got := b.get(t, "t"); got.LifecycleStatus != task.Finished {
		t.Fatalf("a finished task became %s", got.LifecycleStatus)
	}
}

func TestNothingIsReassignedWithoutKnowingTheEnds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.assigned(t, "t", true)
	b.silence(t)
	b.tide.err = errors.New("kafka down")
	if _, err := b.m.Round(t.Context()); err == nil {
		t.Error("no error")
	}
	if got := b.get(t, "t"); got.LifecycleStatus != task.Assigning {
		t.Fatalf("task is %s", got.LifecycleStatus)
	}
}

func TestAfterItsLeaseALeaderTakesNothingBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.assigned(t, "t", true)
	b.silence(t)
	b.lease.over = true
	b.round(t)
	if got := b.get(t, "t"); got.LifecycleStatus != task.Assigning {
		t.Fatalf("task is %s", got.LifecycleStatus)
	}
}

func TestACancelledTaskOfADeadNodeEnds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tk := b.assigned(t, "t", true)
	b.apply(t, started(&tk))
	tk = b.get(t, "t")
	c, _ := task.Cancel(&tk, 1)
	b.apply(t, c)
	b.silence(t)
	b.round(t)
	if got := b.get(t, "t"); got.LifecycleStatus != task.Cancelled {
		t.Fatalf("task is %s, want Cancelled", got.LifecycleStatus)
	}
}

// A node whose work was reassigned, that no fence has reached and that sends heartbeats again, is evicted. Otherwise it
// would get no work from this leader, and would go on with what runs elsewhere.
func TestAZombieIsEvicted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.assigned(t, "t", true)
	b.silence(t)
	b.wire.err = errors.New("no broker") // no fence
	b.round(t)
	if got := b.get(t, "t"); got.LifecycleStatus != task.Created {
		t.Fatalf("it is %s", got.LifecycleStatus)
	}
	b.wire.err = nil
	for range 3 {
		b.clock.Advance(time.Second)
		b.counter++
		err := b.registry.Heartbeat(t.Context(), &registry.Node{ID: n1.Node, Incarnation: n1.Incarnation, Counter: b.counter, Mode: registry.ModeNode,
			State: registry.Online, Classes: []string{"a"}, Capacity: 10, Protocol: 1})
		if errors.Is(err, registry.ErrTaken) {
			return
		}
		b.round(t)
	}
	t.Error("it is confirmed on and on")
}

// The fleet knows what became of the tasks of a lost node: one waits again, one was to be cancelled.
func TestTheWorkOfALostNodeIsAccountedFor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	again, cancelled := b.assigned(t, "again", true), b.assigned(t, "cancelled", true)
	b.apply(t, started(&again))
	b.apply(t, started(&cancelled))
	tk := b.get(t, "cancelled")
	cancel, ok := task.Cancel(&tk, 1)
	if !ok {
		t.Fatal("a running task cannot be cancelled")
	}
	b.apply(t, cancel)
	b.silence(t)
	b.round(t)
	gone := b.fleet.Gone(b.clock.Boot())
	if len(gone) != 1 || gone[0].Key != n1 || gone[0].How != fleet.DepartedLost || gone[0].At != b.clock.Boot() ||
		gone[0].Reassigned != 1 || gone[0].Ended != 1 || gone[0].Waiting != 0 {
		t.Errorf("gone %+v, want n1 with one task reassigned and one ended", gone)
	}
}
