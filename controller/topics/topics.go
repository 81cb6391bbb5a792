// Package topics creates the Kafka topics, and creates them again when they are gone.
package topics

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/loop"
)

// Bus is the part of the bus that this package uses.
type Bus interface {
	Ensure(ctx context.Context, topics []kafka.TopicSpec) error
	Partitions(ctx context.Context, topic string) (int, error)
}

const (
	pause        = 500 * time.Millisecond // between two tries to create the topics
	timeout      = 30 * time.Second       // of one try
	checkEvery   = time.Second            // time between two checks that the topics still exist
	checkTimeout = 2 * time.Second        // of the check of one topic
)

// Topics are the topics of one cluster.
type Topics struct {
	bus   Bus
	specs []kafka.TopicSpec
	log   *slog.Logger

	mu  sync.Mutex
	err error // why the topics are not ready; nil = they are
}

var errUnchecked = errors.New("not checked yet")

// New returns the topics that the specs describe.
func New(bus Bus, specs []kafka.TopicSpec, log *slog.Logger) *Topics {
	return &Topics{bus: bus, specs: specs, log: log, err: errUnchecked}
}

// Err returns why the topics are not ready; nil if they are.
func (t *Topics) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

func (t *Topics) set(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
}

// Loop returns the loop that creates the topics and checks that they still exist. It tries again when the cluster
// cannot be reached, and when a topic has too few partitions, which somebody may add.
func (t *Topics) Loop() loop.Loop {
	return loop.Loop{
		Name:     "topics",
		Deadline: timeout,
		Backoff:  loop.Backoff{First: pause, Max: pause},
		Failure:  "the topics are not ready; trying again",
		Step: func(ctx context.Context, _ loop.Wake) (loop.Next, error) {
			if t.Err() == nil && !t.gone(ctx) {
				return loop.After(checkEvery), nil
			}
			err := t.bus.Ensure(ctx, t.specs)
			t.set(err)
			return loop.After(checkEvery), err
		},
	}
}

// gone reports whether a topic is gone: somebody deleted it, or the brokers have lost their data.
func (t *Topics) gone(ctx context.Context) bool {
	for i := range t.specs {
		bounded, cancel := context.WithTimeout(ctx, checkTimeout)
		_, err := t.bus.Partitions(bounded, t.specs[i].Name)
		cancel()
		if errors.Is(err, kafka.ErrUnknownTopic) {
			t.set(err)
			t.log.Warn("a topic is gone; creating it again", "topic", t.specs[i].Name)
			return true
		}
		if err != nil {
			return false // no broker answers; the next check will tell
		}
	}
	return false
}

// Specs returns the specs of all topics, with the given numbers of partitions and replicas. Settings take precedence
// over the topics' own.
func Specs(partitions, replication int, settings map[string]string) []kafka.TopicSpec {
	topics := events.Topics()
	specs := make([]kafka.TopicSpec, 0, len(topics))
	for _, t := range topics {
		spec := kafka.TopicSpec{Name: t.Name, Partitions: partitions, Replication: replication, Config: map[string]string{}}
		if t.Single {
			spec.Partitions = 1
		}
		maps.Copy(spec.Config, t.Config)
		maps.Copy(spec.Config, settings)
		specs = append(specs, spec)
	}
	return specs
}
