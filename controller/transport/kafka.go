package transport

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
)

// Publisher is the part of the bus that a transport uses.
type Publisher interface {
	Publish(ctx context.Context, topic string, partition int, records []kafka.Record) error
}

// parallel is how many publishes run at once.
const parallel = 16

// Kafka reaches nodes over task.assign and task.control.
type Kafka struct {
	bus        Publisher
	controller string
	limit      int
	now        func() time.Time
}

// NewKafka returns a transport. Events name controller, a run id, as their initiator; limit is EVENT_MAX_BYTES.
func NewKafka(bus Publisher, controller string, limit int, now func() time.Time) *Kafka {
	return &Kafka{bus: bus, controller: controller, limit: limit, now: now}
}

// Assign publishes claims, one try for each event, and returns what became of each task.
func (k *Kafka) Assign(ctx context.Context, term int64, batches []Batch) []Result {
	results := make([]Result, len(batches))
	each(len(batches), func(i int) {
		results[i] = k.assign(ctx, term, &batches[i])
	})
	return results
}

func (k *Kafka) assign(ctx context.Context, term int64, b *Batch) Result {
	r := Result{Outcomes: make([]Outcome, len(b.Tasks))}
	for i := range r.Outcomes {
		r.Outcomes[i] = NotSent
	}
	e := k.event(b.To.Key, term)
	e.RoundRobinCount = b.RoundRobinCount
	e.Tasks = make([]events.AssignedTask, len(b.Tasks))
	for i := range b.Tasks {
		e.Tasks[i] = events.Assigned(&b.Tasks[i])
	}
	encoded, err := events.EncodeAssign(e, k.limit)
	if err != nil { // one task is at fault, which must not hold up the others
		encoded, r.Never = k.oneByOne(e)
	}
	for _, v := range encoded {
		outcome := Sent
		if err := k.publish(ctx, events.TopicAssign, b.To, v); err != nil {
			r.Err = err
			outcome = Unknown
			if errors.Is(err, kafka.ErrNotSent) {
				outcome = NotSent
			}
		}
		for i := v.From; i < v.To; i++ {
			r.Outcomes[i] = outcome
		}
		if outcome != Sent {
			break // the rest would fail too, and is certainly not sent
		}
	}
	return r
}

// oneByOne encodes each task as an event of its own, and returns why some of them cannot be encoded.
func (k *Kafka) oneByOne(e events.Assign) (encoded []events.Encoded, never map[int]error) {
	never = make(map[int]error)
	tasks := e.Tasks
	for i := range tasks {
		e.Tasks = tasks[i : i+1]
		values, err := events.EncodeAssign(e, k.limit)
		if err != nil {
			never[i] = err
			continue
		}
		for _, v := range values {
			v.From, v.To = i, i+1
			encoded = append(encoded, v)
		}
	}
	return encoded, never
}

// Acknowledge acknowledges final reports of nodes. A node reports again until an acknowledgement arrives.
func (k *Kafka) Acknowledge(ctx context.Context, term int64, list []Acknowledgement) error {
	return all(len(list), func(i int) error {
		e := k.event(list[i].To.Key, term)
		e.Acknowledged = list[i].Claims
		encoded, err := events.EncodeAssign(e, k.limit)
		if err != nil {
			return err
		}
		return k.publish(ctx, events.TopicAssign, list[i].To, encoded...)
	})
}

// Control sends commands to nodes. The caller repeats them until they are carried out.
func (k *Kafka) Control(ctx context.Context, term int64, list []Commands) error {
	return all(len(list), func(i int) error {
		to := list[i].To
		encoded, err := events.EncodeControl(events.Control{
			Term: term, Initiator: k.controller, Recipient: to.Node, Incarnation: to.Incarnation,
			CreateDateTime: k.now().UnixMilli(), Commands: list[i].Commands, Drain: list[i].Drain,
		}, k.limit)
		if err != nil {
			return err
		}
		return k.publish(ctx, events.TopicControl, to, encoded...)
	})
}

// Fence tells incarnations whose work is reassigned to stop all of it at once. One that does not get it stops by its
// own clock.
func (k *Kafka) Fence(ctx context.Context, term int64, list []fleet.Target) error {
	return all(len(list), func(i int) error {
		encoded, err := events.EncodeControl(events.Control{
			Term: term, Initiator: k.controller, Recipient: list[i].Node, Incarnation: list[i].Incarnation,
			CreateDateTime: k.now().UnixMilli(), Fence: true,
		}, k.limit)
		if err != nil {
			return err
		}
		return k.publish(ctx, events.TopicControl, list[i], encoded...)
	})
}

// Announce writes the term to partitions of task.assign. It returns one error for each partition, nil where the term
// was written.
func (k *Kafka) Announce(ctx context.Context, term int64, partitions []int) []error {
	errs := make([]error, len(partitions))
	each(len(partitions), func(i int) { errs[i] = k.toAll(ctx, partitions[i], k.event(fleet.Key{}, term)) })
	return errs
}

// Confirm confirms heartbeats that came over task.status.
func (k *Kafka) Confirm(ctx context.Context, term int64, list []Confirmation) error {
	return all(len(list), func(i int) error {
		e := k.event(fleet.Key{}, term)
		e.Heartbeats = list[i].Heartbeats
		return k.toAll(ctx, list[i].Partition, e)
	})
}

// toAll writes an event for every node of a partition.
func (k *Kafka) toAll(ctx context.Context, partition int, e events.Assign) error {
	encoded, err := events.EncodeAssign(e, k.limit)
	if err != nil {
		return err
	}
	return k.publish(ctx, events.TopicAssign, fleet.Target{Partition: partition}, encoded...)
}

func (k *Kafka) event(to fleet.Key, term int64) events.Assign {
	now := k.now().UnixMilli()
	e := events.Assign{CreateDateTime: now, UpdateDateTime: now}
	e.SetSender(k.controller, term)
	e.SetRecipient(to.Node, to.Incarnation)
	return e
}

// publish sends values one after the other. A target without a node means every node of the partition.
func (k *Kafka) publish(ctx context.Context, topic string, to fleet.Target, values ...events.Encoded) error {
	var headers []kafka.Header
	if to.Node != "" {
		headers = []kafka.Header{
			{Key: events.HeaderNode, Value: []byte(to.Node)},
			{Key: events.HeaderIncarnation, Value: []byte(to.Incarnation)},
		}
	}
	for _, v := range values {
		if err := k.bus.Publish(ctx, topic, to.Partition, []kafka.Record{{Key: v.Key, Value: v.Value, Headers: headers}}); err != nil {
			return fmt.Errorf("publish to %s, partition %d, for node %q: %w", topic, to.Partition, to.Node, err)
		}
	}
	return nil
}

// each calls f for 0..n-1, some of them at once, and returns when all have returned.
func each(n int, f func(int)) {
	_ = all(n, func(i int) error { f(i); return nil })
}

// all is each for a func that can fail. It returns the first error.
func all(n int, f func(int) error) error {
	if n == 1 {
		return f(0)
	}
	var g errgroup.Group
	g.SetLimit(parallel)
	for i := range n {
		g.Go(func() error { return f(i) })
	}
	return g.Wait()
}
