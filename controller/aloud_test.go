package controller_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// beatsAloud counts the heartbeats that went over Kafka.
func (s *system) beatsAloud() int {
	n := 0
	for _, r := range s.bus.Records(events.TopicStatus) {
		if st, err := events.DecodeStatus(r.Value); err == nil && st.Heartbeat != nil {
			n++
		}
	}
	return n
}

// stay checks that tasks ran once and still run where they were.
func (s *system) stay(ids []string) {
	s.t.Helper()
	for _, id := range ids {
		if got := s.get(id); got.LifecycleStatus != task.Running || got.Attempt != 1 {
			s.t.Errorf("task %s is %s in attempt %d", id, got.LifecycleStatus, got.Attempt)
		}
	}
	s.once(ids)
}

// Redis is down for minutes: nothing moves, and work goes on, on nodes that only Kafka reaches.
func TestRedisDownForMinutesMovesNothingAndStopsNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.cluster(1, 2)
		long := s.submit("wait", 4, "long")
		s.within(5*time.Second, "all run", s.all(task.Running, 4))
		if n := s.beatsAloud(); n != 0 {
			t.Fatalf("%d heartbeats over Kafka while Redis answers", n)
		}
		s.registry.SetDown(true)
		pass(30 * time.Second)
		for i := range 10 {
			s.submit("work", 10, fmt.Sprint("short", i))
			s.within(2*time.Second, "work goes on without Redis", s.all(task.Finished, 10*(i+1)))
			pass(15 * time.Second)
		}
		s.stay(long)
		s.registry.SetDown(false)
		pass(30 * time.Second)
		s.stay(long)
		told := s.beatsAloud()
		pass(30 * time.Second)
		if n := s.beatsAloud(); n != told {
			t.Errorf("%d heartbeats over Kafka after Redis came back", n-told)
		}
	})
}

// Redis and MongoDB are down for minutes: the leader's lease is over, but it goes on confirming; nothing moves, and all
// goes on when they are back.
func TestRedisAndTheStoreDownForMinutesMoveNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.classes = map[string]func(context.Context) error{"nap": func(context.Context) error { pass(time.Minute); return nil }}
		st := &leaving{Store: s.store}
		s.controllerOn(st)
		s.node("n1")
		s.joined(1)
		long := s.submit("wait", 4, "long")
		short := s.submit("nap", 4, "short") // they end, and report, while the store is away
		s.within(5*time.Second, "all run", s.all(task.Running, 8))
		s.registry.SetDown(true)
		st.leave()
		pass(3 * time.Minute)
		st.gone.Store(false)
		s.registry.SetDown(false)
		s.within(3*time.Second, "the reports are taken in", s.all(task.Finished, 4))
		s.submit("work", 10, "after")
		s.within(3*time.Second, "work goes on", s.all(task.Finished, 14))
		pass(30 * time.Second)
		s.stay(long)
		s.once(short)
	})
}

// A node that alone has lost Redis lives on and takes work; its key expires, which means nothing.
func TestANodeThatLosesRedisLivesOnThroughKafka(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.controller()
		h := &hesitant{Registry: s.registry}
		s.nodeOn("n1", h)
		s.joined(1)
		long := s.submit("wait", 2, "long")
		s.within(5*time.Second, "all run", s.all(task.Running, 2))
		h.deaf.Store(true)
		pass(2 * time.Minute)
		s.submit("work", 10, "during")
		s.within(2*time.Second, "it takes work", s.all(task.Finished, 10))
		s.stay(long)
		h.deaf.Store(false)
		pass(30 * time.Second)
		s.stay(long)
	})
}

// A node whose registrations arrive, but whose answers get lost, lives on, too.
func TestANodeThatHearsNothingFromRedisLivesOn(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.controller()
		h := &hesitant{Registry: s.registry}
		s.nodeOn("n1", h)
		s.joined(1)
		long := s.submit("wait", 2, "long")
		s.within(5*time.Second, "all run", s.all(task.Running, 2))
		h.mute.Store(true)
		pass(2 * time.Minute)
		s.stay(long)
		h.mute.Store(false)
	})
}

// With Redis down for all, a node that dies is not given away; when Redis is back, it is, after a whole wait: whether
// its key is still there or has expired.
func TestNothingIsGivenAwayWithoutRedis(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]time.Duration{"its key is there": 20 * time.Second, "its key has expired": time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(s *system) {
				one := s.cluster(1, 1, func(c *node.Config) { c.Capacity, c.Prefetch = 1, 0 })[0]
				ids := s.submit("wait", 1, "long")
				s.within(5*time.Second, "it runs", s.all(task.Running, 1))
				s.node("n2")
				s.joined(2)
				s.registry.SetDown(true)
				one.cut()
				pass(outage)
				if got := s.get(ids[0]); got.LifecycleStatus != task.Running || got.Attempt != 1 {
					t.Fatalf("it is %s in attempt %d", got.LifecycleStatus, got.Attempt)
				}
				s.registry.SetDown(false)
				took := s.within(20*time.Second, "it runs elsewhere", func() bool {
					got := s.get(ids[0])
					return got.LifecycleStatus == task.Running && got.Attempt == 2 && got.Executor == "n2"
				})
				if took < 8*time.Second {
					t.Errorf("given away %s after Redis came back", took)
				}
			})
		})
	}
}

// The leader changes while Redis is down: the next one confirms the nodes, and dispatches to them.
func TestTheLeaderChangesWhileRedisIsDown(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		stop := s.controller()
		n := s.node("n1")
		s.joined(1)
		long := s.submit("wait", 2, "long")
		s.within(5*time.Second, "all run", s.all(task.Running, 2))
		s.registry.SetDown(true)
		pass(20 * time.Second)
		stop()
		next := s.controller()
		pass(20 * time.Second)
		s.submit("work", 10, "after")
		s.within(3*time.Second, "work goes on", s.all(task.Finished, 10))
		s.stay(long)
		s.registry.SetDown(false)
		pass(20 * time.Second)
		s.stay(long)
		n.stop()
		next()
	})
}

// unloadable is a store that does not say from where reports are to be read.
type unloadable struct {
	store.Store
	stalled atomic.Bool
}

func (u *unloadable) Positions(ctx context.Context, topic string) (map[int]store.Position, error) {
	if u.stalled.Load() {
		return nil, store.ErrUnavailable
	}
	return u.Store.Positions(ctx, topic)
}

// Redis is down, another leader is chosen, and the store goes away before that one knows from where to read: nodes that
// know of the new leader take nobody else's word, so it confirms them all the same.
func TestALeaderThatCannotLoadConfirmsHeartbeats(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		st := &unloadable{Store: s.store}
		st.stalled.Store(true)
		stop := s.controller()
		s.node("n1")
		s.joined(1)
		long := s.submit("wait", 2, "long")
		s.within(5*time.Second, "all run", s.all(task.Running, 2))
		s.registry.SetDown(true)
		pass(20 * time.Second)
		stop()
		s.controllerOn(st)
		pass(30 * time.Second)
		st.stalled.Store(false)
		s.submit("work", 10, "after")
		s.within(3*time.Second, "work goes on", s.all(task.Finished, 10))
		s.registry.SetDown(false)
		pass(20 * time.Second)
		s.stay(long)
	})
}
