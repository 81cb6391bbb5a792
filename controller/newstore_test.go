package controller_test

import (
	"testing"
	"time"

	"github.com/skalds-go/skalds/pkg/store/memory"
	"github.com/skalds-go/skalds/pkg/task"
)

// TestNodesThatLiveOnWorkForALeaderOfANewStore: the store is gone, with the terms in it, and what nodes hold of it; as
// after a restart of a controller that keeps its tasks in memory, or of a database that was dropped.
func TestNodesThatLiveOnWorkForALeaderOfANewStore(t *testing.T) {
	t.Parallel()
	for name, clean := range map[string]bool{"the old leader has stopped": true, "the old leader lives on": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(s *system) {
				first := s.controller()
				s.node("n1")
				s.joined(1)
				first()
				stop := s.controller() // the second term of this store
				old := s.submit("wait", 3, "old")
				s.within(5*time.Second, "the old ones run", s.all(task.Running, 3))
				pass(3 * time.Second) // two terms take two seconds
				if clean {
					stop()
				}
				gone := s.store
				s.store = memory.New()
				s.controller()
				s.within(10*time.Second, "somebody leads on the new store", func() bool {
					doc, err := s.store.Leader(t.Context())
					return err == nil && doc.Holder != ""
				})
				s.submit("work", 3, "new")
				s.within(10*time.Second, "the new ones are finished", s.all(task.Finished, 3))
				s.within(time.Minute, "the runs that no store knows have ended", func() bool {
					s.mu.Lock()
					defer s.mu.Unlock()
					return s.atWork[old[0]]+s.atWork[old[1]]+s.atWork[old[2]] == 0
				})
				before, err := gone.Leader(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if now, err := s.store.Leader(t.Context()); err != nil || now.Term <= before.Term {
					t.Errorf("term %d follows on %d, %v", now.Term, before.Term, err)
				}
			})
		})
	}
}
