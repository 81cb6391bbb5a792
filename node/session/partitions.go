package session

import (
	"context"
	"fmt"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/pkg/loop"
)

const (
	// lookEvery is the time between two looks whether the session's partitions are still there; with many nodes the
	// brokers feel each look. A report that finds no partition brings the next look forward.
	lookEvery = 5 * time.Minute
	// lookAgain is the time until the second look. A broker that has not heard of all partitions yet names fewer for a
	// moment.
	lookAgain = 30 * time.Second
)

// partitionsLoop ends a session whose partitions are gone: topics that had been enlarged were made anew, with fewer.
// Nothing reaches the node there, and nobody reads what it says, though the registry goes on confirming it. The next
// session finds its new partitions.
func (s *Session) partitionsLoop() loop.Loop {
	missed := false
	return loop.Loop{Name: "partitions", Wakes: []loop.Wake{s.lookNow}, First: loop.After(lookEvery),
		Step: func(ctx context.Context, _ loop.Wake) (loop.Next, error) {
			missing := s.missingPartition(ctx)
			switch {
			case missing == "":
				missed = false
				return loop.After(lookEvery), nil
			case !missed:
				missed = true
				return loop.Rest(lookAgain), nil
			}
			s.lose(missing)
			return loop.Done(), nil
		},
	}
}

// missingPartition describes one of the session's partitions that is not there. It is empty if none is known to be
// missing.
func (s *Session) missingPartition(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for _, at := range []struct {
		topic     string
		partition int
	}{{events.TopicAssign, s.partition}, {events.TopicControl, s.partition}, {events.TopicStatus, s.heart.statusPartition}} {
		if n, err := s.bus.Partitions(ctx, at.topic); err == nil && at.partition >= n {
			return fmt.Sprintf("its partition %d of %s is gone: the topic has %d", at.partition, at.topic, n)
		}
	}
	return ""
}
