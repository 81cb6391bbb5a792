package controller_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/node/session"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

// hesitant is a registry whose answers to a node can be lost, before or after they had their effect.
type hesitant struct {
	session.Registry
	deaf, mute atomic.Bool // requests get lost; answers get lost
}

func (h *hesitant) Heartbeat(ctx context.Context, n *registry.Node) error {
	if h.deaf.Load() {
		return registry.ErrUnavailable
	}
	err := h.Registry.Heartbeat(ctx, n)
	if h.mute.Load() {
		return registry.ErrUnavailable
	}
	return err
}

// A node whose registration arrived, but not its answer, is given work. If it then hears nothing for so long that the
// work is given away, it must not start it when the registry answers at last; and from then on it must get work again.
func TestANodeThatJoinsStartsNothingThatWasGivenAway(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.controller()
		h := &hesitant{Registry: s.registry}
		h.mute.Store(true)
		s.nodeOn("n1", h)
		s.joined(1)
		h.deaf.Store(true)
		ids := s.submit("wait", 1, "t")
		s.within(2*time.Second, "it is assigned", s.all(task.Assigning, 1))
		s.node("n2", func(c *node.Config) { c.Capacity, c.Prefetch = 1, 0 })
		s.within(20*time.Second, "it runs on the other node", s.all(task.Running, 1))
		if got := s.get(ids[0]); got.Executor != "n2" {
			t.Fatalf("it runs on %s", got.Executor)
		}
		h.mute.Store(false)
		h.deaf.Store(false)
		pass(5 * time.Second)
		s.once(ids)
		s.submit("work", 20, "after")
		s.within(20*time.Second, "the node takes work again", s.all(task.Finished, 20))
	})
}
