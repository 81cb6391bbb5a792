package session

import (
	"context"
	"log/slog"

	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/loop"
	"github.com/skalds-go/skalds/pkg/registry"
)

// Seams are what sessions use of the world around them. Tests and the simulation replace them.
type Seams struct {
	Bus      Bus
	Registry Registry
	Clock    clock.Clock // default: the machine's
	Runner   loop.Runner // default: goroutines, and timers of Clock
	LockFile LockFile    // default: the file in SKALD_STATE_DIR, if that is set
	// Load returns how busy the machine is, from 0 to 1, for heartbeats. Default: the processor time of this process.
	Load func() float64
	// Incarnation names each session. Default: a random text.
	Incarnation func() string
	// Observe is called at the stages of each session's life, by the goroutine of [Serve]. Default: nothing.
	Observe func(s *Session, at Stage)
}

// Stage is a stage of a session's life.
type Stage uint8

// The stages of a session's life. It drains, or it is lost, or it ends without either because it was never registered.
const (
	Made Stage = iota // nothing runs yet
	Registered
	Draining // told to stop
	Lost     // it lost its lease; its handlers may not have returned yet
)

// setDefaults fills in the seams that have a default.
func (s *Seams) setDefaults(log *slog.Logger) {
	if s.Clock == nil {
		s.Clock = clock.System{}
	}
	if s.Runner.Driver == nil {
		s.Runner = loop.NewRunner(s.Clock, log)
	}
	if s.Incarnation == nil {
		s.Incarnation = NewIncarnation
	}
	if s.Observe == nil {
		s.Observe = func(*Session, Stage) {}
	}
}

// Topics is what a node needs of Kafka beside readers.
type Topics interface {
	// Publish writes the records as one batch, all or none. It returns when all in-sync replicas have them.
	Publish(ctx context.Context, topic string, partition int, records []kafka.Record) error
	// Offsets returns the present ranges of the partitions.
	Offsets(ctx context.Context, topic string, partitions []int) (map[int]kafka.Range, error)
	// Partitions returns how many partitions the topic has. The error is kafka.ErrUnknownTopic if there is no such
	// topic.
	Partitions(ctx context.Context, topic string) (int, error)
}

// Bus is what a node needs of Kafka. [BusOf] makes one of a *kafka.Client.
type Bus interface {
	Topics
	// Reader makes a reader of one partition.
	Reader(topic string, partition int, from kafka.Position) Reader
}

// Reader reads one partition in order and recovers by itself.
type Reader interface {
	// Next waits for the records that follow, at least one, until ctx ends.
	Next(ctx context.Context) ([]kafka.Record, error)
}

// Registry is what a node needs of the registry.
type Registry interface {
	// Heartbeat registers or renews the node. The error is registry.ErrTaken if another incarnation holds the id.
	Heartbeat(ctx context.Context, n *registry.Node) error
	// Leave removes the node's keys, if they are this incarnation's.
	Leave(ctx context.Context, id, incarnation string) error
}

// LockFile is the node's file in SKALD_STATE_DIR, with its lock.
type LockFile interface {
	// TryLock takes the lock. It reports false if another process holds it.
	TryLock() (bool, error)
	Read() ([]byte, error)
	Write(b []byte) error
	Close() error
	// Boot identifies this boot of the machine.
	Boot() string
}

// TypedBus is a [Bus] whose readers are of type R.
type TypedBus[R Reader] interface {
	Topics
	Reader(topic string, partition int, from kafka.Position) R
}

// BusOf makes a [Bus] of one that returns readers of another type.
func BusOf[R Reader](b TypedBus[R]) Bus { return typedBus[R]{b} }

type typedBus[R Reader] struct{ TypedBus[R] }

func (b typedBus[R]) Reader(topic string, partition int, from kafka.Position) Reader {
	return b.TypedBus.Reader(topic, partition, from)
}

var (
	_ Registry                = registry.Registry(nil)
	_ TypedBus[*kafka.Reader] = (*kafka.Client)(nil)
)
