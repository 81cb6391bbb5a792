package controller_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// nap is a handler that takes its time, and ends with its context.
func nap(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(d):
			return nil
		}
	}
}

// TestC04_RunningTasksWithoutALeaseAreKeptOrRunAgain: what the registry knows of the nodes that run 50 tasks is
// deleted. A node that lives keeps its tasks; those of one that died with it run again; none is orphaned.
func TestC04_RunningTasksWithoutALeaseAreKeptOrRunAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lose func(s *system, nodes []member)
		dead string
	}{
		"the keys of all nodes": {lose: func(s *system, _ []member) {
			for _, id := range []string{"n1", "n2", "n3"} {
				if err := s.registry.Leave(s.t.Context(), id, s.theNode(id).Incarnation); err != nil {
					s.t.Fatal(err)
				}
			}
		}},
		"everything":                 {lose: func(s *system, _ []member) { s.registry.Empty() }},
		"everything, and the server": {lose: func(s *system, _ []member) { s.registry.Restart(); s.registry.Empty() }},
		"the key of a node that dies": {dead: "n2", lose: func(s *system, nodes []member) {
			nodes[1].cut()
			if err := s.registry.Leave(s.t.Context(), "n2", s.theNode("n2").Incarnation); err != nil {
				s.t.Fatal(err)
			}
		}},
		"everything, and a node dies": {dead: "n2", lose: func(s *system, nodes []member) { nodes[1].cut(); s.registry.Empty() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(s *system) {
				s.classes = map[string]func(context.Context) error{"nap": nap(2 * time.Minute)}
				nodes := s.cluster(2, 3, func(c *node.Config) { c.Capacity, c.Prefetch = 50, 0 })
				ids := s.submit("nap", 50, "t")
				s.within(5*time.Second, "all run", s.all(task.Running, 50))
				at := make(map[string]string)
				for _, id := range ids {
					at[id] = s.get(id).Executor
				}
				c.lose(s, nodes)
				pass(15 * time.Second)
				if n := s.counts()[task.Running]; n != 50 {
					t.Errorf("%d of 50 run after 15 s", n)
				}
				pass(2 * time.Minute)
				s.within(time.Second, "all are finished", s.all(task.Finished, 50))
				for _, id := range ids {
					want := 1
					if at[id] == c.dead {
						want = 2
					}
					if got := s.get(id); s.runs[id] != want || got.Attempt != int64(want) || got.Failures != 0 || want == 2 && got.Executor == c.dead {
						t.Errorf("%s, which was on %s, ran %d times, want %d: %+v", id, at[id], s.runs[id], want, got)
					}
				}
			})
		})
	}
}

// TestC06_TasksOfVanishedNodesAreCleared: 5,000 tasks are Running at nodes that nobody has heard of, as after a long
// outage of everything.
func TestC06_TasksOfVanishedNodesAreCleared(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		const n = 5000
		classes := []string{"work", "wait", "nobody", "knows", "these"}
		for from := 0; from < n; from += store.MaxBatch {
			var page []task.Task
			for i := from; i < from+store.MaxBatch; i++ {
				page = append(page, task.Task{ID: fmt.Sprintf("t%04d", i), ClassName: classes[i%len(classes)], Mode: task.ModePassive, Priority: i % 11,
					LifecycleStatus: task.Running, Executor: fmt.Sprint("gone", i%50), Incarnation: "of old", Attempt: 1, ClaimID: fmt.Sprint("claim", i)})
			}
			if _, err := s.store.Create(t.Context(), page); err != nil {
				t.Fatal(err)
			}
		}
		stuck := func(count int) bool {
			return strings.Contains(s.ask("/metrics")[0], fmt.Sprintf("\nskalds_stuck_tasks %d\n", count))
		}
		began := time.Now()
		s.controller()
		s.node("n1", func(c *node.Config) { c.Capacity = n })
		s.joined(1)
		pass(5 * time.Second)
		if !stuck(n) {
			t.Error("the metric does not show them, so that no alert is raised")
		}
		for !stuck(0) && time.Since(began) < 10*time.Second {
			pass(250 * time.Millisecond)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("they were not cleared within %s", took)
		}
		synctest.Wait()
		for i := range n {
			got := s.get(fmt.Sprintf("t%04d", i))
			want := map[string]task.Status{"work": task.Finished, "wait": task.Running}[got.ClassName]
			if want == "" {
				want = task.Created // no node knows its class
			}
			if got.LifecycleStatus != want || got.Incarnation == "of old" || got.Failures != 0 || got.Attempts[0].Outcome != "lost" {
				t.Fatalf("%+v", got)
			}
		}
	})
}
