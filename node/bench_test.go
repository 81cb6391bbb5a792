package node_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/node/nodetest"
)

// BenchmarkNoop is a node's whole way of a task that does nothing: decode the claim, run the handler, encode and
// publish the report, and take in that it is settled. The records of the leader are made before; Kafka is in memory.
func BenchmarkNoop(b *testing.B) {
	const batch = 500
	c := nodetest.New()
	defer c.Close()
	cfg := nodetest.Config("n")
	cfg.Capacity, cfg.Prefetch = batch, batch
	n, err := node.New(cfg, append(c.Options(), node.WithLogger(slog.New(slog.DiscardHandler)))...)
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{}, batch)
	node.Handle(n, "c", func(context.Context, struct{ X int }) (struct{ Y int }, error) {
		done <- struct{}{}
		return struct{ Y int }{1}, nil
	})
	if _, err := c.Start(b.Context(), n); err != nil {
		b.Fatal(err)
	}
	registered, _, err := c.Registry.Node(b.Context(), "n")
	if err != nil {
		b.Fatal(err)
	}
	var reported int
	c.Bus.Fail(func(_ context.Context, topic string, _ int, records []kafka.Record) (bool, error) {
		if topic == events.TopicStatus {
			reported += len(records)
			return false, nil // taken, and kept by nobody
		}
		return true, nil
	})
	b.ReportAllocs()
	tasks := 0
	var settled []string
	for b.Loop() {
		b.StopTimer()
		a := events.Assign{Acknowledged: settled}
		settled = nil
		for range batch {
			t, err := c.Task("c", struct{ X int }{1})
			if err != nil {
				b.Fatal(err)
			}
			a.Tasks = append(a.Tasks, t)
			settled = append(settled, t.ClaimID)
		}
		a.SetSender("bench", 1)
		a.SetRecipient("n", registered.Incarnation)
		values, err := events.EncodeAssign(a, events.DefaultMaxBytes)
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		for _, v := range values {
			if err := c.Bus.Publish(b.Context(), events.TopicAssign, registered.Partition, []kafka.Record{{Key: v.Key, Value: v.Value}}); err != nil {
				b.Fatal(err)
			}
		}
		for range batch {
			<-done
		}
		tasks += batch
	}
	b.ReportMetric(float64(tasks)/b.Elapsed().Seconds(), "tasks/s")
	b.ReportMetric(float64(reported)/float64(tasks), "records/task")
}
