package monitor_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/skalds-go/skalds/controller/monitor"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/task"
)

// shore is the end of task.status, and how far ingest has come.
type shore struct{ end, done int64 }

func (s *shore) StatusEnds(context.Context) (map[int]kafka.Range, error) {
	return map[int]kafka.Range{0: {End: s.end}}, nil
}
func (s *shore) Reached(ends map[int]kafka.Range) bool { return s.done >= ends[0].End }

func waits(t *testing.T, b *bundle, id string) bool {
	t.Helper()
	list, err := b.store.Get(t.Context(), []string{id})
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	return list[0].LifecycleStatus == task.Created
}

// A log that loses its tail never reaches the end that it had. What waits for that end must not wait for ever. Found by
// the simulation.
func TestNothingWaitsForTheTailThatALogHasLost(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		silent time.Duration // before the need is seen
		done   func(b *bundle) bool
	}{
		"giving away":   {lostTimeout + time.Second, func(b *bundle) bool { return waits(t, b, "t1") }},
		"sending again": {resend + time.Millisecond, func(b *bundle) bool { return len(b.wire.tasks) > 0 }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			s := &shore{end: 5, done: 3}
			b.m = monitor.New(monitor.Config{ResendAfter: resend, Compare: 5 * time.Second, Retention: time.Hour}, b.store, b.registry, b.fleet, b.wire,
				s, s, b.lease, b.clock, func() {}, slog.New(slog.DiscardHandler))
			b.assigned(t, "t1", true)
			b.clock.Advance(c.silent)
			for range 3 {
				b.round(t)
				if c.done(b) {
					t.Fatal("did not wait for ingest")
				}
				b.clock.Advance(time.Second)
			}
			s.end = 3 // ingest has read all that is left
			b.clock.Advance(time.Second)
			b.round(t)
			if !c.done(b) {
				t.Error("waits for an end that is gone")
			}
		})
	}
}
