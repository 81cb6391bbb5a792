// Package quarantine puts records aside that do not decode.
//
// Invariants:
//
//   - Each is logged and copied to task.quarantine, with its place and the reason; what does not fit is cut.
//   - Nothing waits for a copy longer than a second. Where it fails, the record is still in its own topic.
package quarantine

import (
	"context"
	"log/slog"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
)

// timeout bounds one copy.
const timeout = time.Second

// Publisher is the part of a bus that is used.
type Publisher interface {
	Publish(ctx context.Context, topic string, partition int, records []kafka.Record) error
}

// Put puts aside a record of a topic, now, that does not decode for this reason. The caller steps over it whatever becomes of the copy.
func Put(ctx context.Context, bus Publisher, log *slog.Logger, now time.Time, topic string, r *kafka.Record, reason error) {
	log = log.With("topic", topic, "partition", r.Partition, "offset", r.Offset)
	log.Warn("an event does not decode; it was stepped over", "reason", reason)
	e, err := events.EncodeQuarantine(events.Quarantine{
		Topic: topic, Partition: r.Partition, Offset: r.Offset, Reason: reason.Error(), At: now.UnixMilli(), Key: r.Key, Value: r.Value,
	})
	if err == nil {
		bounded, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		err = bus.Publish(bounded, events.TopicQuarantine, 0, []kafka.Record{{Key: e.Key, Value: e.Value}})
	}
	if err != nil && ctx.Err() == nil {
		log.Warn("the event was not copied to quarantine", "error", err)
	}
}
