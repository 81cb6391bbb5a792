package controller_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/pkg/task"
)

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

// TestC88_NoWayToANodeLosesACancel: there is one transport today, Kafka; this is its suite in all that may become of
// what is sent that way.
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
