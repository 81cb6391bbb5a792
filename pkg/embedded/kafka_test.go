package embedded_test

import (
	"context"
	"testing"
	"time"

	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/embedded"
)

// waitFor calls ready until it is true, for ten seconds at most.
func waitFor(t *testing.T, ready func(context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ready(ctx) {
		select {
		case <-ctx.Done():
			t.Fatal("it did not come to pass within ten seconds")
		case <-tick.C:
		}
	}
}

func startKafka(t *testing.T) *kafka.Client {
	t.Helper()
	broker, err := embedded.StartKafka(embedded.KafkaConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	client, err := kafka.NewClient(kafka.Config{Brokers: []string{broker.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func TestKafkaCreatesNoTopicByItself(t *testing.T) {
	t.Parallel()
	client := startKafka(t)
	err := client.Publish(t.Context(), "nobody-made-it", 0, []kafka.Record{{Value: []byte("x")}})
	if err == nil {
		t.Error("published to a topic that nobody created")
	}
}

// TestKafkaLogsAreTrimmed writes eight times what a partition may hold and waits for the log to lose its beginning.
func TestKafkaLogsAreTrimmed(t *testing.T) {
	t.Parallel()
	client := startKafka(t)
	err := client.Ensure(t.Context(), []kafka.TopicSpec{{Name: "busy", Partitions: 1, Replication: 1, Config: embedded.TopicConfig()}})
	if err != nil {
		t.Fatal(err)
	}
	const batches, size = 64, 512 << 10 // 32 MiB
	for range batches {
		if err := client.Publish(t.Context(), "busy", 0, []kafka.Record{{Value: make([]byte, size)}}); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, func(ctx context.Context) bool {
		ranges, err := client.Offsets(ctx, "busy", []int{0})
		if err != nil {
			t.Fatal(err)
		}
		kept := ranges[0].End - ranges[0].First
		return ranges[0].End == batches && kept > 0 && kept*size <= 4<<20
	})
}

func TestTopicConfigIsNotShared(t *testing.T) {
	t.Parallel()
	embedded.TopicConfig()["retention.bytes"] = "1"
	if got := embedded.TopicConfig()["retention.bytes"]; got == "1" {
		t.Error("a caller changed the configuration of everybody")
	}
}
