package monitor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/skalds-go/skalds/controller/monitor"
	"github.com/skalds-go/skalds/pkg/registry"
	registrymemory "github.com/skalds-go/skalds/pkg/registry/memory"
	"github.com/skalds-go/skalds/pkg/task"
)

// countingLists counts how often a node's list is read.
type countingLists struct {
	*registrymemory.Registry
	reads int
}

func (c *countingLists) Node(ctx context.Context, id string) (registry.Node, bool, error) {
	c.reads++
	return c.Registry.Node(ctx, id)
}

// beatWith sends a heartbeat of n1 with this list.
func (b *bundle) beatWith(t *testing.T, held ...registry.HeldTask) {
	t.Helper()
	b.counter++
	if err := b.registry.Heartbeat(t.Context(), &registry.Node{ID: n1.Node, Incarnation: n1.Incarnation, Counter: b.counter, Mode: registry.ModeNode,
		State: registry.Online, Classes: []string{"a"}, Capacity: 10, Protocol: 1, Running: 1, Tasks: held}); err != nil {
		t.Fatal(err)
	}
}

// begun runs a task on n1 and reports it as begun.
func (b *bundle) begun(t *testing.T, id string) task.Task {
	t.Helper()
	tk := b.assigned(t, id, true)
	b.apply(t, started(&tk))
	b.fleet.Reported(n1, &task.Report{ID: id, Attempt: 1, ClaimID: tk.ClaimID, Kind: task.ReportStarted, Heartbeat: b.counter})
	return tk
}

func (b *bundle) tick(t *testing.T) {
	t.Helper()
	b.clock.Advance(time.Second)
	b.round(t)
}

// What is missing is released only when ingest has come to the end that task.status had after the list was read.
func TestAForgottenTaskIsReleasedBehindTheBarrier(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.begun(t, "t")
	b.beatWith(t)
	b.tide.reached = false
	for range 5 {
		b.tick(t)
		b.beatWith(t)
	}
	if got := b.get(t, "t"); got.LifecycleStatus != task.Running {
		t.Fatalf("it is %s before ingest has come so far", got.LifecycleStatus)
	}
	b.tide.reached = true
	b.tick(t)
	if got := b.get(t, "t"); got.LifecycleStatus != task.Created || got.Failures != 0 || got.Attempts[0].Outcome != "forgotten" {
		t.Errorf("%+v", got)
	}
}

// An incomplete list means nothing.
func TestAnIncompleteListSaysNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.begun(t, "t")
	many := make([]registry.HeldTask, registry.MaxTasks+1)
	for i := range many {
		many[i] = registry.HeldTask{ID: fmt.Sprint("x", i), Attempt: 1, ClaimID: fmt.Sprint("x", i), State: task.ReportStarted}
	}
	for range 5 {
		b.beatWith(t, many...)
		b.tick(t)
	}
	if got := b.get(t, "t"); got.LifecycleStatus != task.Running || len(b.wire.commands) != 0 {
		t.Errorf("it is %s; %d commands", got.LifecycleStatus, len(b.wire.commands))
	}
}

// An orphan is cancelled when it is in two lists in a row, and not at all by a leader whose lease is over.
func TestAnOrphanIsCancelledTheSecondTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tk := b.begun(t, "t")
	list := []registry.HeldTask{
		{ID: "t", Attempt: 1, ClaimID: tk.ClaimID, State: task.ReportStarted}, {ID: "gone", Attempt: 3, ClaimID: "old", State: task.ReportStarted},
		{ID: "ended", Attempt: 3, ClaimID: "older", State: task.ReportFinished},
	}
	b.beatWith(t, list...)
	b.tick(t) // reads it
	b.beatWith(t, list...)
	b.tick(t) // compares it
	if len(b.wire.commands) != 0 {
		t.Fatalf("cancelled at first sight: %v", b.wire.commands)
	}
	b.lease.over = true
	for range 4 {
		b.beatWith(t, list...)
		b.tick(t)
	}
	if len(b.wire.commands) != 0 {
		t.Fatalf("cancelled under a lease that is over: %v", b.wire.commands)
	}
	b.lease.over = false
	for range 2 {
		b.beatWith(t, list...)
		b.tick(t)
	}
	if len(b.wire.commands) == 0 {
		t.Fatal("not cancelled")
	}
	for _, c := range b.wire.commands {
		if c.ClaimID != "old" || c.Attempt != 3 || c.ID != "gone" {
			t.Errorf("cancelled %+v", c)
		}
	}
}

// One comparison reads a bounded number of lists.
func TestTaskListsAreReadInTurns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 120 {
		if err := b.registry.Heartbeat(t.Context(), &registry.Node{ID: fmt.Sprint("m", i), Incarnation: "i", Counter: 1, Mode: registry.ModeNode, Running: 1}); err != nil {
			t.Fatal(err)
		}
	}
	counted := &countingLists{Registry: b.registry}
	m := monitor.New(monitor.Config{ResendAfter: resend, Compare: 5 * time.Second, Retention: time.Hour}, b.store, counted, b.fleet, b.wire,
		b.tide, b.tide, b.lease, b.clock, func() {}, slog.New(slog.DiscardHandler))
	if err := m.Prime(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 6 { // three times read, three times compared
		b.clock.Advance(time.Second)
		if _, err := m.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if counted.reads != 150 {
		t.Errorf("%d lists read in three comparisons, want 50 in each", counted.reads)
	}
}

// oddLists cannot read the list of one node.
type oddLists struct{ *registrymemory.Registry }

var errOdd = errors.New("the list does not decode")

func (o oddLists) Node(ctx context.Context, id string) (registry.Node, bool, error) {
	if id == "a-odd" {
		return registry.Node{}, false, errOdd
	}
	return o.Registry.Node(ctx, id)
}

// A list that cannot be read does not keep others from being compared.
func TestATaskListThatCannotBeReadHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if err := b.registry.Heartbeat(t.Context(), &registry.Node{ID: "a-odd", Incarnation: "i", Counter: 1, Mode: registry.ModeNode, Running: 1}); err != nil {
		t.Fatal(err)
	}
	b.begun(t, "t")
	b.beatWith(t)
	m := monitor.New(monitor.Config{ResendAfter: resend, Compare: 5 * time.Second, Retention: time.Hour}, b.store, oddLists{b.registry}, b.fleet, b.wire,
		b.tide, b.tide, b.lease, b.clock, func() {}, slog.New(slog.DiscardHandler))
	if err := m.Prime(t.Context()); err != nil {
		t.Fatal(err)
	}
	told := false
	for range 4 {
		b.clock.Advance(time.Second)
		_, err := m.Round(t.Context())
		told = told || errors.Is(err, errOdd)
	}
	if got := b.get(t, "t"); got.LifecycleStatus != task.Created {
		t.Errorf("it is %s, though its node does not hold it", got.LifecycleStatus)
	}
	if !told {
		t.Error("nobody is told of the list")
	}
}
