package dispatcher_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/skalds-go/skalds/controller/dispatcher"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/controller/transport"
	"github.com/skalds-go/skalds/pkg/loop"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestRunWakesAtSignalsAndEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 10, "a"))
	sent := make(chan int, 10)
	w := &signallingWire{wire: b.wire, sent: sent}
	d := dispatcher.New(dispatcher.Config{Strategy: placement.LeastTasks, ID: "l1", TaskMaxBytes: 1024}, b.store.Store, b.fleet, w, b.lease,
		b.clock, dispatcher.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	wake, done := loop.NewWake(), make(chan struct{})
	go func() {
		defer close(done)
		loop.NewRunner(b.clock, slog.New(slog.DiscardHandler)).Run(ctx, d.Loop(dispatcher.Wakes{Stored: wake, Capacity: loop.NewWake()}, 5*time.Second))
	}()
	b.clock.BlockUntil(1)
	b.submit(t, "a", 3)
	wake.Signal()
	wake.Signal()
	if n := <-sent; n != 3 {
		t.Errorf("%d sent at the signal, want 3", n)
	}
	// A script inserts tasks without a signal: the interval finds them.
	b.clock.BlockUntil(1)
	b.submit(t, "a", 2, func(t *task.Task) { t.ID = "script-" + t.ID })
	b.clock.Advance(5 * time.Second)
	if n := <-sent; n != 2 {
		t.Errorf("%d sent at the interval, want 2", n)
	}
	cancel()
	<-done
}

type signallingWire struct {
	*wire
	sent chan int
}

func (w *signallingWire) Assign(ctx context.Context, term int64, batches []transport.Batch) []transport.Result {
	r := w.wire.Assign(ctx, term, batches)
	n := 0
	for _, b := range batches {
		n += len(b.Tasks)
	}
	w.sent <- n
	return r
}
