package controller_test

import (
	"testing"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/pkg/task"
)

// Topics that somebody deletes, or that are gone because the brokers came back empty, are made anew, and everything
// goes on without a restart.
func TestTopicsThatAreGoneAreMadeAnew(t *testing.T) {
	t.Parallel()
	all := []string{events.TopicAssign, events.TopicControl, events.TopicStatus, events.TopicQuarantine}
	for name, gone := range map[string][]string{
		"assign": all[:1], "control": all[1:2], "status": all[2:3], "all": all,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(s *system) {
				s.cluster(1, 1)
				long := s.submit("wait", 2, "long")
				s.within(5*time.Second, "they run", s.all(task.Running, 2))
				s.submit("work", 20, "before")
				s.within(5*time.Second, "work is done", s.all(task.Finished, 20))
				for _, topic := range gone {
					s.bus.Delete(topic)
				}
				after := s.submit("work", 20, "after")
				s.within(6*time.Second, "work is done again", s.all(task.Finished, 40)) // the notice may be lost: DISPATCHER_INTERVAL, and a second
				pass(20 * time.Second)                                                  // longer than a node that nobody confirms is kept
				if got := s.bus.Topics(); len(got) != len(all) || got[events.TopicStatus] != partitions {
					t.Errorf("topics %v", got)
				}
				s.once(after)
				for _, id := range long {
					if got := s.get(id); got.LifecycleStatus != task.Running || got.Attempt != 1 {
						t.Errorf("%s is %s of attempt %d", id, got.LifecycleStatus, got.Attempt)
					}
				}
			})
		})
	}
}
