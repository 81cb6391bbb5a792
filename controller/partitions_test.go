package controller_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/pkg/task"
)

// Partitions that are added while a leader is at work belong to nodes that join later: it must read what they report.
func TestPartitionsThatAreAddedAreRead(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		n := s.cluster(1, 1)[0]
		s.submit("work", 1, "before")
		s.within(5*time.Second, "it leads", s.all(task.Finished, 1))
		n.stop()
		for _, topic := range []string{events.TopicAssign, events.TopicControl, events.TopicStatus} {
			s.bus.Grow(topic, 16*partitions)
		}
		id := ""
		for i := 0; id == "" || events.Partition(id, 16*partitions) < partitions; i++ {
			id = fmt.Sprint("late-", i)
		}
		s.node(id)
		s.joined(1)
		s.submit("work", 10, "after")
		s.within(20*time.Second, "all finished", s.all(task.Finished, 11))
	})
}
