package node

import (
	"context"
	"fmt"
	"time"

	"github.com/skalds-go/skalds/events"
)

// lookEvery is the time between two looks whether the session's partitions are still there.
const lookEvery = 30 * time.Second

// placeLoop ends a session whose partitions are no more: topics that had been enlarged were made anew, with fewer. Nothing reaches the node there,
// and nobody reads what it says, though the registry confirms it on and on. The next session finds its place. A broker that has not heard of all
// partitions yet says less for a moment, so that it takes two looks.
func (s *session) placeLoop(stop <-chan struct{}) {
	for gone := ""; s.pause(stop, lookEvery); {
		before := gone
		if gone = s.placeGone(s.base); gone != "" && before != "" {
			s.lose(gone)
			return
		}
	}
}

// placeGone says which of the session's partitions is not there; empty = none that is known.
func (s *session) placeGone(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for topic, partition := range map[string]int{
		events.TopicAssign: s.partition, events.TopicControl: s.partition, events.TopicStatus: s.statusPartition,
	} {
		if n, err := s.bus.Partitions(ctx, topic); err == nil && partition >= n {
			return fmt.Sprintf("its partition %d of %s is gone: the topic has %d", partition, topic, n)
		}
	}
	return ""
}
