package session

import (
	"context"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
)

// maxUnconfirmed is how many of the last heartbeats over Kafka may still be confirmed.
const maxUnconfirmed = 16

// sentHeartbeat is a heartbeat that was sent over task.status.
type sentHeartbeat struct {
	counter int64
	at      time.Duration
}

// sendOverKafka sends a heartbeat over task.status, if the lease holds. The leader's answer, if it comes, is on
// task.assign.
func (h *heart) sendOverKafka() {
	sent := h.clock.Boot() // before the check, as in beat
	if !h.isTrusted() {
		return
	}
	n := h.next()
	h.mu.Lock()
	if len(h.unconfirmed) == maxUnconfirmed {
		h.unconfirmed = append(h.unconfirmed[:0], h.unconfirmed[1:]...)
	}
	h.unconfirmed = append(h.unconfirmed, sentHeartbeat{n.Counter, sent})
	h.mu.Unlock()
	values, err := events.EncodeStatus(events.Status{
		Node: n.ID, Incarnation: n.Incarnation, At: h.now(), Counter: n.Counter, Heartbeat: &n,
	}, h.cfg.EventMaxBytes)
	if err == nil {
		ctx, cancel := context.WithTimeout(h.base, min(h.timeout(), h.lease.left()))
		defer cancel()
		err = h.bus.Publish(ctx, events.TopicStatus, h.statusPartition, []kafka.Record{{
			Key: values[0].Key, Value: values[0].Value, Headers: []kafka.Header{{Key: events.HeaderHeartbeat, Value: []byte("1")}},
		}})
	}
	if err != nil {
		h.log.Debug("a heartbeat was not sent to the leader", "error", err)
	}
}

// confirmLocked takes in which heartbeats over Kafka the leader confirms.
func (h *heart) confirmLocked(confirmed []events.ConfirmedHeartbeat) {
	for _, c := range confirmed {
		if c.Incarnation != h.self {
			continue
		}
		for _, sent := range h.unconfirmed {
			if sent.counter == c.Counter {
				h.lease.confirm(sent.at)
			}
		}
	}
}
