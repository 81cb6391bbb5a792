package dispatcher_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/transport"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/store/memory"
	"github.com/skalds-go/skalds/pkg/task"
)

func priority(p int) func(*task.Task) { return func(t *task.Task) { t.Priority = p } }

// finish ends all tasks that are on the node, and reports it to the leader.
func (b *bundle) finish(t *testing.T, k fleet.Key) {
	t.Helper()
	var done []task.Task
	err := b.store.Active(t.Context(), func(tk *task.Task) error { done = append(done, *tk); return nil })
	if err != nil {
		t.Fatal(err)
	}
	for i := range done {
		r := task.Report{ID: done[i].ID, Attempt: done[i].Attempt, ClaimID: done[i].ClaimID, Kind: task.ReportFinished, FinishedAt: 2}
		if _, err := b.store.Store.Apply(t.Context(), r.Changes(1)); err != nil {
			t.Fatal(err)
		}
		b.fleet.Reported(k, &r)
	}
}

// Tasks that cannot be placed are at the head, and more than the nodes can take are behind them. A new task that is
// ordered between the two is placed before all that are behind it.
func TestATaskOfHigherPriorityIsNotPassedOverBehindOnesThatCannotBePlaced(t *testing.T) {
	t.Parallel()
	k := fleet.Key{Node: "n1", Incarnation: "n1-1"}
	b := setup(t, node("n1", 8, "a", "urgent"))
	b.submit(t, "missing", 3000, priority(9))
	b.submit(t, "a", 30_000)
	round := func() {
		t.Helper()
		if _, err := b.d.Round(t.Context(), true); err != nil {
			t.Fatal(err)
		}
	}
	round()
	id := b.submit(t, "urgent", 1, priority(5))[0]
	rounds := 0
	for ; b.get(t, id).LifecycleStatus == task.Created && rounds < 200; rounds++ {
		b.finish(t, k)
		round()
	}
	// Those that cannot be placed fill four pages. After as many rounds the dispatcher is past them again.
	if rounds > 10 {
		t.Errorf("it was placed in round %d, after %d tasks of lower priority", rounds, 8*rounds)
	}
	before := b.store.pages
	for range 100 {
		b.finish(t, k)
		round()
	}
	if pages := b.store.pages - before; pages > 400 {
		t.Errorf("%d pages read in 100 rounds that each fill the node", pages)
	}
}

// Prefetching is for classes of short runs. If no slot is free, a backlog of long runs is not read from end to end.
func TestRoomToQueueAloneReadsNoBacklog(t *testing.T) {
	t.Parallel()
	n := node("n1", 4, "short", "long")
	n.Prefetch = 4
	b := setup(t, n)
	k := fleet.Key{Node: "n1", Incarnation: "n1-1"}
	b.fleet.Reserve([]fleet.Claim{{Key: k, TaskID: "s", Attempt: 1, ID: "s", Class: "short"}}, 0)
	b.fleet.Reported(k, &task.Report{ID: "s", ClaimID: "s", Kind: task.ReportFinished, StartedAt: 1, FinishedAt: 2})
	b.submit(t, "long", 20_000)
	rounds := 0
	for more := true; more; rounds++ {
		out, err := b.d.Round(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		more = out.More
	}
	if b.claims() != 4 {
		t.Fatalf("%d claims, want the capacity", b.claims())
	}
	if b.store.pages > 3 {
		t.Errorf("%d pages read in %d rounds to fill four slots", b.store.pages, rounds)
	}
	// Short ones at the head are prefetched all the same.
	b.submit(t, "short", 10, priority(9))
	if out, err := b.d.Round(t.Context(), true); err != nil || out.Placed != 4 {
		t.Errorf("%+v %v, want as many as the node prefetches", out, err)
	}
}

// When publishing fails, a round does not claim page after page only to unclaim all of it.
func TestARoundEndsWhenPublishingFails(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 10_000, "a"))
	b.wire.outcome, b.wire.err = transport.NotSent, errors.New("refused")
	b.submit(t, "a", 5000)
	out, err := b.d.Round(t.Context(), true)
	if err != nil || out.Failed > store.MaxBatch || b.store.pages != 1 {
		t.Errorf("%+v %v after %d pages", out, err, b.store.pages)
	}
}

// A node that cannot be reached gets no tasks until it sends a heartbeat.
func TestANodeThatNothingReachesIsLeftOutUntilItsNextHeartbeat(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 10, "a"))
	b.wire.outcome, b.wire.err = transport.NotSent, errors.New("refused")
	id := b.submit(t, "a", 1)[0]
	if out, err := b.d.Round(t.Context(), true); err != nil || out.Failed != 1 {
		t.Fatalf("%+v %v", out, err)
	}
	if out, err := b.d.Round(t.Context(), true); err != nil || out.Failed != 0 || b.get(t, id).Attempt != 1 {
		t.Fatalf("%+v %v: it was retried at once", out, err)
	}
	b.wire.outcome, b.wire.err = transport.Sent, nil
	n := node("n1", 10, "a")
	n.Counter = 2
	if woken, _ := b.fleet.Observe(registry.Snapshot{RunID: "r", Nodes: []registry.Node{n}}, b.clock.Boot(), b.clock.Boot()); !woken {
		t.Error("no signal that it takes work again")
	}
	out, err := b.d.Round(t.Context(), true)
	if err != nil || out.Placed != 0 || out.Next <= 0 {
		t.Fatalf("%+v %v, want a pause", out, err)
	}
	b.clock.Advance(out.Next)
	if out, err := b.d.Round(t.Context(), true); err != nil || out.Placed != 1 {
		t.Fatalf("%+v %v", out, err)
	}
}

// stubborn is a store that refuses every change of one task.
type stubborn struct {
	*memory.Store
	id string
}

func (s *stubborn) Apply(ctx context.Context, changes []task.Change) (int, error) {
	rest := slices.DeleteFunc(slices.Clone(changes), func(c task.Change) bool { return c.ID == s.id })
	n, err := s.Store.Apply(ctx, rest)
	if err == nil && len(rest) < len(changes) {
		err = errors.New("1 refused for good")
	}
	return n, err
}

// A document that the store refuses to change delays no other, whether the change is a claim or an end.
func TestADocumentThatCannotBeChangedHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*task.Task){
		"to be claimed": func(*task.Task) {},
		"to be ended":   func(t *task.Task) { t.Priority = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, node("n1", 10, "a"))
			ids := b.submit(t, "a", 5)
			b.submit(t, "a", 1, func(t *task.Task) { t.ID, t.CreateDateTime = "bad", 1 }, change)
			d := b.dispatcherOn(&stubborn{b.store.Store, "bad"}, "l2")
			for range 3 {
				if out, err := d.Round(t.Context(), true); err != nil || out.More {
					t.Fatalf("%+v %v", out, err)
				}
			}
			if b.wire.total() != len(ids) || b.claims() != len(ids) {
				t.Errorf("%d published, %d held, want %d", b.wire.total(), b.claims(), len(ids))
			}
		})
	}
}
