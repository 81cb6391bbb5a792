package controller_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/node/session"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

// knows gives the nodes that are started next one class beside work and wait.
func (s *system) knows(class string, h func(context.Context) error) {
	s.classes = map[string]func(context.Context) error{class: h}
}

// TestC19_ANodeLeavesAloneWhatItDoesNotKnow: tasks of a class that one type of node has are not sent to the other, nor
// started there when their node dies, nor failed by it.
func TestC19_ANodeLeavesAloneWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.cluster(2, 0)
		many := func(c *node.Config) { c.Capacity = 20 }
		s.knows("beta", nap(time.Second))
		s.node("b1", many)
		s.node("b2", many)
		s.knows("alpha", nap(30*time.Second))
		a1 := s.node("a1", many)
		s.joined(3)
		ids := s.submit("alpha", 30, "alpha") // more than a1 takes
		s.submit("beta", 30, "beta")
		s.within(5*time.Second, "those of the others are finished", s.all(task.Finished, 30))
		if got := s.counts()[task.Running]; got != 20 {
			t.Errorf("%d run", got)
		}
		a1.cut()
		pass(time.Minute)
		if got := s.counts()[task.Created]; got != 30 {
			t.Errorf("%d of 30 wait for a node that knows them", got)
		}
		s.node("a2", many)
		s.within(time.Minute+10*time.Second, "all are finished", s.all(task.Finished, 60))
		for _, id := range ids {
			got := s.get(id)
			if got.Failures != 0 || slices.ContainsFunc(s.on[id], func(n string) bool { return n != "a1" && n != "a2" }) ||
				slices.ContainsFunc(got.Attempts, func(r task.Run) bool { return r.Executor != "a1" && r.Executor != "a2" }) {
				t.Errorf("it was at %v: %+v", s.on[id], got)
			}
		}
	})
}

// boasts is a registry of a node that says it knows a class more than it does.
type boasts struct {
	session.Registry
	class string
}

func (b *boasts) Heartbeat(ctx context.Context, n *registry.Node) error {
	c := *n
	c.Classes = append(slices.Clone(n.Classes), b.class)
	return b.Registry.Heartbeat(ctx, &c)
}

// TestC19_ANodeThatDoesNotKnowAClassFailsNothing: even one that is sent such tasks, here since it says the wrong thing,
// gives them back.
func TestC19_ANodeThatDoesNotKnowAClassFailsNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.cluster(2, 0)
		s.nodeOn("b1", &boasts{s.registry, "alpha"})
		s.joined(1)
		ids := s.submit("alpha", 10, "alpha")
		pass(20 * time.Second)
		if got := s.get(ids[0]); got.LifecycleStatus.Terminal() || got.Attempt < 4 || got.Failures != 0 { // it has been sent more often than maxAttempts allows failures
			t.Fatalf("%+v", got)
		}
		s.knows("alpha", nap(time.Second))
		s.node("a1")
		s.within(10*time.Second, "all are finished", s.all(task.Finished, 10))
		for _, id := range ids {
			if got := s.get(id); got.Failures != 0 || !slices.Equal(s.on[id], []string{"a1"}) {
				t.Errorf("it was at %v: %+v", s.on[id], got)
			}
		}
	})
}
