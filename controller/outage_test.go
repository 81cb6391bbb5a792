package controller_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/task"
)

// Nodes that could not be reached are tried again at each look at them. That look finds nothing to place before, and
// must not undo the pause that grows with every failure: each try claims tasks, gives them back and says so in the log.
func TestTriesBecomeRareWhileNoNodeCanBeReached(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.cluster(1, 1)
		s.bus.Fail(func(_ context.Context, topic string, _ int, _ []kafka.Record) (bool, error) {
			if topic == events.TopicAssign {
				return false, fmt.Errorf("%w: no leader", kafka.ErrNotSent)
			}
			return true, nil
		})
		id := s.submit("work", 1, "t")[0]
		pass(2 * time.Minute)
		if got := s.get(id).Attempt; got < 10 || got > 70 {
			t.Errorf("%d tries in two minutes, want one in two seconds", got)
		}
		s.bus.Fail(nil)
		s.within(3*time.Second, "the task is finished", s.all(task.Finished, 1))
	})
}
