package controller_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/config"
	"github.com/skalds-go/skalds/pkg/task"
)

// What limits hold of whole clusters, over stops and kills of the leader. The dispatcher's own tests stand in its
// package.

func roundRobin(c *config.Controller) { c.DispatcherStrategy = "ROUND_ROBIN" }

// perNode says how many handlers each node has started.
func (s *system) perNode() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	per := make(map[string]int)
	for _, on := range s.on {
		for _, n := range on {
			per[n]++
		}
	}
	return per
}

// TestC63_RoundRobinIsExactOverAChangeOfLeader: two controllers, three nodes, 3,000 tasks, and the leader stops in the
// middle. With one that is killed instead, the count may be wrong by what was on its way at that moment.
func TestC63_RoundRobinIsExactOverAChangeOfLeader(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]bool{"stopped": false, "killed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(s *system) {
				s.classes = map[string]func(context.Context) error{"nap": nap(200 * time.Millisecond)}
				end := s.controller
				if kill {
					end = s.mortal
				}
				first := end(roundRobin)
				pass(time.Second)
				s.controller(roundRobin)
				s.cluster(0, 3, func(c *node.Config) { c.Capacity, c.Prefetch = 50, 0 })
				ids := s.submit("nap", 3000, "t")
				s.within(time.Minute, "half are finished", func() bool { return s.counts()[task.Finished] >= 1500 })
				off := 1
				if kill {
					off += int(s.counts()[task.Assigning] + s.counts()[task.Running])
				}
				first()
				if left := s.counts()[task.Created]; left < 1000 {
					t.Fatalf("only %d are left: that was not in the middle", left)
				}
				s.within(time.Minute, "all are finished", s.all(task.Finished, 3000))
				s.once(ids)
				for _, id := range []string{"n1", "n2", "n3"} {
					if got := s.perNode()[id]; got < 1000-off || got > 1000+off {
						t.Errorf("%v, want 1000 +- %d each", s.perNode(), off)
					}
				}
				t.Log(s.perNode())
			})
		})
	}
}

// TestC75_NothingThatRunsIsTakenAwayForAnother: there is no preemption, so nothing can preempt in a loop. While limits,
// priorities and what there is of each namespace change all the time, each task runs once, in its first attempt.
func TestC75_NothingThatRunsIsTakenAwayForAnother(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.classes = map[string]func(context.Context) error{"job": nap(2 * time.Second)}
		s.controller(func(c *config.Controller) { c.DispatcherPriorityMode = config.PriorityWeighted })
		s.cluster(1, 3, func(c *node.Config) { c.Capacity, c.Prefetch = 4, 0 })
		var ids []string
		for i := range 40 {
			ids = append(ids, s.shared("job", 6, fmt.Sprint("t", i), func(j int, t *task.Task) {
				t.Namespace, t.Priority = string(rune('a'+(i+j)%3)), (7*i+j)%11
			})...)
			if err := s.client(i%2).SetTaskLimit(s.t.Context(), client.LimitNamespace, string(rune('a'+i%3)), 1+5*(i%2)); err != nil {
				t.Fatal(err)
			}
			pass(500 * time.Millisecond)
		}
		s.within(5*time.Minute, "all are finished", s.all(task.Finished, len(ids)))
		s.firsts(ids)
	})
}

// TestC94_AStampedeKeepsTheRateAndTheCapacity: 10,000 tasks at once, at 1,000 a second.
func TestC94_AStampedeKeepsTheRateAndTheCapacity(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		const perSecond, burst, capacity, tasks = 1000, 50, 60, 10_000
		log := newRunLog()
		work := nap(100 * time.Millisecond)
		s.classes = map[string]func(context.Context) error{"job": func(ctx context.Context) error {
			s.mu.Lock()
			on := s.on[node.TaskFrom(ctx).ID][0]
			s.mu.Unlock()
			log.begin(on)
			defer log.end(on)
			return work(ctx)
		}}
		s.cluster(2, 3, func(c *node.Config) { c.Capacity = capacity })
		if err := s.client(0).SetRate(s.t.Context(), client.LimitRate, "", client.Rate{PerSecond: perSecond, Burst: burst}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		ids := s.submit("job", tasks, "t")
		began := s.clock.Now()
		took := s.within(time.Minute, "all are finished", s.all(task.Finished, tasks))
		s.once(ids)
		for on, most := range log.most {
			if most > capacity {
				t.Errorf("%d at once on %s", most, on)
			}
		}
		per := make(map[int64]int) // by tenth of a second
		for _, id := range ids {
			per[(s.get(id).AssignedDateTime-began.UnixMilli())/100]++
		}
		sum := 0
		for tenth := range int64(len(per)) {
			if sum += per[tenth]; sum > burst+int(tenth+1)*perSecond/10+1 {
				t.Fatalf("%d were dispatched in %d ms", sum, 100*(tenth+1))
			}
		}
		if want := float64(tasks-burst) / perSecond; math.Abs(took.Seconds()-want) > want/10 {
			t.Errorf("it took %v, want %v s", took, want)
		}
	})
}
