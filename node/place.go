package node

import (
	"context"
	"fmt"
	"time"

	"github.com/skalds-go/skalds/events"
)

const (
	// lookEvery is the time between two looks whether the session's partitions are still there; with many nodes each look is felt by the brokers.
	// A report that has no partition to go to brings the next one forward.
	lookEvery = 5 * time.Minute
	// lookAgain is the time until the second look. A broker that has not heard of all partitions yet says less for a moment.
	lookAgain = 30 * time.Second
)

// placeLoop ends a session whose partitions are no more: topics that had been enlarged were made anew, with fewer. Nothing reaches the node there,
// and nobody reads what it says, though the registry confirms it on and on. The next session finds its place.
func (s *session) placeLoop(stop <-chan struct{}) {
	timer := s.clock.NewTimer(lookEvery)
	defer timer.Stop()
	for {
		select {
		case <-stop:
			return
		case <-timer.C():
		case <-s.lookNow:
		}
		if s.placeGone(s.base) == "" {
			timer.Reset(lookEvery)
			continue
		}
		if !s.pause(stop, lookAgain) {
			return
		}
		if gone := s.placeGone(s.base); gone != "" {
			s.lose(gone)
			return
		}
		timer.Reset(lookEvery)
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
