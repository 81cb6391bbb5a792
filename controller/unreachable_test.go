package controller_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// A node whose partition takes nothing has the least load of all, since all its claims are given back. It must not draw
// all tasks.
func TestANodeThatCannotBeReachedDoesNotKeepTasksFromOthers(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.controller()
		good, bad := "n1", ""
		for i := 2; bad == "" || events.Partition(bad, partitions) == events.Partition(good, partitions); i++ {
			bad = fmt.Sprint("n", i)
		}
		s.node(good)
		n2 := s.node(bad)
		s.joined(2)
		s.submit("wait", 4, "long")
		s.within(5*time.Second, "the nodes are at work", s.all(task.Running, 4))
		n2.stop() // what it ran goes to the other one: it is the busier one from now on
		s.within(20*time.Second, "all run on one node", func() bool {
			p, err := s.store.List(t.Context(), store.Filter{Limit: 10, Executor: good, Status: []task.Status{task.Running}})
			return err == nil && len(p.Tasks) == 4
		})
		s.node(bad)
		s.joined(2)
		s.bus.Fail(func(_ context.Context, topic string, partition int, _ []kafka.Record) (bool, error) {
			if topic == events.TopicAssign && partition == events.Partition(bad, partitions) {
				return false, fmt.Errorf("%w: no leader", kafka.ErrNotSent)
			}
			return true, nil
		})
		for i := range 20 {
			s.submit("work", 1, fmt.Sprint("t", i))
			s.within(3*time.Second, "it is finished", s.all(task.Finished, i+1))
		}
	})
}
