package ingest_test

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/skalds-go/skalds/controller/ingest"
	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/loop"
	"github.com/skalds-go/skalds/pkg/task"
)

var runner = loop.NewRunner(clock.System{}, slog.New(slog.DiscardHandler))

func (b *bundle) service() *ingest.Service {
	return ingest.NewService(b.ingest, b.teller, 1, b.bus, func(partition int, from kafka.Position) ingest.Reader {
		return b.bus.Reader(events.TopicStatus, partition, from)
	}, runner)
}

// run starts the service and returns a function that stops it.
func run(t *testing.T, s *ingest.Service) (stop func()) {
	t.Helper()
	g := runner.Group(t.Context())
	s.Listen(g)
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return g.Stop
}

func TestTheServiceGoesOnWhereTheLastOneStopped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tasks := b.assigned(t, 3)
	publish := func(partition, i int) {
		r := record(t, events.Status{Reports: []task.Report{report(&tasks[i], task.ReportFinished)}})
		if err := b.bus.Publish(t.Context(), events.TopicStatus, partition, []kafka.Record{r}); err != nil {
			t.Fatal(err)
		}
	}
	publish(0, 0)
	publish(1, 1)
	b.store.fails = 2 // it tries until the store takes it
	s := b.service()
	stop := run(t, s)
	acks := map[string]bool{}
	for len(acks) < 2 {
		for _, c := range (<-b.teller.told).Claims {
			acks[c] = true
		}
	}
	stop()
	ends, _ := b.bus.Offsets(t.Context(), events.TopicStatus, []int{0, 1})
	if !s.Progress().Reached(ends) {
		t.Error("the progress does not show what was taken in")
	}
	publish(0, 2)
	ends, _ = b.bus.Offsets(t.Context(), events.TopicStatus, []int{0, 1})
	if s.Progress().Reached(ends) {
		t.Error("the progress claims more than was taken in")
	}
	positions, err := b.store.Positions(t.Context(), events.TopicStatus)
	if err != nil || positions[0].Offset != 1 || positions[1].Offset != 1 {
		t.Fatalf("stored positions %v %v", positions, err)
	}
	stop = run(t, b.service())
	defer stop()
	if got := <-b.teller.told; !slices.Equal(got.Claims, []string{tasks[2].ClaimID}) {
		t.Errorf("acknowledged %v, want only what came after the stored position", got.Claims)
	}
}
