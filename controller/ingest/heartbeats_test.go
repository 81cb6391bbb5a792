package ingest_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skalds-go/skalds/controller/transport"
	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

// say publishes a heartbeat of n1 over task.status, as a node does.
func (b *bundle) say(t *testing.T, counter, term int64) {
	t.Helper()
	b.sayUnder(t, events.HeaderHeartbeat, counter, term)
}

func (b *bundle) sayUnder(t *testing.T, header string, counter, term int64) {
	t.Helper()
	r := record(t, events.Status{Heartbeat: &registry.Node{Counter: counter, Term: term, Partition: 3, Mode: "node", State: "online", Protocol: 1}})
	r.Headers = []kafka.Header{{Key: header, Value: []byte("1")}}
	if err := b.bus.Publish(t.Context(), events.TopicStatus, 0, []kafka.Record{r}); err != nil {
		t.Fatal(err)
	}
}

func (b *bundle) sayEnd(t *testing.T, of *task.Task) {
	t.Helper()
	r := record(t, events.Status{Reports: []task.Report{report(of, task.ReportFinished)}})
	if err := b.bus.Publish(t.Context(), events.TopicStatus, 0, []kafka.Record{r}); err != nil {
		t.Fatal(err)
	}
}

func confirms(t *testing.T, c transport.Confirmation, counter int64) {
	t.Helper()
	if c.Partition != 3 || !slices.Equal(c.Heartbeats, []events.ConfirmedHeartbeat{{Incarnation: n1.Incarnation, Counter: counter}}) {
		t.Errorf("confirmed %+v, want heartbeat %d on partition 3", c, counter)
	}
}

func TestHeartbeatsAreConfirmed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stop := run(t, b.service())
	defer stop()
	b.say(t, 2, 0)
	confirms(t, <-b.teller.confirmed, 2)
	b.say(t, 3, 1)
	confirms(t, <-b.teller.confirmed, 3)
	b.sayUnder(t, "skalds-beat", 4, 1) // as older nodes do
	confirms(t, <-b.teller.confirmed, 4)
}

// A node that has seen a higher term is no longer this leader's to confirm, and neither is any other: there is another
// leader.
func TestAHigherTermEndsTheConfirming(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.service()
	hear := func(counter, term int64) {
		b.say(t, counter, term)
		all := b.bus.Records(events.TopicStatus)
		s.Observe(all[len(all)-1:])
		if err := s.Confirm(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	hear(2, 1)
	confirms(t, <-b.teller.confirmed, 2)
	hear(3, 2)
	hear(4, 0)
	if n := len(b.teller.confirmed); n != 0 {
		t.Errorf("%d confirmations under a term that is over", n)
	}
}

// While the store takes nothing, heartbeats are confirmed all the same: those of the batch that waits, and those behind
// it.
func TestHeartbeatsDoNotWaitForTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		tasks := b.assigned(t, 3)
		b.store.fails = 1 << 30
		stop := run(t, b.service())
		defer stop()
		for i := range tasks {
			b.sayEnd(t, &tasks[i])
			b.say(t, int64(2+i), 0)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			select {
			case c := <-b.teller.confirmed:
				confirms(t, c, int64(2+i))
			case <-ctx.Done():
				t.Fatalf("heartbeat %d waits for the store", 2+i)
			}
			cancel()
			synctest.Wait()
		}
	})
}

// A process that leads anew, since its store was away, hears heartbeats when its last leadership has ended: that does
// not wait for a store that hangs again, or nodes that Redis does not answer would stop.
func TestTheEndDoesNotWaitForAStoreThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.store.hangs = true
		stop := run(t, b.service())
		synctest.Wait()
		began := time.Now() // of the bubble
		stop()
		if took := time.Since(began); took > 500*time.Millisecond {
			t.Errorf("the end took %v", took)
		}
	})
}
