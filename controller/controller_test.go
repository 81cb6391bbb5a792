package controller_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/pkg/config"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestS1_OneLiveNodeGetsItsTaskWithinASecond(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.cluster(1, 1)
		pass(3 * time.Second)
		id := s.submit("work", 1, "t")[0]
		s.within(time.Second, "the task is finished", s.all(task.Finished, 1))
		if got := s.get(id); got.Executor != "n1" || got.Attempt != 1 || string(got.Result) != `"n1"` || got.StartDateTime == 0 || got.FinishDateTime == 0 {
			t.Errorf("task %+v", got)
		}
	})
}

// The latency goal, without a stopwatch: in fake time nothing passes between submit and end unless somebody waits for a
// timer.
func TestS12_NothingOnATasksWayWaitsForATimer(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.cluster(1, 1)
		for i := range 20 {
			pass(time.Duration(1000+i*137) * time.Millisecond) // whatever the phase of the loops
			s.submit("work", 1, fmt.Sprint("t", i))
			synctest.Wait()
			got := s.get(fmt.Sprintf("t%d-00000", i))
			if now := s.clock.Now().UnixMilli(); got.LifecycleStatus != task.Finished || got.StartDateTime != now || got.CreateDateTime != now {
				t.Fatalf("task %d is %s: created %d, started %d, now %d", i, got.LifecycleStatus, got.CreateDateTime, got.StartDateTime, now)
			}
		}
	})
}

func TestATaskWaitsForItsNodeAndStartsWhenItJoins(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.controller()
		s.submit("work", 3, "t")
		pass(20 * time.Second)
		s.node("n1")
		s.within(time.Second, "the tasks are finished", s.all(task.Finished, 3))
	})
}

func TestS14_EachOfAThousandTasksRunsExactlyOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.cluster(1, 1)
		ids := s.submit("work", 1000, "t")
		s.within(10*time.Second, "all finished", s.all(task.Finished, 1000))
		s.once(ids)
	})
}

func TestS7_ANodeNeverHasMoreThanItsCapacity(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.cluster(1, 1, func(c *node.Config) { c.Capacity = 5 })
		s.submit("wait", 20, "t")
		for range 30 {
			pass(time.Second)
			if c := s.counts(); c[task.Running]+c[task.Assigning] > 5 {
				t.Fatalf("%v on a node of capacity 5", c)
			}
		}
		if c := s.counts(); c[task.Running] != 5 || c[task.Created] != 15 {
			t.Errorf("%v, want 5 running and the rest waiting: long tasks are not queued at a node", c)
		}
	})
}

func TestC42_EachTaskRunsOnOneOfThreeNodes(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.cluster(1, 3)
		ids := s.submit("work", 1000, "t")
		s.within(10*time.Second, "all finished", s.all(task.Finished, 1000))
		s.once(ids)
	})
}

func TestTheWorkOfADeadNodeRunsElsewhere(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		n1 := s.cluster(1, 1)[0]
		ids := s.submit("wait", 10, "t")
		s.within(time.Second, "all run", s.all(task.Running, 10))
		s.node("n2")
		s.joined(2)
		n1.cut()
		cutAt := time.Now()
		// The old runs end by the node's own trust, after 7 s at most; the leader gives the tasks away after 8.8 s at
		// least.
		s.within(12*time.Second, "all run on the other node", func() bool {
			for _, id := range ids {
				if got := s.get(id); got.Executor != "n2" || got.LifecycleStatus != task.Running {
					return false
				}
			}
			return true
		})
		if took := time.Since(cutAt); took < 7*time.Second {
			t.Errorf("given away after %s, before the node had stopped by its trust", took)
		}
		for _, id := range ids {
			if got := s.get(id); got.Attempt != 2 || got.Failures != 0 {
				t.Errorf("%s: attempt %d, %d failures; want a second attempt and nothing counted", id, got.Attempt, got.Failures)
			}
		}
	})
}

func TestC65_ADeadNodeGetsNothingAfterItsTimeout(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.controller(func(c *config.Controller) { c.DispatcherStrategy = "ROUND_ROBIN" })
		dead := s.node("dead")
		s.node("n2")
		s.node("n3")
		s.joined(3)
		dead.cut()
		pass(5 * time.Second) // three heartbeats are missing, as the leader sees it: it looks once a second
		before := s.eventsFor("dead")
		s.submit("work", 300, "t")
		s.within(5*time.Second, "all finished", s.all(task.Finished, 300))
		if n := s.eventsFor("dead") - before; n > 1 {
			t.Errorf("%d events were sent to the dead node after its timeout", n)
		}
	})
}

// eventsFor counts the assignments that were published for a node.
func (s *system) eventsFor(id string) int {
	n := 0
	for _, r := range s.bus.Records(events.TopicAssign) {
		if a, err := events.DecodeAssign(r.Value); err == nil && string(a.Recipient) == id && len(a.Tasks) > 0 {
			n++
		}
	}
	return n
}

func TestS8_NoAssignmentIsLostWhileANodeRestarts50Times(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.controller()
		s.node("steady", func(c *node.Config) { c.Capacity = 2 })
		total := 0
		for i := range 50 {
			n := s.node("restarts")
			total += len(s.submit("work", 40, fmt.Sprint("r", i)))
			pass(time.Duration(i*13%90) * time.Millisecond)
			n.stop()
		}
		s.within(30*time.Second, "all finished", s.all(task.Finished, total))
	})
}

func TestS8_NoAssignmentIsLostWhenANodeDiesOverAndOver(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.controller()
		total := 0
		for i := range 10 {
			n := s.node(fmt.Sprint("n", i))
			total += len(s.submit("work", 200, fmt.Sprint("r", i)))
			pass(time.Duration(i*7%23) * time.Millisecond)
			n.cut()
			s.wg.Go(func() { pass(10 * time.Second); n.stop() })
		}
		s.node("last")
		s.within(time.Minute, "all finished", s.all(task.Finished, total))
	})
}

func TestCancelOfARunningTask(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.cluster(1, 1)
		id := s.submit("wait", 1, "t")[0]
		s.within(time.Second, "it runs", s.all(task.Running, 1))
		got := s.get(id)
		c, _ := task.Cancel(&got, 1)
		if k, err := s.store.Apply(t.Context(), []task.Change{c}); k != 1 || err != nil {
			t.Fatal(k, err)
		}
		s.notice()
		s.within(time.Second, "it is cancelled", s.all(task.Cancelled, 1))
		s.submit("work", 1, "after")
		s.within(time.Second, "its slot is free", s.all(task.Finished, 1))
	})
}

func TestAnotherControllerTakesOver(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		one := s.controller()
		n := s.node("n1")
		s.joined(1)
		pass(time.Second)
		// The one that dies is a controller whose store has gone away for it alone.
		gone := &leaving{Store: s.store}
		one()
		two := s.controllerOn(gone)
		s.submit("work", 100, "before")
		s.within(3*time.Second, "the second one leads", s.all(task.Finished, 100))
		three := s.controller()
		gone.leave()
		s.submit("work", 100, "after")
		s.within(4*time.Second, "the third one leads", s.all(task.Finished, 200))
		n.stop()
		two()
		three()
	})
}

func TestAMonitorGivesWayToADispatcher(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		monitor := s.controller(func(c *config.Controller) { c.Mode = config.ModeMonitor })
		api := s.controller(func(c *config.Controller) { c.Mode = config.ModeController })
		n := s.node("n1")
		s.joined(1)
		s.submit("work", 5, "t")
		pass(10 * time.Second)
		if got := s.counts()[task.Created]; got != 5 {
			t.Fatalf("%d tasks wait, want all: nobody dispatches", got)
		}
		dispatcher := s.controller()
		s.within(3*time.Second, "all finished", s.all(task.Finished, 5))
		n.stop()
		for _, stop := range []func(){monitor, api, dispatcher} {
			stop()
		}
	})
}

func TestRedisAwayForAWhileMovesNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.cluster(1, 1)
		id := s.submit("wait", 1, "t")[0]
		s.within(time.Second, "it runs", s.all(task.Running, 1))
		s.registry.SetDown(true)
		pass(5 * time.Second)
		s.registry.SetDown(false)
		pass(20 * time.Second)
		if got := s.get(id); got.LifecycleStatus != task.Running || got.Attempt != 1 {
			t.Errorf("%+v", got)
		}
		s.registry.Empty() // and emptied
		pass(20 * time.Second)
		if got := s.get(id); got.LifecycleStatus != task.Running || got.Attempt != 1 {
			t.Errorf("%+v", got)
		}
	})
}

func TestSettingsReachTheLeaderFromAnyController(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.controller()
		s.node("n1", func(c *node.Config) { c.Capacity = 1 })
		s.node("n2", func(c *node.Config) { c.Capacity = 100 })
		s.joined(2)
		if ok, err := s.store.SwapDispatcher(t.Context(), store.Dispatcher{Strategy: "ROUND_ROBIN"}); err != nil || !ok {
			t.Fatal(err)
		}
		pass(2 * time.Second)
		for i := range 20 { // one at a time: LEAST_TASKS would take turns as well, by load; ROUND_ROBIN counts
			s.submit("work", 1, fmt.Sprint("t", i))
			s.within(time.Second, "finished", s.all(task.Finished, i+1))
		}
		per := map[string]int{}
		for i := range 20 {
			per[s.get(fmt.Sprintf("t%d-00000", i)).Executor]++
		}
		if per["n1"] != 10 || per["n2"] != 10 {
			t.Errorf("%v, want 10 each", per)
		}
	})
}
