package controller_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/skalds-go/skalds/controller"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

// These tests let nothing happen, and see that nothing does.

// slowSnapshots is a registry that takes its time to say which nodes there are.
type slowSnapshots struct {
	registry.Registry
	late time.Duration
}

func (r *slowSnapshots) Snapshot(ctx context.Context) (registry.Snapshot, error) {
	pass(r.late)
	return r.Registry.Snapshot(ctx)
}

// TestC49_ANewLeaderKnowsTheNodesBeforeItJudges: controllers are restarted while tasks wait, and the registry is slow.
// Not once may a leader say that there is no node for them.
func TestC49_ANewLeaderKnowsTheNodesBeforeItJudges(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		start := func() (stop func()) {
			return s.controllerWith(func(d *controller.Deps) { d.Registry = &slowSnapshots{s.registry, 700 * time.Millisecond} })
		}
		stops := []func(){start(), start()}
		s.cluster(0, 3)
		led := 0
		for i := range 5 {
			for _, stop := range stops {
				stop()
			}
			s.submit("work", 50, fmt.Sprint("t", i)) // nobody is there to be told
			stops = []func(){start(), start()}
			for range 80 { // 4 s
				pass(50 * time.Millisecond)
				for _, answer := range s.ask("/api/system/dispatcher") {
					var d client.Dispatcher
					if err := json.Unmarshal([]byte(answer), &d); err != nil {
						t.Fatal(err)
					}
					if d.IsLeader {
						led++
					}
					for reason, n := range d.Waiting {
						if strings.HasPrefix(reason, "NO_") && n > 0 {
							t.Fatalf("restart %d: the leader says %s of %d tasks", i, reason, n)
						}
					}
				}
			}
			s.within(time.Second, "all are finished", s.all(task.Finished, 50*(i+1)))
		}
		if led == 0 {
			t.Error("no leader was asked")
		}
	})
}

// TestS2_ARunningTaskIsNoError: 100 rounds of every loop with one task at work.
func TestS2_ARunningTaskIsNoError(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		log := &noted{}
		s.log = slog.New(log)
		s.cluster(2, 3)
		ids := s.submit("wait", 1, "t")
		s.within(time.Second, "it runs", s.all(task.Running, 1))
		before := len(log.all())
		pass(100 * 5 * time.Second) // MONITOR_TASK_INTERVAL is the longest of them
		if lines := log.all()[before:]; len(lines) > 0 {
			t.Errorf("logged: %q", lines)
		}
		s.stay(ids)
	})
}

// TestS9_HealthyTasksAreLeftAlone: for an hour, at the defaults. The case has 10,000 tasks; as many pass, too, but take
// a minute of computing.
func TestS9_HealthyTasksAreLeftAlone(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		const n = 150
		s.classes = map[string]func(context.Context) error{"nap": nap(time.Hour)}
		s.cluster(2, 3, func(c *node.Config) { c.Capacity, c.Prefetch = n/3, 0 })
		ids := s.submit("nap", n, "t")
		s.within(5*time.Second, "all run", s.all(task.Running, n))
		pass(time.Hour)
		s.within(time.Second, "all are finished", s.all(task.Finished, n))
		s.firsts(ids)
	})
}
