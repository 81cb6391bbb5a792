package controller_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/node/session"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

// What is under way when somebody dies: fetched and not yet taken in, or acknowledged by the broker and never
// delivered.

// forgetful is a store that is gone with the first ends that it is to write. It still stores positions, right or wrong.
type forgetful struct {
	leaving
	refused atomic.Int64
}

func (f *forgetful) Apply(ctx context.Context, changes []task.Change) (int, error) {
	for i := range changes {
		if changes[i].To == task.Finished {
			f.leave()
			f.refused.Add(1)
		}
	}
	return f.leaving.Apply(ctx, changes)
}

// TestC32_ReportsThatWereFetchedAndNotWrittenAreTakenInByTheNextLeader: a leader reads the ends of 100 tasks and dies
// before it has written them. Nothing new comes: the nodes can send nothing more. The next leader begins where the last
// one had written everything.
func TestC32_ReportsThatWereFetchedAndNotWrittenAreTakenInByTheNextLeader(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.classes = map[string]func(context.Context) error{"nap": nap(5 * time.Second)}
		st := &forgetful{leaving: leaving{Store: s.store}}
		first := s.controllerOn(st)
		s.cluster(0, 3, func(c *node.Config) { c.Capacity = 40 })
		ids := s.submit("nap", 100, "t")
		s.within(3*time.Second, "all run", s.all(task.Running, 100))
		s.within(5*time.Second, "their ends are read, and not written", st.gone.Load)
		pass(500 * time.Millisecond) // all ends are on the topic
		s.bus.Fail(func(_ context.Context, topic string, _ int, records []kafka.Record) (bool, error) {
			v, err := events.DecodeStatus(records[0].Value)
			if topic == events.TopicStatus && err == nil && v.Notice == "" {
				return false, kafka.ErrNotSent
			}
			return true, nil
		})
		first()
		s.controller()
		s.within(5*time.Second, "the next leader has written them", s.all(task.Finished, 100))
		if st.refused.Load() == 0 {
			t.Error("the first leader had nothing to write")
		}
		s.firsts(ids)
		s.bus.Fail(nil)
	})
}

// TestC32_AnAssignmentThatWasNotDeliveredIsSentAgain, though the broker had acknowledged it: by the leader that sent
// it, after ASSIGN_RESEND_AFTER, or by the next one.
func TestC32_AnAssignmentThatWasNotDeliveredIsSentAgain(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]bool{"by the same leader": false, "by the next leader": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(s *system) {
				first := s.controller()
				s.cluster(0, 3)
				var lost atomic.Int64
				s.bus.Fail(func(_ context.Context, topic string, _ int, records []kafka.Record) (bool, error) {
					if a, err := events.DecodeAssign(records[0].Value); topic == events.TopicAssign && err == nil && len(a.Tasks) > 0 {
						lost.Add(1)
						return false, nil // acknowledged, and gone
					}
					return true, nil
				})
				ids := s.submit("work", 30, "t")
				s.within(time.Second, "all are sent", s.all(task.Assigning, 30))
				s.bus.Fail(nil)
				if change {
					s.controller()
					first()
				}
				s.within(4*time.Second, "all are finished", s.all(task.Finished, 30))
				if lost.Load() == 0 {
					t.Error("nothing was lost")
				}
				s.firsts(ids)
			})
		})
	}
}

// TestC40_AKilledNodesFetchedEventsAreNotLost: a node is killed with 100 assignments in its hands that it has fetched,
// and not yet looked at.
func TestC40_AKilledNodesFetchedEventsAreNotLost(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		roomy := func(c *node.Config) { c.Capacity, c.Prefetch = 100, 0 }
		n1 := s.cluster(2, 1, roomy)[0]
		n1.cut() // from now on it fetches, and gets to nothing
		ids := s.submit("work", 100, "t")
		s.within(time.Second, "all are sent to it", s.all(task.Assigning, 100))
		if n := s.eventsFor("n1"); n == 0 {
			t.Fatal("nothing was sent")
		}
		s.node("n2", roomy)
		s.within(12*time.Second, "all are finished", s.all(task.Finished, 100))
		s.once(ids)
		for _, id := range ids {
			if got := s.get(id); got.Executor != "n2" || got.Failures != 0 {
				t.Errorf("%+v", got)
			}
		}
	})
}

// slowly is a registry whose first answer to a node takes so long that a leader has sent it work before.
type slowly struct{ session.Registry }

func (r slowly) Heartbeat(ctx context.Context, n *registry.Node) error {
	err := r.Registry.Heartbeat(ctx, n)
	if n.Counter == 1 {
		pass(1500 * time.Millisecond)
	}
	return err
}

// TestC40_ANewNodeMissesNothing: 20 nodes join one after the other, the first that ever read their partitions, while
// tasks wait for them. Each gets what it is sent at the first time, be it before it knows that it has joined: no task
// is sent twice.
func TestC40_ANewNodeMissesNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.controller()
		pass(time.Second)
		for _, topic := range []string{events.TopicAssign, events.TopicControl, events.TopicStatus} {
			s.bus.Grow(topic, 64)
		}
		pass(3 * time.Second) // the leader reads them all
		var ids []string
		for i := range 20 {
			ids = append(ids, s.submit("wait", 4, fmt.Sprint("t", i))...)
			s.nodeOn(fmt.Sprint("new-", i), slowly{s.registry}, func(c *node.Config) { c.Capacity, c.Prefetch = 4, 0 })
			s.within(1900*time.Millisecond, "they run", s.all(task.Running, 4*(i+1)))
		}
		pass(5 * time.Second)
		s.once(ids)
		for _, id := range ids {
			if got := s.get(id); got.Attempt != 1 || s.sent(id) != 1 {
				t.Errorf("%s was sent %d times, and is in attempt %d", id, s.sent(id), got.Attempt)
			}
		}
	})
}
