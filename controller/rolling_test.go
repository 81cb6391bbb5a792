package controller_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/pkg/config"
	"github.com/skalds-go/skalds/pkg/task"
)

// terminated stops a node with so many tasks at work, as SIGTERM does, in a cluster of three. What did not end within
// the soft time is given back by name, starts elsewhere within a second of it, counts for nothing, and ends there.
func terminated(t *testing.T, running int, soft time.Duration) {
	t.Helper()
	inBubble(t, func(s *system) {
		s.classes = map[string]func(context.Context) error{"nap": nap(5 * time.Minute)}
		roomy := func(c *node.Config) { c.Capacity, c.Prefetch, c.DrainSoft = running, 0, soft }
		n1 := s.cluster(2, 1, roomy)[0]
		ids := s.submit("nap", running, "t")
		s.within(5*time.Second, "all run", s.all(task.Running, running))
		s.node("n2", roomy)
		s.node("n3", roomy)
		s.joined(3)
		began := s.clock.Now()
		n1.stop()
		if took := s.clock.Now().Sub(began); took > soft+time.Second {
			t.Errorf("the stop took %v", took)
		}
		s.within(time.Second, "all run elsewhere", s.all(task.Running, running))
		for _, id := range ids {
			got := s.get(id)
			if got.LifecycleStatus != task.Running || got.Executor == "n1" || got.Attempt != 2 || got.Failures != 0 ||
				len(got.Attempts) != 1 || got.Attempts[0].Outcome != string(task.ReportReleased) {
				t.Errorf("%+v", got)
			}
			if late := got.StartDateTime - began.Add(soft).UnixMilli(); late < 0 || late > 1000 {
				t.Errorf("%s started %d ms after the end of the soft time", id, late)
			}
		}
		pass(5 * time.Minute)
		s.within(time.Second, "all are finished", s.all(task.Finished, running))
	})
}

// TestC08_ATerminatedNodesTasksStartElsewhereAtOnce: 90 at work, two seconds of grace.
func TestC08_ATerminatedNodesTasksStartElsewhereAtOnce(t *testing.T) {
	t.Parallel()
	terminated(t, 90, 2*time.Second)
}

// TestS15_TerminatingANodeCancelsNothing: 20 at work, and the defaults.
func TestS15_TerminatingANodeCancelsNothing(t *testing.T) {
	t.Parallel()
	terminated(t, 20, 30*time.Second)
}

// TestC90_RollingRestartsCostNoAttempt: five times each node, and after each turn the leading controller, is restarted
// under full load. Tasks that may be tried once only are interrupted, and all end well.
func TestC90_RollingRestartsCostNoAttempt(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		const soft, hard = 2 * time.Second, 2 * time.Second
		s.classes = map[string]func(context.Context) error{"job": nap(5 * time.Second)}
		strict := func(c *config.Controller) { c.MaxAttempts = 1 }
		rolls := func(c *node.Config) { c.Capacity, c.Prefetch, c.DrainSoft, c.DrainHard = 10, 10, soft, hard }
		controllers := []func(){s.controller(strict), s.controller(strict)}
		nodes := s.cluster(0, 3, rolls)
		ids := s.submit("job", 500, "t")
		s.within(time.Second, "all nodes are at work", s.all(task.Running, 30))
		for range 5 {
			for i := range nodes {
				began := time.Now()
				nodes[i].stop()
				if took := time.Since(began); took > soft+hard {
					t.Errorf("n%d took %v to stop", i+1, took)
				}
				nodes[i] = s.node(fmt.Sprint("n", i+1), rolls)
				s.within(3*time.Second, "it is at work again", s.all(task.Running, 30))
			}
			controllers[0]()
			controllers = append(controllers[1:], s.controller(strict))
		}
		if n := s.counts()[task.Created]; n < 30 {
			t.Fatalf("%d tasks were left: that was no full load", n)
		}
		s.within(5*time.Minute, "all are finished", s.all(task.Finished, len(ids)))
		interrupted := 0
		for _, id := range ids {
			got := s.get(id)
			last := len(got.Attempts) - 1
			if got.Failures != 0 || got.Crashes != 0 || slices.ContainsFunc(got.Attempts[:last], func(r task.Run) bool {
				return r.Outcome != string(task.ReportReleased) && r.Outcome != "left" // it came when the node did not read any more
			}) {
				t.Errorf("%+v", got)
			}
			interrupted += s.runs[id] - 1
		}
		if interrupted < 15 {
			t.Errorf("only %d runs were interrupted", interrupted)
		}
	})
}
