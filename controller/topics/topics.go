// Package topics sees to it that the topics exist: it makes them, and makes them anew where they are gone.
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

// Bus is the part of the bus that the topics need.
type Bus interface {
	Ensure(ctx context.Context, topics []kafka.TopicSpec) error
	Partitions(ctx context.Context, topic string) (int, error)
}

const (
	pause      = 500 * time.Millisecond // between two tries to make the topics
	timeout    = 30 * time.Second       // of one try
	checkEvery = time.Second            // time between two looks whether they are still there
	ask        = 2 * time.Second        // of one such question
)

// Topics are the topics of one cluster.
type Topics struct {
	bus   Bus
	specs []kafka.TopicSpec
	log   *slog.Logger

	mu  sync.Mutex
	err error // why they are not ready
}

var errNotYet = errors.New("not looked for yet")

// New returns topics that are to be made as the specs say.
func New(bus Bus, specs []kafka.TopicSpec, log *slog.Logger) *Topics {
	return &Topics{bus: bus, specs: specs, log: log, err: errNotYet}
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

// Loop returns the loop that makes the topics and watches over them. A cluster that cannot be reached is tried again, and so is a topic with
// too few partitions: a person may enlarge it.
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

// gone reports whether a topic is gone, as after somebody deleted it or the brokers came back empty.
func (t *Topics) gone(ctx context.Context) bool {
	for i := range t.specs {
		asked, cancel := context.WithTimeout(ctx, ask)
		_, err := t.bus.Partitions(asked, t.specs[i].Name)
		cancel()
		if errors.Is(err, kafka.ErrUnknownTopic) {
			t.set(err)
			t.log.Warn("a topic is gone; making it anew", "topic", t.specs[i].Name)
			return true
		}
		if err != nil {
			return false // no broker answers; the next look finds out
		}
	}
	return false
}

// Specs says how all topics are made: with so many partitions and copies, and with further settings that win over their own.
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
