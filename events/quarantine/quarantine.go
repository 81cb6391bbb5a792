// Package quarantine keeps records that cannot be decoded.
//
// Invariants:
//
//   - Each is logged and copied to task.quarantine, with its place and the reason. What does not fit is cut.
//   - Copying takes at most one second of ten. If a copy fails, the record is still in its own topic.
package quarantine

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/clock"
)

const (
	// timeout bounds one copy.
	timeout = time.Second
	// pause is how long no copy is tried after one has failed: a flood of bad records must not hold up the good ones
	// between them.
	pause = 10 * time.Second
)

// Publisher is the part of a bus that a Quarantine uses.
type Publisher interface {
	Publish(ctx context.Context, topic string, partition int, records []kafka.Record) error
}

// Quarantine copies records to task.quarantine. It is safe for concurrent use.
type Quarantine struct {
	bus   Publisher
	clock clock.Clock
	log   *slog.Logger

	mu    sync.Mutex
	until time.Duration // no copy is tried before, by the clock's Boot
}

// New returns a quarantine that publishes to the bus.
func New(bus Publisher, c clock.Clock, log *slog.Logger) *Quarantine {
	return &Quarantine{bus: bus, clock: c, log: log}
}

var errPaused = errors.New("another copy failed less than 10 seconds ago")

// Put logs and copies a record of a topic that cannot be decoded for this reason. The caller skips the record, whatever
// becomes of the copy.
func (q *Quarantine) Put(ctx context.Context, r *kafka.Record, topic string, reason error) {
	log := q.log.With("topic", topic, "partition", r.Partition, "offset", r.Offset)
	log.Warn("an event does not decode; it was stepped over", "reason", reason)
	if err := q.copyOf(ctx, r, topic, reason); err != nil && ctx.Err() == nil {
		log.Warn("the event was not copied to quarantine", "error", err)
	}
}

func (q *Quarantine) copyOf(ctx context.Context, r *kafka.Record, topic string, reason error) error {
	e, err := events.EncodeQuarantine(events.Quarantine{
		Topic: topic, Partition: r.Partition, Offset: r.Offset, Reason: reason.Error(), At: q.clock.Now().UnixMilli(), Key: r.Key, Value: r.Value,
	})
	if err != nil {
		return err
	}
	q.mu.Lock()
	paused := q.clock.Boot() < q.until
	q.mu.Unlock()
	if paused {
		return errPaused
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err = q.bus.Publish(ctx, events.TopicQuarantine, 0, []kafka.Record{{Key: e.Key, Value: e.Value}}); err != nil {
		q.mu.Lock()
		q.until = q.clock.Boot() + pause
		q.mu.Unlock()
	}
	return err
}
