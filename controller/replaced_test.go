package controller_test

import (
	"context"
	"testing"
	"time"

	"github.com/skalds-go/skalds/node/session"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

// proven is a registry of a node that has proof of its predecessor's death.
type proven struct {
	session.Registry
	replaces string
	crashed  bool
}

func (p *proven) Heartbeat(ctx context.Context, n *registry.Node) error {
	c := *n
	c.Replaces, c.Crashed = p.replaces, p.crashed
	return p.Registry.Heartbeat(ctx, &c)
}

// A node that is started again and proves that its predecessor is dead takes its place, and its tasks run again, at
// once. A crash counts as one; what ended otherwise does not.
func TestAProvenDeathIsGivenAwayAtOnce(t *testing.T) {
	t.Parallel()
	for name, crashed := range map[string]bool{"a crash": true, "no crash": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(s *system) {
				s.overlaps = true // the proof is a lie here: the predecessor is only cut off
				one := s.cluster(1, 1)[0]
				ids := s.submit("wait", 3, "long")
				s.within(5*time.Second, "all run", s.all(task.Running, 3))
				incarnation := s.get(ids[0]).Incarnation
				one.cut()
				s.nodeOn("n1", &proven{s.registry, incarnation, crashed})
				s.within(2*time.Second, "they run again", func() bool {
					for _, id := range ids {
						if got := s.get(id); got.LifecycleStatus != task.Running || got.Attempt != 2 || got.Incarnation == incarnation {
							return false
						}
					}
					return true
				})
				for _, id := range ids {
					got := s.get(id)
					if want := map[bool]int{true: 1}[crashed]; got.Crashes != want || got.Failures != 0 {
						t.Errorf("%s: %d crashes, %d failures, want %d and 0", id, got.Crashes, got.Failures, want)
					}
				}
			})
		})
	}
}
