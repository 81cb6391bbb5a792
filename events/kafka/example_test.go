package kafka_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/embedded"
)

func Example() {
	broker, err := embedded.StartKafka(embedded.KafkaConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer broker.Close()

	client, err := kafka.NewClient(kafka.Config{Brokers: []string{broker.Addr()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	ctx := context.Background()
	spec := kafka.TopicSpec{Name: "task.assign", Partitions: 1, Replication: 1, Config: embedded.TopicConfig()}
	if err := client.Ensure(ctx, []kafka.TopicSpec{spec}); err != nil {
		fmt.Println(err)
		return
	}

	err = client.Publish(ctx, "task.assign", 0, []kafka.Record{{Key: []byte("task-1"), Value: []byte("resize")}})
	switch {
	case errors.Is(err, kafka.ErrNotSent):
		fmt.Println("certainly not in the log")
	case err != nil:
		fmt.Println("in the log or not")
	}

	reader := client.Reader("task.assign", 0, kafka.Earliest())
	records, err := reader.Next(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range records {
		fmt.Printf("%d %s %s\n", r.Offset, r.Key, r.Value)
	}
	stored := reader.Position() // give it to a later reader to go on from here
	fmt.Println(stored.Offset)
	// Output:
	// 0 task-1 resize
	// 1
}
