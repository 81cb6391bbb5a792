package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/skalds-go/skalds/controller/dispatcher"
	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/controller/transport"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestAPlacedTaskIsClaimedAndPublished(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 4, "a"))
	id := b.submit(t, "a", 1)[0]
	out, err := b.d.Round(t.Context(), true)
	if err != nil || out.Placed != 1 {
		t.Fatalf("%+v %v", out, err)
	}
	got := b.get(t, id)
	if got.LifecycleStatus != task.Assigning || got.Executor != "n1" || got.Incarnation != "n1-1" || got.Attempt != 1 || b.wire.claims[got.ClaimID] != 1 {
		t.Fatalf("task %+v, sent %v", got, b.wire.sent)
	}
}

func TestOfAClaimWithUnknownOutcomeNothingIsPublished(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 4, "a"))
	id := b.submit(t, "a", 1)[0]
	b.store.after = store.ErrUnavailable
	if _, err := b.d.Round(t.Context(), true); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("error %v, want the store's", err)
	}
	if b.wire.total() != 0 {
		t.Fatal("published without an acknowledgement")
	}
	b.store.after = nil
	got := b.get(t, id)
	due := b.fleet.Due(b.clock.Boot()+2*time.Second, 2*time.Second, 10)
	if got.LifecycleStatus != task.Assigning || len(due) != 1 || due[0].ID != got.ClaimID {
		t.Fatalf("task %s, due %v: the monitor must find the claim", got.LifecycleStatus, due)
	}
	// A second round does not claim it twice.
	if out, err := b.d.Round(t.Context(), true); err != nil || out.Placed != 0 {
		t.Fatalf("%+v %v", out, err)
	}
}

func TestWhatCertainlyWasNotSentIsGivenBack(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 4, "a"))
	id := b.submit(t, "a", 1)[0]
	b.wire.outcome, b.wire.err = transport.NotSent, errors.New("refused")
	out, err := b.d.Round(t.Context(), true)
	if err != nil || out.Failed != 1 || out.Placed != 0 {
		t.Fatalf("%+v %v", out, err)
	}
	got := b.get(t, id)
	if got.LifecycleStatus != task.Created || got.Executor != "" || got.Attempt != 1 || b.claims() != 0 {
		t.Fatalf("task %+v, %d claims held", got, b.claims())
	}
	b.wire.outcome, b.wire.err = transport.Sent, nil
	n := node("n1", 4, "a")
	n.Counter = 2
	b.clock.Advance(time.Second)
	b.fleet.Observe(registry.Snapshot{RunID: "r", Nodes: []registry.Node{n}}, b.clock.Boot(), b.clock.Boot())
	if out, err := b.d.Round(t.Context(), true); err != nil || out.Placed != 1 {
		t.Fatalf("%+v %v", out, err)
	}
	if got := b.get(t, id); got.Attempt != 2 {
		t.Fatalf("attempt %d, want 2: the first stays as a fence", got.Attempt)
	}
}

func TestWhatMayHaveBeenSentStaysWithItsNode(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 4, "a"))
	id := b.submit(t, "a", 1)[0]
	b.wire.outcome, b.wire.err = transport.Unknown, errors.New("timed out")
	if _, err := b.d.Round(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if got := b.get(t, id); got.LifecycleStatus != task.Assigning || b.claims() != 1 {
		t.Fatalf("task %s, %d claims held", got.LifecycleStatus, b.claims())
	}
}

func TestAfterItsLeaseALeaderGivesNothingBack(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 4, "a"))
	id := b.submit(t, "a", 1)[0]
	ending := &endingWire{wire: b.wire, lease: b.lease}
	b.wire.outcome, b.wire.err = transport.NotSent, errors.New("refused")
	d := dispatcher.New(dispatcher.Config{Strategy: placement.LeastTasks, ID: "l1", TaskMaxBytes: 1024}, b.store, b.fleet, ending, b.lease,
		b.clock, dispatcher.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
	if _, err := d.Round(t.Context(), true); !errors.Is(err, dispatcher.ErrNotLeading) {
		t.Fatalf("error %v, want ErrNotLeading", err)
	}
	if got := b.get(t, id); got.LifecycleStatus != task.Assigning {
		t.Fatalf("task %s: another leader may have sent it in the meantime", got.LifecycleStatus)
	}
}

// endingWire is a transport that answers after the end of the leadership.
type endingWire struct {
	*wire
	lease *lease
}

func (w *endingWire) Assign(ctx context.Context, term int64, batches []transport.Batch) []transport.Result {
	w.lease.remaining = 0
	return w.wire.Assign(ctx, term, batches)
}

func TestClaimsLostToAnotherAreReadBack(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 10, "a"))
	ids := b.submit(t, "a", 4)
	// Another leader claims two of them after this one has read the page.
	thief := &thievingStore{faulty: b.store, steal: ids[:2]}
	d := dispatcher.New(dispatcher.Config{Strategy: placement.LeastTasks, ID: "l1", TaskMaxBytes: 1024}, thief, b.fleet, b.wire, b.lease,
		b.clock, dispatcher.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
	out, err := d.Round(t.Context(), true)
	if err != nil || out.Placed != 2 {
		t.Fatalf("%+v %v, want the other two", out, err)
	}
	for i, id := range ids {
		own := strings.HasPrefix(b.get(t, id).ClaimID, "l1-")
		if own != (i >= 2) {
			t.Errorf("task %s: own claim %v", id, own)
		}
	}
	if b.claims() != 2 || b.wire.total() != 2 {
		t.Errorf("%d claims held, %d published, want 2 of each", b.claims(), b.wire.total())
	}
}

type thievingStore struct {
	*faulty
	steal []string
}

func (s *thievingStore) Apply(ctx context.Context, changes []task.Change) (int, error) {
	if s.steal != nil {
		tasks, _ := s.Get(ctx, s.steal)
		s.steal = nil
		for i := range tasks {
			if _, err := s.faulty.Apply(ctx, []task.Change{task.Claim(&tasks[i], "other", "other-1", fmt.Sprint("thief-", i), 1)}); err != nil {
				return 0, err
			}
		}
	}
	return s.faulty.Apply(ctx, changes)
}

func TestS4_TwoControllersAssignEachTaskOnce(t *testing.T) {
	t.Parallel()
	const n = 10_000
	b := setup(t, node("n1", n, "a"), node("n2", n, "a"))
	b.submit(t, "a", n)
	var wg sync.WaitGroup
	for _, id := range []string{"l1", "l2"} {
		// Each leader has a fleet of its own, as in two processes.
		f := fleet.New(fleet.Config{LostTimeout: time.Minute, StaleAfter: time.Hour, Protocol: 1})
		f.Observe(registry.Snapshot{RunID: "r", Nodes: []registry.Node{node("n1", n, "a"), node("n2", n, "a")}}, b.clock.Boot(), b.clock.Boot())
		d := dispatcher.New(dispatcher.Config{Strategy: placement.LeastTasks, ID: id, TaskMaxBytes: 1024}, b.store.Store, f, b.wire, b.lease,
			b.clock, dispatcher.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
		wg.Go(func() {
			for {
				out, err := d.Round(t.Context(), true)
				if err != nil {
					t.Error(err)
					return
				}
				if !out.More && out.Placed == 0 {
					return
				}
			}
		})
	}
	wg.Wait()
	seen := make(map[string]int)
	for _, ids := range b.wire.sent {
		for _, id := range ids {
			seen[id]++
		}
	}
	if len(seen) != n || b.wire.total() != n {
		t.Fatalf("%d tasks by %d claims were published, want %d of each", len(seen), b.wire.total(), n)
	}
}

func TestAWithoutALeaseNothingIsClaimed(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 10, "a"))
	b.submit(t, "a", 1)
	b.lease.remaining = 0
	if _, err := b.d.Round(t.Context(), true); !errors.Is(err, dispatcher.ErrNotLeading) {
		t.Fatalf("error %v", err)
	}
	if b.store.applies != 0 {
		t.Error("claimed without a lease")
	}
}
