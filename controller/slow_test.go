package controller_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// slowRenewals is a store that takes its time to answer the leader's renewals. The renewals themselves are in time.
type slowRenewals struct {
	store.Store
	late time.Duration
}

func (l *slowRenewals) SwapLeader(ctx context.Context, old, next store.Leader) (bool, error) {
	ok, err := l.Store.SwapLeader(ctx, old, next)
	pass(l.late)
	return ok, err
}

// With answers that take 600 ms, the trust in a lease of 2 s (1.5 s from a sending) runs out for 200 ms in each period
// of 1.1 s, until the answer renews it. A round that falls into such a moment must not be the dispatcher's last: the
// leadership goes on.
func TestALeadershipGoesOnAfterAMomentWithoutTrust(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.controllerOn(&slowRenewals{Store: s.store, late: 600 * time.Millisecond})
		s.node("n1")
		s.joined(1)
		first, err := s.store.Leader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range 30 { // at all moments of a period
			s.submit("work", 1, fmt.Sprint("t", i))
			pass(130 * time.Millisecond)
		}
		s.within(10*time.Second, "all finished", s.all(task.Finished, 30))
		doc, err := s.store.Leader(t.Context())
		if err != nil || doc.Term != first.Term {
			t.Fatalf("%+v %v, want one leadership all the while", doc, err)
		}
	})
}

// The same at the beginning, while the leader still tries to announce itself.
func TestALeadershipBeginsAfterAMomentWithoutTrust(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		var away atomic.Bool
		away.Store(true)
		s.bus.Fail(func(_ context.Context, topic string, _ int, _ []kafka.Record) (bool, error) {
			if away.Load() && topic == events.TopicAssign {
				return false, fmt.Errorf("%w: no leader", kafka.ErrNotSent)
			}
			return true, nil
		})
		s.controllerOn(&slowRenewals{Store: s.store, late: 600 * time.Millisecond})
		s.node("n1")
		s.joined(1)
		pass(5 * time.Second)
		away.Store(false)
		s.submit("work", 10, "t")
		s.within(10*time.Second, "all finished", s.all(task.Finished, 10))
	})
}
