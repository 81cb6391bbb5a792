// Package bustest is Kafka for tests and simulations: topics with partitions in memory, with the methods of
// [kafka.Client].
//
// Invariants:
//
//   - A partition is a log: offsets begin at 0 and have no gap; what was appended never changes.
//   - A reader returns each record of its partition once and in order, and wakes at once when one is appended.
//   - There is no goroutine and no timer: a call ends by itself or with its context.
package bustest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
)

// Fault decides what becomes of one publish. It may block until the call's context ends. The records are appended if it
// returns true; the call returns its error in any case. If the caller may know that the records were not written, the
// error should have kafka.ErrNotSent in its chain.
type Fault func(ctx context.Context, topic string, partition int, records []kafka.Record) (written bool, err error)

// Bus is the cluster. It is safe for concurrent use.
type Bus struct {
	mu       sync.Mutex
	topics   map[string][]*partition
	fault    Fault
	now      func() time.Time
	appended chan struct{} // closed and replaced at each change
}

type partition struct{ records []kafka.Record }

// New returns a bus with these topics and their numbers of partitions.
func New(topics map[string]int) *Bus {
	b := &Bus{topics: map[string][]*partition{}, now: time.Now, appended: make(chan struct{})}
	for topic, n := range topics {
		b.Create(topic, n)
	}
	return b
}

// Skalds returns a bus with the four topics of package events, with n partitions each, except the quarantine.
func Skalds(n int) *Bus {
	return New(map[string]int{events.TopicAssign: n, events.TopicControl: n, events.TopicStatus: n, events.TopicQuarantine: 1})
}

// Create creates a topic. If it exists, it is replaced, without its records.
func (b *Bus) Create(topic string, partitions int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.topics[topic] = make([]*partition, partitions)
	for i := range b.topics[topic] {
		b.topics[topic][i] = &partition{}
	}
	b.changed()
}

// Delete removes a topic with its records.
func (b *Bus) Delete(topic string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.topics, topic)
	b.changed()
}

// Grow adds partitions to a topic, up to the number given. Those that it has are not changed.
func (b *Bus) Grow(topic string, partitions int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.topics[topic]) < partitions {
		b.topics[topic] = append(b.topics[topic], &partition{})
	}
	b.changed()
}

// Fail lets f decide about every publish from now on; nil lets all of them succeed.
func (b *Bus) Fail(f Fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = f
}

// Clock sets the clock for the times of records. The default is time.Now.
func (b *Bus) Clock(now func() time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = now
}

// Publish appends the records to the partition.
func (b *Bus) Publish(ctx context.Context, topic string, partition int, records []kafka.Record) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("publish to topic %q: %w: %w", topic, kafka.ErrNotSent, err)
	}
	b.mu.Lock()
	fault := b.fault
	b.mu.Unlock()
	var failure error
	if fault != nil {
		written, err := fault(ctx, topic, partition, records)
		if !written {
			return err
		}
		failure = err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	p, err := b.partition(topic, partition)
	if err != nil {
		return fmt.Errorf("publish: %w: %w", kafka.ErrNotSent, err)
	}
	for _, r := range records {
		r.Partition, r.Offset = partition, int64(len(p.records))
		if r.Time.IsZero() {
			r.Time = b.now()
		}
		p.records = append(p.records, r)
	}
	b.changed()
	return failure
}

// Partitions returns how many partitions the topic has, or kafka.ErrUnknownTopic.
func (b *Bus) Partitions(ctx context.Context, topic string) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("partitions of topic %q: %w", topic, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	ps, ok := b.topics[topic]
	if !ok {
		return 0, fmt.Errorf("topic %q: %w", topic, kafka.ErrUnknownTopic)
	}
	return len(ps), nil
}

// Offsets returns the present ranges of the partitions: all of them or an error.
func (b *Bus) Offsets(ctx context.Context, topic string, partitions []int) (map[int]kafka.Range, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("offsets of topic %q: %w", topic, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	ranges := make(map[int]kafka.Range, len(partitions))
	for _, i := range partitions {
		p, err := b.partition(topic, i)
		if err != nil {
			return nil, err
		}
		ranges[i] = kafka.Range{End: int64(len(p.records))}
	}
	return ranges, nil
}

// Ensure creates the topics that are missing. One with too few partitions is an error.
func (b *Bus) Ensure(ctx context.Context, topics []kafka.TopicSpec) error {
	var problems []error
	for _, t := range topics {
		n, err := b.Partitions(ctx, t.Name)
		switch {
		case errors.Is(err, kafka.ErrUnknownTopic):
			b.Create(t.Name, t.Partitions)
		case err != nil:
			problems = append(problems, err)
		case n < t.Partitions:
			problems = append(problems, fmt.Errorf("topic %q has %d partitions, %d are wanted", t.Name, n, t.Partitions))
		}
	}
	return errors.Join(problems...)
}

// Ping returns nil, unless ctx has ended.
func (b *Bus) Ping(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	return nil
}

// Records returns a copy of all records of a topic, partition by partition.
func (b *Bus) Records(topic string) []kafka.Record {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []kafka.Record
	for _, p := range b.topics[topic] {
		all = append(all, p.records...)
	}
	return all
}

// Topics returns the number of partitions of each topic.
func (b *Bus) Topics() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	names := map[string]int{}
	for topic, ps := range b.topics {
		names[topic] = len(ps)
	}
	return names
}

// Changed returns a channel that is closed at the next append or change of a topic. To miss nothing, get it, then look,
// then wait.
func (b *Bus) Changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.appended
}

// changed wakes all that wait. The caller holds the lock.
func (b *Bus) changed() {
	close(b.appended)
	b.appended = make(chan struct{})
}

// partition returns one partition. The caller holds the lock.
func (b *Bus) partition(topic string, i int) (*partition, error) {
	ps := b.topics[topic]
	if i < 0 || i >= len(ps) {
		return nil, fmt.Errorf("topic %q partition %d: %w", topic, i, kafka.ErrUnknownTopic)
	}
	return ps[i], nil
}
