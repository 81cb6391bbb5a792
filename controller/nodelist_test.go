package controller_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

// Whichever controller is asked to drain a node, every controller's list shows it at once, and if the leader was asked,
// it places nothing there any more, although the node has not heard of it yet.
func TestEveryNodeListShowsADrainAtOnce(t *testing.T) {
	t.Parallel()
	for asked := range 2 { // the leader, a follower
		t.Run(fmt.Sprint(asked), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(s *system) {
				s.controller()
				pass(time.Second)
				s.controller()
				s.node("n1", small)
				s.joined(1)
				s.submit("work", 1, "before")
				s.within(3*time.Second, "it is finished", s.all(task.Finished, 1))
				if err := s.client(asked).Drain(s.t.Context(), "n1"); err != nil {
					s.t.Fatal(err)
				}
				for i := range 2 {
					page, err := s.client(i).Nodes(s.t.Context(), 10, "")
					if err != nil || len(page.Items) != 1 || page.Incomplete != "" {
						s.t.Fatal(page, err)
					}
					if n := page.Items[0]; n.State != registry.Draining || n.Status != string(registry.Draining) {
						s.t.Errorf("controller %d shows the node as %s, %s", i, n.State, n.Status)
					}
				}
				if asked == 0 {
					s.submit("work", 3, "after")
					pass(10 * time.Second)
					if got := s.counts(); got[task.Created] != 3 {
						s.t.Errorf("%v, want 3 to wait", got)
					}
				}
			})
		})
	}
}
