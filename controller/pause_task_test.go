package controller_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestAPausedTaskGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.steered()
		s.cluster(1, 1, small)
		s.states()
		for _, id := range []string{"block-queued", "steps", "waits"} {
			s.wish(id, task.Pause)
		}
		s.wish("block-runs", task.Pause) // its handler never looks
		s.within(time.Second, "they are paused", s.all(task.Paused, 5))
		if got := s.get("block-queued"); got.Executor != "" || s.runs[got.ID] != 0 {
			t.Errorf("what had not started was not given back: %+v", got)
		}
		pass(time.Minute)
		if got := s.get("block-runs"); got.LifecycleStatus != task.Running || got.Desired != task.DesiredPaused {
			t.Errorf("%+v", got)
		}
		for _, id := range []string{"steps", "paused", "block-runs", "held back"} {
			s.wish(id, task.Resume)
		}
		s.within(time.Second, "they run again", s.all(task.Running, 3))
		for id, want := range map[string]int{"steps": 1, "paused": 1, "block-runs": 1, "block-queued": 0} {
			if got := s.get(id); s.runs[id] != want || got.Desired != "" || got.Attempt != 1 {
				t.Errorf("%s was run %d times: %+v", id, s.runs[id], got)
			}
		}
		if got := s.get("held back"); got.LifecycleStatus != task.Created {
			t.Errorf("%+v", got)
		}
		s.wish("block-runs", task.Cancel)
		s.wish("block-queued", task.Resume)
		s.within(time.Second, "it runs, too", s.status("block-queued", task.Running))
	})
}

func TestAPausedTaskOfANodeThatGoesWaitsForAPerson(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		leave  func(n member)
		within time.Duration
	}{
		"it dies":  {func(n member) { n.cut() }, 12 * time.Second},
		"it stops": {func(n member) { go n.stop() }, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(s *system) {
				s.steered()
				n := s.cluster(1, 1, small)[0]
				s.add(task.Task{ID: "paused", ClassName: "steps"})
				s.add(task.Task{ID: "block-wished", ClassName: "block"})
				s.within(time.Second, "both run", s.all(task.Running, 2))
				s.wish("paused", task.Pause)
				s.wish("block-wished", task.Pause)
				s.within(time.Second, "it is paused", s.all(task.Paused, 1))
				tt.leave(n)
				s.node("n2", small)
				free := func(id string) func() bool {
					return func() bool { got := s.get(id); return got.LifecycleStatus == task.Paused && got.Executor == "" }
				}
				s.within(tt.within, "nobody holds it", free("paused"))
				s.within(time.Minute, "nobody holds the other", free("block-wished"))
				pass(time.Minute)
				if got := s.get("paused"); got.LifecycleStatus != task.Paused || s.runs["paused"] != 1 || s.runs["block-wished"] != 1 {
					t.Errorf("%d runs: %+v", s.runs["paused"], got)
				}
				s.wish("paused", task.Resume)
				s.within(time.Second, "it runs elsewhere", s.status("paused", task.Running))
				if got := s.get("paused"); got.Executor != "n2" || got.Failures != 0 || got.Attempt != 2 {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}

// TestC95_PauseAndResumeOfMany: 100 run, 20 wait at their nodes, 1,000 wait.
func TestC95_PauseAndResumeOfMany(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.steered()
		stop := s.controller()
		var nodes []member
		for i := range 10 {
			nodes = append(nodes, s.node(fmt.Sprint("n", i), func(c *node.Config) { c.Capacity, c.Prefetch = 10, 2 }))
		}
		s.joined(10)
		s.submit("block", 20, "short")
		s.within(time.Second, "the short ones are finished", s.all(task.Finished, 20))
		ids := s.submit("block", 1120, "block")
		s.within(5*time.Second, "all slots are taken", func() bool {
			c := s.counts()
			return c[task.Running] == 100 && c[task.Assigning] == 20
		})
		for _, id := range ids {
			s.wish(id, task.Pause)
		}
		started := len(s.runs)
		s.within(2*time.Second, "those that had not started are held back", s.all(task.Paused, 1020))
		pass(time.Minute)
		if len(s.runs) != started || s.counts()[task.Running] != 100 {
			t.Errorf("%d were started after the pause; %v", len(s.runs)-started, s.counts())
		}
		for _, id := range ids {
			s.wish(id, task.Resume)
		}
		var first []string // in the order in which they run
		for _, id := range ids[:200] {
			if s.get(id).LifecycleStatus == task.Running {
				s.wish(id, task.Cancel)
				first = append(first, id)
			}
		}
		s.within(5*time.Second, "the next run", func() bool { return s.counts()[task.Running] == 100 })
		if len(first) < 100 {
			t.Fatalf("%d ran", len(first))
		}
		for _, id := range ids[100:120] {
			if got := s.get(id); got.LifecycleStatus == task.Created {
				t.Errorf("%s waits though younger ones run", id)
			}
		}
		stop()
		for _, n := range nodes {
			go n.stop()
		}
	})
}
