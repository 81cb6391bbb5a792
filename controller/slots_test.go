package controller_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/pkg/task"
)

// TestC41_AFullNodeGoesOnWhenASlotFrees: a node without room is sent nothing, stays what it is, and holds up no other
// of its partition. When a slot frees, the next task starts within 50 ms: in fake time, at once.
func TestC41_AFullNodeGoesOnWhenASlotFrees(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		free := make(chan struct{})
		s.classes = map[string]func(context.Context) error{"gate": func(ctx context.Context) error {
			select {
			case <-free:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}}
		s.cluster(2, 1, func(c *node.Config) { c.Capacity, c.Prefetch = 2, 0 })
		ids := s.submit("gate", 12, "t")
		s.within(time.Second, "it is full", s.all(task.Running, 2))
		s.classes = nil
		other := ""
		for i := 2; other == "" || events.Partition(other, partitions) != events.Partition("n1", partitions); i++ {
			other = fmt.Sprint("n", i)
		}
		s.node(other)
		s.joined(2)
		first := s.incarnation("n1")
		for i := range 10 {
			pass(time.Minute)
			s.submit("work", 1, fmt.Sprint("beside", i))
			synctest.Wait()
			if c := s.counts(); c[task.Running] != 2 || c[task.Created] != int64(10-i) || c[task.Finished] != int64(2*i+1) {
				t.Fatalf("while it is full: %v", c)
			}
			freed := s.clock.Now().UnixMilli()
			free <- struct{}{}
			s.within(50*time.Millisecond, "the next one runs", func() bool { return s.get(ids[i+2]).LifecycleStatus == task.Running })
			if got := s.get(ids[i+2]); got.StartDateTime != freed {
				t.Errorf("it started %d ms after the slot was free", got.StartDateTime-freed)
			}
		}
		close(free)
		s.within(time.Second, "all are finished", s.all(task.Finished, 22))
		s.firsts(ids)
		if s.incarnation("n1") != first {
			t.Error("the node began anew")
		}
	})
}
