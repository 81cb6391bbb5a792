package node

import (
	"context"

	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/registry"
)

// Bus is what a node needs of Kafka. *kafka.Client is one, once [WithBus] has taken it.
type Bus interface {
	// Publish writes the records as one batch, all or none, and returns when all in-sync replicas have them.
	Publish(ctx context.Context, topic string, partition int, records []kafka.Record) error
	// Offsets are the present ranges of the partitions.
	Offsets(ctx context.Context, topic string, partitions []int) (map[int]kafka.Range, error)
	// Partitions is how many partitions the topic has; kafka.ErrUnknownTopic if there is no such topic.
	Partitions(ctx context.Context, topic string) (int, error)
}

// Reader reads one partition in order and recovers by itself.
type Reader interface {
	// Next waits for the records that follow, at least one, until ctx ends.
	Next(ctx context.Context) ([]kafka.Record, error)
}

// ReadableBus is a Bus that makes readers of type R.
type ReadableBus[R Reader] interface {
	Bus
	Reader(topic string, partition int, from kafka.Position) R
}

// Registry is what a node needs of the registry.
type Registry interface {
	// Heartbeat registers or renews. It gives registry.ErrTaken if another incarnation holds the id.
	Heartbeat(ctx context.Context, n *registry.Node) error
	// Leave removes the node's keys, if they are this incarnation's.
	Leave(ctx context.Context, id, incarnation string) error
}

// bus is a Bus whose readers have lost their type.
type bus struct {
	Bus
	reader func(topic string, partition int, from kafka.Position) Reader
}

func busOf[R Reader](b ReadableBus[R]) bus {
	return bus{Bus: b, reader: func(topic string, partition int, from kafka.Position) Reader { return b.Reader(topic, partition, from) }}
}

var (
	_ Registry                   = registry.Registry(nil)
	_ ReadableBus[*kafka.Reader] = (*kafka.Client)(nil)
)
