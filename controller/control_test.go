package controller_test

import (
	"context"
	"encoding/json"
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

// wish stores what a person asks of a task, as the API does, and tells the leader. It reports false if it cannot be
// asked any more.
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

// steered has nodes know two more classes: steps makes a step every 100 ms and rests where it is asked to; block ends
// at once, unless the task's id says so.
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
