package controller_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/pkg/task"
)

// wish stores what a person asks of a task, as the API does, and tells the leader. It reports false if it cannot be asked any more.
func (s *system) wish(id string, wish func(*task.Task, int64) (task.Change, bool)) bool {
	s.t.Helper()
	for {
		t := s.get(id)
		c, ok := wish(&t, s.clock.Now().UnixMilli())
		if !ok {
			return false
		}
		n, err := s.store.Apply(s.t.Context(), []task.Change{c})
		if err != nil {
			s.t.Fatal(err)
		}
		if n == 1 {
			s.notice()
			return true
		}
	}
}

// updated tells the leader of new attachments, as a controller that does not lead does.
func (s *system) updated(id string) {
	s.t.Helper()
	values, err := events.EncodeStatus(events.Status{Notice: events.NoticeSubmitted, Updated: []string{id}}, events.DefaultMaxBytes)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.bus.Publish(s.t.Context(), events.TopicStatus, 0, []kafka.Record{{Key: values[0].Key, Value: values[0].Value}}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *system) status(id string, want task.Status) func() bool {
	return func() bool { return s.get(id).LifecycleStatus == want }
}

// causes are why handlers' contexts ended, by task id.
type causes struct {
	mu sync.Mutex
	by map[string][]error
}

func (c *causes) note(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = make(map[string][]error)
	}
	id := node.TaskFrom(ctx).ID
	c.by[id] = append(c.by[id], context.Cause(ctx))
	return context.Cause(ctx)
}

// steered has nodes know two more classes: steps makes a step every 100 ms and rests where it is asked to; block ends at once, unless the task's
// id says so.
func (s *system) steered() *causes {
	c := &causes{}
	s.classes = map[string]func(context.Context) error{
		"steps": func(ctx context.Context) error {
			for {
				if node.TaskFrom(ctx).WaitWhilePaused(ctx) != nil {
					return c.note(ctx)
				}
				select {
				case <-ctx.Done():
					return c.note(ctx)
				case <-time.After(100 * time.Millisecond):
				}
			}
		},
		"block": func(ctx context.Context) error {
			if !strings.HasPrefix(node.TaskFrom(ctx).ID, "block") {
				return nil
			}
			<-ctx.Done()
			return c.note(ctx)
		},
	}
	return c
}

func small(c *node.Config) { c.Capacity, c.Prefetch = 3, 1 }

// states brings a task into each state that a person may find it in, on the node n1, and gives their ids.
func (s *system) states() []string {
	s.t.Helper()
	s.submit("block", 5, "short")
	s.within(time.Second, "the short ones are finished", s.all(task.Finished, 5))
	s.add(task.Task{ID: "waits", ClassName: "nobody"})
	s.add(task.Task{ID: "later", ClassName: "work", NotBefore: s.clock.Now().Add(30 * time.Second).UnixMilli()})
	s.add(task.Task{ID: "held back", ClassName: "nobody"})
	s.wish("held back", task.Pause)
	s.add(task.Task{ID: "paused", ClassName: "steps"})
	s.within(time.Second, "it runs", s.status("paused", task.Running))
	s.wish("paused", task.Pause)
	s.within(time.Second, "it is paused", s.status("paused", task.Paused))
	s.add(task.Task{ID: "steps", ClassName: "steps"})
	s.add(task.Task{ID: "block-runs", ClassName: "block"})
	s.within(time.Second, "both run", s.all(task.Running, 2))
	s.add(task.Task{ID: "block-queued", ClassName: "block"})
	s.within(time.Second, "one is queued", s.all(task.Assigning, 1))
	return []string{"waits", "later", "held back", "paused", "steps", "block-runs", "block-queued"}
}

// fate is what becomes of the node that holds the tasks which are cancelled, and how soon they are then.
type fate struct {
	name   string
	happen func(n member)
	within time.Duration
}

var fates = []fate{
	{"node up", func(member) {}, time.Second},
	{"C85: node dead", func(n member) { n.cut(); pass(100 * time.Millisecond) }, 12 * time.Second},
	{"node restarting", func(n member) { go n.stop() }, 3 * time.Second},
}

// cancelled cancels a task in each state while the fate befalls its node, and bend the way to it.
func cancelled(t *testing.T, f fate, bend func(s *system)) {
	t.Helper()
	inBubble(t, func(s *system) {
		ended := s.steered()
		n := s.cluster(1, 1, small)[0]
		ids := s.states()
		bend(s)
		f.happen(n)
		for _, id := range ids {
			s.wish(id, task.Cancel)
		}
		next := "n2"
		if f.name == "node restarting" {
			next = "n1"
		}
		s.node(next)
		s.within(f.within, "all are cancelled", s.all(task.Cancelled, len(ids)))
		pass(time.Minute)
		for id, want := range map[string]int{"waits": 0, "later": 0, "held back": 0, "paused": 1, "steps": 1, "block-runs": 1, "block-queued": 0} {
			if s.runs[id] != want {
				t.Errorf("%s was run %d times, want %d", id, s.runs[id], want)
			}
		}
		for _, id := range []string{"paused", "steps", "block-runs"} {
			if got := ended.by[id]; len(got) != 1 || f.name == "node up" && !errors.Is(got[0], node.ErrCancelled) {
				t.Errorf("the context of %s ended with %v", id, got)
			}
		}
	})
}

// TestC84_ACancelWorksInEveryState: and whatever becomes of the node.
func TestC84_ACancelWorksInEveryState(t *testing.T) {
	t.Parallel()
	for _, f := range fates {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			cancelled(t, f, func(*system) {})
		})
	}
}

// TestC88_NoWayToANodeLosesACancel: there is one transport today, Kafka; this is its suite in all that may become of what is sent that way.
func TestC88_NoWayToANodeLosesACancel(t *testing.T) {
	t.Parallel()
	// first does something else with the first copies of each command.
	first := func(s *system, copies int, do func() (written bool, err error)) {
		var mu sync.Mutex
		seen := make(map[string]int)
		s.bus.Fail(func(_ context.Context, topic string, _ int, records []kafka.Record) (bool, error) {
			c, err := events.DecodeControl(records[0].Value)
			if topic != events.TopicControl || err != nil || len(c.Commands) == 0 {
				return true, nil
			}
			mu.Lock()
			defer mu.Unlock()
			for _, command := range c.Commands {
				if seen[command.ClaimID]++; seen[command.ClaimID] > copies {
					return true, nil
				}
			}
			return do()
		})
	}
	for name, bend := range map[string]func(s *system){
		"all arrives": func(*system) {},
		"the first is acknowledged, and lost": func(s *system) {
			first(s, 1, func() (bool, error) { return false, nil })
		},
		"the first three fail": func(s *system) {
			first(s, 3, func() (bool, error) { return false, fmt.Errorf("%w: no leader", kafka.ErrNotSent) })
		},
		"the first arrives, and the answer is lost": func(s *system) {
			first(s, 1, func() (bool, error) { return true, errCut })
		},
	} {
		for _, f := range fates {
			t.Run(name+", "+f.name, func(t *testing.T) {
				t.Parallel()
				f.within += 4 * time.Second // wishes are looked at again each second
				cancelled(t, f, bend)
			})
		}
	}
	t.Run("the node has lost Redis", func(t *testing.T) {
		t.Parallel()
		cancelled(t, fates[0], func(s *system) {
			s.registry.SetDown(true)
			pass(15 * time.Second)
		})
	})
}

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

func TestAnUndoneCancelIsNotCarriedOut(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.steered()
		s.node("n1", small)
		stop := s.controller()
		s.joined(1)
		s.add(task.Task{ID: "steps", ClassName: "steps"})
		s.within(time.Second, "it runs", s.all(task.Running, 1))
		stop() // nobody passes it on meanwhile
		s.wish("steps", task.Cancel)
		if !s.wish("steps", task.Resume) {
			t.Fatal("it cannot be undone")
		}
		s.controller()
		pass(time.Minute)
		if got := s.get("steps"); got.LifecycleStatus != task.Running || s.runs["steps"] != 1 || got.Desired != "" {
			t.Errorf("%d runs: %+v", s.runs["steps"], got)
		}
		s.wish("steps", task.Cancel)
		s.within(time.Second, "it is cancelled", s.all(task.Cancelled, 1))
		if s.wish("steps", task.Resume) {
			t.Error("a cancel that is carried out can be undone")
		}
	})
}

func TestNewAttachmentsReachTheHandler(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		got := make(chan string, 100)
		s.classes = map[string]func(context.Context) error{"listens": func(ctx context.Context) error {
			for {
				select {
				case in := <-node.TaskFrom(ctx).Updates():
					got <- string(in)
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
		}}
		stop := s.controller()
		s.node("n1")
		s.joined(1)
		s.add(task.Task{ID: "t", ClassName: "listens"})
		s.within(time.Second, "it runs", s.all(task.Running, 1))
		attach := func(text string) {
			s.wish("t", func(t *task.Task, now int64) (task.Change, bool) { return task.Attach(t, json.RawMessage(text), now) })
		}
		attach(`1`)
		attach(`2`)
		s.within(6*time.Second, "it is told of the newest", func() bool { return len(got) > 0 })
		pass(10 * time.Second)
		var all []string
		for len(got) > 0 {
			all = append(all, <-got)
		}
		if !slices.Equal(all, []string{"2"}) {
			t.Errorf("the handler got %v", all)
		}
		// Also from one leader to the next, and told of by another controller.
		attach(`3`)
		stop()
		s.controller()
		s.within(3*time.Second, "the next leader tells it", func() bool { return len(got) > 0 })
		<-got
		attach(`4`)
		s.updated("t")
		if took := s.within(time.Second, "it is told at once", func() bool { return len(got) > 0 }); took > 100*time.Millisecond {
			t.Errorf("it took %s", took)
		}
		synctest.Wait()
	})
}

func TestADrainedNodeFinishesWhatItRunsAndGetsNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.steered()
		stop := s.controller()
		s.node("n1", small)
		s.joined(1)
		s.submit("block", 5, "short")
		s.within(time.Second, "the short ones are finished", s.all(task.Finished, 5))
		s.submit("block", 4, "block")
		s.within(time.Second, "one is queued", func() bool { return s.counts()[task.Assigning] == 1 && s.counts()[task.Running] == 3 })
		drain := func(draining bool) {
			if err := s.store.SetDraining(t.Context(), "n1", draining); err != nil {
				t.Fatal(err)
			}
		}
		drain(true)
		n2 := s.node("n2", small)
		s.within(3*time.Second, "the queued one runs elsewhere", s.all(task.Running, 4))
		s.submit("work", 20, "more")
		s.within(3*time.Second, "more are finished", s.all(task.Finished, 25))
		for i := range 20 {
			if got := s.get(fmt.Sprintf("more-%05d", i)); got.Executor != "n2" {
				t.Errorf("%s ran on %s", got.ID, got.Executor)
			}
		}
		pass(time.Minute)
		if s.counts()[task.Running] != 4 {
			t.Errorf("what ran was ended: %v", s.counts())
		}
		stop()
		s.controller() // another leader obeys, too
		pass(5 * time.Second)
		s.submit("work", 20, "even-more")
		s.within(3*time.Second, "even more are finished", s.all(task.Finished, 45))
		n2.stop()
		pass(3 * time.Second)
		s.submit("work", 1, "last")
		pass(10 * time.Second)
		if got := s.get("last-00000"); got.LifecycleStatus != task.Created {
			t.Errorf("the drained node got %+v", got)
		}
		drain(false)
		for i := range 4 {
			s.wish(fmt.Sprintf("block-%05d", i), task.Cancel)
		}
		s.within(4*time.Second, "it takes work again", s.status("last-00000", task.Finished))
	})
}
