package node_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/node/nodetest"
	"github.com/skalds-go/skalds/node/session"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestTrustEndsByTheSendingOfTheLastConfirmedBeat(t *testing.T) {
	t.Parallel()
	for name, bend := range map[string]func(context.Context, *registry.Node, func(context.Context, *registry.Node) error) error{
		"refused": refuse,
		"no answer": func(ctx context.Context, _ *registry.Node, _ func(context.Context, *registry.Node) error) error {
			<-ctx.Done()
			return ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				reg := &hooked{Registry: w.Registry}
				n := w.node("n", func(c *node.Config) { c.Capacity, c.Prefetch = 1, 1 }, node.WithSeams(session.Seams{Registry: reg}))
				b := newBlocker()
				node.Handle(n, "c", b.run)
				w.start(n)
				first, _, err := w.Registry.Node(w.ctx, "n")
				w.ok(err)
				list := w.assign("n", "c", 2)
				<-b.began
				synctest.Wait()
				confirmed := reg.at(-1)
				reg.set(bend)
				if cause := <-b.ended; !errors.Is(cause, node.ErrLeaseLost) {
					w.t.Errorf("cause %v", cause)
				}
				if passed := time.Since(confirmed); passed != 7*time.Second {
					w.t.Errorf("trust ended %v after the last confirmed heartbeat was sent, want 7s", passed)
				}
				if last := reg.at(-1); last.After(confirmed.Add(7 * time.Second)) { // at that very moment the next session may register
					w.t.Errorf("a heartbeat was sent %v after it", last.Sub(confirmed))
				}
				synctest.Wait()
				for _, tk := range list {
					if slices.ContainsFunc(w.kinds(tk), task.Kind.Final) {
						w.t.Errorf("%s was reported as %v", tk.ID, w.kinds(tk))
					}
				}
				reg.set(nil)
				pass(5 * time.Second)
				second, ok, err := w.Registry.Node(w.ctx, "n")
				w.ok(err)
				if !ok || second.Incarnation == first.Incarnation || len(second.Tasks) != 0 || second.Received != 0 {
					w.t.Errorf("the next session is %+v", second)
				}
				close(b.free)
				if r, err := w.Do(w.ctx, "n", "c", nil); err != nil || r.Kind != task.ReportFinished {
					w.t.Errorf("the next session ran %v, %v", r, err)
				}
			})
		})
	}
}

// A late answer confirms only the time of its sending.
func TestSlowBeatDoesNotStretchTheTrust(t *testing.T) {
	bubble(t, func(w *world) {
		reg := &hooked{Registry: w.Registry}
		n := w.node("n", nil, node.WithSeams(session.Seams{Registry: reg}))
		b := newBlocker()
		node.Handle(n, "c", b.run)
		w.start(n)
		w.assign("n", "c", 1)
		<-b.began
		slow := make(chan time.Time, 1)
		reg.set(func(ctx context.Context, rn *registry.Node, beat func(context.Context, *registry.Node) error) error {
			slow <- time.Now()
			pass(1500 * time.Millisecond)
			reg.set(refuse)
			return beat(ctx, rn)
		})
		if cause := <-b.ended; !errors.Is(cause, node.ErrLeaseLost) {
			w.t.Errorf("cause %v", cause)
		}
		if passed := time.Since(<-slow); passed != 7*time.Second {
			w.t.Errorf("trust ended %v after the slow heartbeat was sent, want 7s", passed)
		}
	})
}

// sleeper is a clock that can sleep as a suspended machine does: Boot goes on, timers do not.
type sleeper struct {
	nodetest.Clock
	slept atomic.Int64
}

func (s *sleeper) Boot() time.Duration { return s.Clock.Boot() + time.Duration(s.slept.Load()) }

// stepped is a clock whose wall time can be set.
type stepped struct {
	nodetest.Clock
	by atomic.Int64
}

func (s *stepped) Now() time.Time { return s.Clock.Now().Add(time.Duration(s.by.Load())) }

// No controller believes a start that lies far ahead: a node whose clock was wrong when it began must not say so any
// more once that is set right.
func TestAClockThatIsSetBackIsNotHeldAgainstTheNode(t *testing.T) {
	bubble(t, func(w *world) {
		c := &stepped{Clock: w.Clock}
		c.by.Store(int64(1000 * time.Hour))
		n := w.node("n", nil, node.WithSeams(session.Seams{Clock: c}))
		node.Handle(n, "c", noop)
		w.start(n)
		if rn := w.nextBeat("n"); registry.Validate(&rn, time.Now().UnixMilli()) == "" {
			w.t.Fatal("a start that lies 1000 hours ahead is believed")
		}
		c.by.Store(0)
		if rn := w.nextBeat("n"); registry.Validate(&rn, time.Now().UnixMilli()) != "" {
			w.t.Errorf("still not believed: %s", registry.Validate(&rn, time.Now().UnixMilli()))
		}
	})
}

// A node that wakes from a suspend longer than its trust does nothing of what it was about to do, whichever comes
// first.
func TestSuspend(t *testing.T) {
	t.Parallel()
	t.Run("before a report", func(t *testing.T) {
		bubble(t, func(w *world) {
			c := &sleeper{Clock: w.Clock}
			n := w.node("n", nil, node.WithSeams(session.Seams{Clock: c}))
			node.Handle(n, "c", noop)
			w.start(n)
			w.Bus.Fail(func(_ context.Context, topic string, _ int, _ []kafka.Record) (bool, error) {
				return topic != events.TopicStatus, errOnly(topic == events.TopicStatus)
			})
			tk := w.assign("n", "c", 1)[0]
			synctest.Wait()
			c.slept.Add(int64(20 * time.Second))
			w.Bus.Fail(nil)
			pass(10 * time.Second)
			if got := w.kinds(tk); got != nil {
				w.t.Errorf("reported as %v", got)
			}
		})
	})
	t.Run("before a start", func(t *testing.T) {
		bubble(t, func(w *world) {
			c := &sleeper{Clock: w.Clock}
			n := w.node("n", func(c *node.Config) { c.Capacity, c.Prefetch = 1, 1 }, node.WithSeams(session.Seams{Clock: c}))
			b := newBlocker()
			node.Handle(n, "c", b.stubborn)
			w.start(n)
			w.assign("n", "c", 2)
			<-b.began
			synctest.Wait()
			c.slept.Add(int64(20 * time.Second))
			close(b.free) // its place is free, one waits
			w.assign("n", "c", 1)
			pass(10 * time.Second)
			if len(b.began) != 0 {
				w.t.Errorf("%d were started", len(b.began))
			}
		})
	})
	t.Run("before a heartbeat", func(t *testing.T) {
		bubble(t, func(w *world) {
			c := &sleeper{Clock: w.Clock}
			reg := &hooked{Registry: w.Registry}
			n := w.node("n", nil, node.WithSeams(session.Seams{Clock: c, Registry: reg}))
			node.Handle(n, "c", noop)
			w.start(n)
			first, _, err := w.Registry.Node(w.ctx, "n")
			w.ok(err)
			pass(500 * time.Millisecond)
			c.slept.Add(int64(20 * time.Second))
			pass(5 * time.Second)
			second, _, err := w.Registry.Node(w.ctx, "n")
			w.ok(err)
			if second.Incarnation == first.Incarnation {
				w.t.Error("it went on as if nothing had been")
			}
		})
	})
}

func errOnly(fails bool) error {
	if fails {
		return kafka.ErrNotSent
	}
	return nil
}
