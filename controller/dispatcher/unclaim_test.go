package dispatcher_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/skalds-go/skalds/controller/dispatcher"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/controller/transport"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// losingWire is a transport that refuses assignments, and makes the store unavailable at the same time.
type losingWire struct {
	*wire
	store *faulty
}

func (w *losingWire) Assign(ctx context.Context, term int64, batches []transport.Batch) []transport.Result {
	w.store.before = store.ErrUnavailable
	return w.wire.Assign(ctx, term, batches)
}

// Found by the simulation: a claim must not be resent while its unclaim has no answer, since the unclaim may still take
// effect after the node has started the task.
func TestAClaimIsNotResentWhileItsUnclaimHasNoAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 4, "a"))
	id := b.submit(t, "a", 1)[0]
	b.wire.outcome, b.wire.err = transport.NotSent, errors.New("refused")
	d := dispatcher.New(dispatcher.Config{Strategy: placement.LeastTasks, ID: "l1", TaskMaxBytes: 1024}, b.store, b.fleet,
		&losingWire{b.wire, b.store}, b.lease, b.clock, dispatcher.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
	for range 2 { // the second round only retries the unclaim
		if _, err := d.Round(t.Context(), true); !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("error %v, want that the store is unavailable", err)
		}
		if due := b.fleet.Due(b.clock.Boot(), 0, 10); len(due) != 0 || b.claims() != 1 {
			t.Fatalf("%d claims are held, %d would be resent; want 1 and 0", b.claims(), len(due))
		}
	}
	b.store.before = nil
	if _, err := d.Round(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if got := b.get(t, id); got.LifecycleStatus != task.Created || b.claims() != 0 {
		t.Fatalf("task %s, %d claims held; want that it waits again", got.LifecycleStatus, b.claims())
	}
}
