package controller_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// gate holds runs until it is opened, and notes the order in which they began.
type gate struct {
	mu    sync.Mutex
	open  chan struct{}
	began []string
}

func (g *gate) run(ctx context.Context) error {
	g.mu.Lock()
	g.began = append(g.began, node.TaskFrom(ctx).ID)
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// begins gives what has begun since the first n.
func (g *gate) begins(n int) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.began[n:])
}

// let lets all end that are held now.
func (g *gate) let() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.open)
	g.open = make(chan struct{})
}

// TestC95_APausedClassStartsNothingAfterTheCallReturned: 100 run, 50 are with nodes that queue them, and 1,000 wait,
// when a person pauses their class, through the leader or through another controller. What runs ends well, what is
// queued is called back, another class goes on, and with the resume all go on in their order.
func TestC95_APausedClassStartsNothingAfterTheCallReturned(t *testing.T) {
	t.Parallel()
	for name, through := range map[string]int{"through the leader": 0, "through a follower": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(s *system) {
				g := &gate{open: make(chan struct{})}
				s.classes = map[string]func(context.Context) error{"held": g.run}
				s.controller()
				pass(time.Second)
				s.cluster(1, 10, func(c *node.Config) { c.Capacity, c.Prefetch = 10, 5 })
				s.submit("held", 20, "short") // runs are short so far, so nodes may queue
				g.let()
				s.within(time.Second, "the short ones are finished", func() bool { g.let(); return s.counts()[task.Finished] == 20 })
				ids := s.submit("held", 1150, "t")
				s.within(5*time.Second, "100 run and 50 are queued", func() bool {
					c := s.counts()
					return c[task.Running] == 100 && c[task.Assigning] == 50
				})
				var queued []string
				for _, id := range ids {
					if s.get(id).LifecycleStatus == task.Assigning {
						queued = append(queued, id)
					}
				}
				api, held := s.client(through), client.Scope{ClassName: "held"}
				done := make(chan error)
				s.wg.Go(func() { _, err := api.PauseDispatch(s.t.Context(), held); done <- err })
				began := time.Now()
				if through == 0 {
					if err := <-done; err != nil {
						t.Fatal(err)
					}
				} else {
					g.let() // until the call returns, those that are queued may begin
					if err := <-done; err != nil {
						t.Fatal(err)
					}
				}
				if took := time.Since(began); took > 3*time.Second {
					t.Errorf("the call took %v", took)
				}
				started := len(g.begins(0))
				g.let()
				s.submit("work", 100, "other")
				pass(time.Minute)
				if late := g.begins(started); len(late) > 0 {
					t.Errorf("%v began after the call returned", late)
				}
				c := s.counts()
				if c[task.Running]+c[task.Assigning] != 0 || c[task.Finished] != int64(started+100) || c[task.Created] != int64(1170-started) {
					t.Errorf("%d had begun, and now: %v", started, c)
				}
				if through == 0 && started != 120 {
					t.Errorf("%d had begun when the call returned, want those that ran", started)
				}
				for _, id := range queued {
					got := s.get(id)
					if back := got.LifecycleStatus == task.Created; back == slices.Contains(g.begins(0), id) || got.Failures != 0 {
						t.Errorf("%+v", got)
					}
				}
				if _, err := api.ResumeDispatch(s.t.Context(), held); err != nil {
					t.Fatal(err)
				}
				had := g.begins(0)[:started]
				left := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(had, id) })
				s.within(2*time.Second, "the next run", func() bool { return len(g.begins(started)) >= 100 })
				next := g.begins(started)
				slices.Sort(next)
				if !slices.Equal(next, left[:100]) {
					t.Errorf("%v began with the resume, want the eldest", next)
				}
				for range 20 {
					g.let()
					pass(200 * time.Millisecond)
				}
				s.within(time.Second, "all are finished", func() bool { g.let(); return s.counts()[task.Finished] == 1270 })
				for i := range left[1:] {
					if before, after := s.get(left[i]), s.get(left[i+1]); before.AssignedDateTime > after.AssignedDateTime {
						t.Errorf("%s was sent %d ms after %s", before.ID, before.AssignedDateTime-after.AssignedDateTime, after.ID)
					}
				}
				s.mu.Lock()
				defer s.mu.Unlock()
				for id, n := range s.runs {
					if n != 1 {
						t.Errorf("%s ran %d times", id, n)
					}
				}
			})
		})
	}
}

// slowClaims is a store that takes its time to write claims, and its time to say so.
type slowClaims struct{ store.Store }

func (s slowClaims) Apply(ctx context.Context, changes []task.Change) (int, error) {
	if len(changes) == 0 || changes[0].To != task.Assigning {
		return s.Store.Apply(ctx, changes)
	}
	pass(40 * time.Millisecond)
	n, err := s.Store.Apply(ctx, changes)
	pass(30 * time.Millisecond)
	return n, err
}

// TestC95_APauseHoldsWhateverIsOnItsWay: the whole dispatcher is paused twenty times, at other moments of its rounds,
// while the store and the bus take their time. Whatever is claimed and not written, written and not sent, or sent and
// not there does not begin after the call.
func TestC95_APauseHoldsWhateverIsOnItsWay(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		g := &gate{open: make(chan struct{})}
		close(g.open) // nobody is held
		s.classes = map[string]func(context.Context) error{"short": func(ctx context.Context) error {
			_ = g.run(ctx)
			return nap(10 * time.Millisecond)(ctx)
		}}
		s.controllerOn(slowClaims{s.store})
		pass(time.Second)
		s.cluster(1, 3, func(c *node.Config) { c.Capacity, c.Prefetch = 4, 4 })
		s.bus.Fail(func(_ context.Context, topic string, _ int, _ []kafka.Record) (bool, error) {
			if topic == events.TopicAssign {
				pass(20 * time.Millisecond)
			}
			return true, nil
		})
		ids := s.submit("short", 3000, "t")
		api := s.client(0)
		for i := range 20 {
			pass(time.Second + time.Duration(i)*7*time.Millisecond)
			if _, err := api.PauseDispatch(s.t.Context(), client.Scope{}); err != nil {
				t.Fatal(err)
			}
			began := len(g.begins(0))
			pass(3 * time.Second)
			if late := g.begins(began); len(late) > 0 {
				t.Errorf("pause %d: %v began after the call returned", i, late)
			}
			if c := s.counts(); c[task.Assigning]+c[task.Running] != 0 {
				t.Errorf("pause %d: %v", i, c)
			}
			if _, err := api.ResumeDispatch(s.t.Context(), client.Scope{}); err != nil {
				t.Fatal(err)
			}
		}
		if left := s.counts()[task.Created]; left == 0 {
			t.Error("nothing was left to pause")
		}
		s.bus.Fail(nil)
		s.within(time.Minute, "all are finished", s.all(task.Finished, len(ids)))
		s.once(ids)
	})
}
