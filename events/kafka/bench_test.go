package kafka_test

import (
	"context"
	"testing"

	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/embedded"
)

func benchClient(b *testing.B) *kafka.Client {
	b.Helper()
	broker, err := embedded.StartKafka(embedded.KafkaConfig{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(broker.Close)
	client := newClient(b, kafka.Config{Brokers: []string{broker.Addr()}})
	spec := kafka.TopicSpec{Name: topic, Partitions: 1, Replication: 1, Config: embedded.TopicConfig()}
	if err := client.Ensure(b.Context(), []kafka.TopicSpec{spec}); err != nil {
		b.Fatal(err)
	}
	return client
}

func batch(n int) []kafka.Record {
	records := make([]kafka.Record, n)
	for i := range records {
		records[i] = kafka.Record{Key: []byte("0123456789abcdef"), Value: make([]byte, 300)}
	}
	return records
}

func BenchmarkPublish(b *testing.B) {
	for name, n := range map[string]int{"one": 1, "batch of 100": 100} {
		b.Run(name, func(b *testing.B) {
			client, records := benchClient(b), batch(n)
			b.ReportAllocs()
			for b.Loop() {
				if err := client.Publish(b.Context(), topic, 0, records); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// BenchmarkEndToEnd is one record from Publish to the return of Next, on an idle system.
func BenchmarkEndToEnd(b *testing.B) {
	client, records := benchClient(b), batch(1)
	reader := client.Reader(topic, 0, kafka.Earliest())
	got := make(chan error, 1)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			_, err := reader.Next(ctx)
			got <- err
		}
	}()
	b.ReportAllocs()
	for b.Loop() {
		if err := client.Publish(ctx, topic, 0, records); err != nil {
			b.Fatal(err)
		}
		if err := <-got; err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRead is how fast a reader gets through a log of small records in batches of 100.
func BenchmarkRead(b *testing.B) {
	client, records := benchClient(b), batch(100)
	for range 100 {
		if err := client.Publish(b.Context(), topic, 0, records); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		reader := client.Reader(topic, 0, kafka.Earliest())
		for read := 0; read < 10_000; {
			got, err := reader.Next(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			read += len(got)
		}
		n += 10_000
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "records/s")
}
