package node

import (
	"context"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
)

// maxAloud is how many of the last heartbeats over task.status may still be confirmed.
const maxAloud = 16

// sending is when a heartbeat was sent over task.status.
type sending struct {
	counter int64
	at      time.Duration
}

// beatAloud sends a heartbeat over task.status, if the session trusts itself. The leader's answer, if it comes, is on task.assign.
func (s *session) beatAloud() {
	sent := s.clock.Boot() // before the check, as in beatRound
	if !s.check() {
		return
	}
	n := s.heartbeat()
	s.mu.Lock()
	if len(s.aloud) == maxAloud {
		s.aloud = append(s.aloud[:0], s.aloud[1:]...)
	}
	s.aloud = append(s.aloud, sending{n.Counter, sent})
	s.mu.Unlock()
	values, err := events.EncodeStatus(events.Status{
		Node: n.ID, Incarnation: n.Incarnation, At: s.now(), Counter: n.Counter, Heartbeat: &n,
	}, s.cfg.EventMaxBytes)
	if err == nil {
		ctx, cancel := context.WithTimeout(s.base, min(s.beatTimeout(), s.trustLeft()))
		defer cancel()
		err = s.bus.Publish(ctx, events.TopicStatus, s.statusPartition, []kafka.Record{{
			Key: values[0].Key, Value: values[0].Value, Headers: []kafka.Header{{Key: events.HeaderHeartbeat, Value: []byte("1")}},
		}})
	}
	if err != nil {
		s.log.Debug("a heartbeat was not sent to the leader", "error", err)
	}
}

// heardLocked takes in what the leader confirms of the heartbeats that were sent over task.status.
func (s *session) heardLocked(beats []events.ConfirmedHeartbeat) {
	for _, b := range beats {
		if b.Incarnation != s.node.Incarnation {
			continue
		}
		for _, a := range s.aloud {
			if a.counter == b.Counter {
				s.confirmLocked(a.at)
			}
		}
	}
}
