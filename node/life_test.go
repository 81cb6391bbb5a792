package node_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/bustest"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/node/nodetest"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

// hooked is a registry whose heartbeats a test can bend.
type hooked struct {
	node.Registry
	mu   sync.Mutex
	beat func(ctx context.Context, n *registry.Node, beat func(context.Context, *registry.Node) error) error
	sent []time.Time // of every heartbeat
}

func (h *hooked) Beat(ctx context.Context, n *registry.Node) error {
	h.mu.Lock()
	f := h.beat
	h.sent = append(h.sent, time.Now())
	h.mu.Unlock()
	if f == nil {
		return h.Registry.Beat(ctx, n)
	}
	return f(ctx, n, h.Registry.Beat)
}

func (h *hooked) set(f func(context.Context, *registry.Node, func(context.Context, *registry.Node) error) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.beat = f
}

// at is when heartbeat i was sent; -1 is the last.
func (h *hooked) at(i int) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i < 0 {
		i += len(h.sent)
	}
	return h.sent[i]
}

func refuse(context.Context, *registry.Node, func(context.Context, *registry.Node) error) error {
	return registry.ErrUnavailable
}

// TestS19_RegisteredMeansReady: a claim that is sent the instant the registration is seen, before its answer has reached the node.
func TestS19_RegisteredMeansReady(t *testing.T) {
	bubble(t, func(w *world) {
		reg := &hooked{Registry: w.Registry}
		n := w.node("n", nil, node.WithRegistry(reg))
		var tk events.AssignedTask
		reg.set(func(ctx context.Context, rn *registry.Node, beat func(context.Context, *registry.Node) error) error {
			if err := beat(ctx, rn); err != nil || rn.Counter > 1 {
				return err
			}
			tk = w.assign("n", "c", 1)[0]
			pass(500 * time.Millisecond) // a slow answer
			return nil
		})
		node.Handle(n, "c", noop)
		began := time.Now()
		w.start(n)
		if r := w.final(tk); r.Kind != task.ReportFinished {
			w.t.Errorf("ended as %s", r.Kind)
		}
		if passed := time.Since(began); passed > 500*time.Millisecond {
			w.t.Errorf("it ran after %v: it was lost at first", passed)
		}
	})
}

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
				n := w.node("n", func(c *node.Config) { c.Capacity, c.Prefetch = 1, 1 }, node.WithRegistry(reg))
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
		n := w.node("n", nil, node.WithRegistry(reg))
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

func TestTakenID(t *testing.T) {
	bubble(t, func(w *world) {
		other := registry.Node{ID: "n", Incarnation: "other", Counter: 1, Mode: registry.ModeNode, State: registry.Online}
		w.ok(w.Registry.Beat(w.ctx, &other))
		n := w.node("n", nil)
		b := newBlocker()
		node.Handle(n, "c", b.run)
		began := time.Now()
		stop := w.start(n) // waits until the other's key has expired
		if passed := time.Since(began); passed < registry.KeyTTL-time.Second || passed > registry.KeyTTL+2*time.Second {
			w.t.Errorf("registered after %v", passed)
		}
		w.assign("n", "c", 1)
		<-b.began
		w.Registry.Empty()
		other.Counter++
		w.ok(w.Registry.Beat(w.ctx, &other))
		if cause := <-b.ended; !errors.Is(cause, node.ErrLeaseLost) {
			w.t.Errorf("cause %v", cause)
		}
		w.ok(stop())
		if got, ok, err := w.Registry.Node(w.ctx, "n"); err != nil || !ok || got.Incarnation != "other" {
			w.t.Errorf("the other's registration became %+v, %v, %v", got, ok, err)
		}
	})
}

func TestTopicsThatComeLater(t *testing.T) {
	bubble(t, func(w *world) {
		bus := bustest.New(nil)
		w.Bus = bus
		n := w.node("n", nil)
		node.Handle(n, "c", noop)
		go func() {
			pass(5 * time.Second)
			for topic, n := range bustest.Skalds(3).Topics() {
				bus.Create(topic, n)
			}
		}()
		w.start(n)
		if r, err := w.Do(w.ctx, "n", "c", nil); err != nil || r.Kind != task.ReportFinished {
			w.t.Errorf("%v, %v", r, err)
		}
	})
}

func TestStopBeforeAnythingIsThere(t *testing.T) {
	bubble(t, func(w *world) {
		w.Bus = bustest.New(nil)
		n := w.node("n", nil)
		node.Handle(n, "c", noop)
		ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
		defer cancel()
		w.ok(n.Run(ctx))
	})
}

// waits gives the time from stop to its end.
func waits(stop func() error) (time.Duration, error) {
	began := time.Now()
	err := stop()
	return time.Since(began), err
}

// TestC89_SoftAndHardStopAreAsConfigured: what ends within the soft time is let end, the rest is told to, and what does not within the hard time
// is named.
func TestC89_SoftAndHardStopAreAsConfigured(t *testing.T) {
	t.Parallel()
	t.Run("lets what runs end", func(t *testing.T) {
		bubble(t, func(w *world) {
			n := w.node("n", func(c *node.Config) { c.Capacity, c.Prefetch = 2, 2 })
			node.Handle(n, "c", func(context.Context, any) (string, error) { pass(10 * time.Second); return "done", nil })
			stop := w.start(n)
			list := w.assign("n", "c", 4)
			synctest.Wait()
			first, _, err := w.Registry.Node(w.ctx, "n")
			w.ok(err)
			late := make(chan []events.AssignedTask)
			go func() {
				pass(2 * time.Second)
				drainingNode, _, err := w.Registry.Node(w.ctx, "n")
				if err != nil || drainingNode.State != registry.Draining || drainingNode.Running != 2 {
					w.t.Errorf("while it drains: %+v, %v", drainingNode, err)
				}
				late <- w.assign("n", "c", 1)
			}()
			stopped := make(chan time.Duration)
			go func() {
				passed, err := waits(stop)
				if err != nil {
					w.t.Error(err)
				}
				stopped <- passed
			}()
			list = append(list, <-late...)
			passed := <-stopped
			if passed > 11*time.Second {
				w.t.Errorf("it took %v", passed)
			}
			var kinds []task.Kind
			for _, tk := range list {
				kinds = append(kinds, w.final(tk).Kind)
			}
			want := []task.Kind{task.ReportFinished, task.ReportFinished, task.ReportReleased, task.ReportReleased, task.ReportReleased}
			if !reflect.DeepEqual(kinds, want) {
				w.t.Errorf("ended as %v, want %v", kinds, want)
			}
			if _, ok, err := w.Registry.Node(w.ctx, "n"); ok || err != nil {
				w.t.Errorf("it is still registered: %v", err)
			}
			all := w.Statuses()
			if last := all[len(all)-1]; last.Notice != events.NoticeLeft || last.Incarnation != first.Incarnation {
				w.t.Errorf("the last word is %+v", last)
			}
		})
	})
	for name, soft := range map[string]time.Duration{"cuts short what does not end": 3 * time.Second, "at once with a soft time of 0": 0} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				n := w.node("n", func(c *node.Config) { c.DrainSoft = soft })
				b := newBlocker()
				node.Handle(n, "c", b.run)
				stop := w.start(n)
				list := w.assign("n", "c", 3)
				for range list {
					<-b.began
				}
				passed, err := waits(stop)
				w.ok(err)
				if passed < soft || passed > soft+time.Second {
					w.t.Errorf("it took %v", passed)
				}
				for _, tk := range list {
					if cause, r := <-b.ended, w.final(tk); !errors.Is(cause, node.ErrDraining) || r.Kind != task.ReportReleased {
						w.t.Errorf("cause %v, reported as %s", cause, r.Kind)
					}
				}
			})
		})
	}
	for name, before := range map[string]bool{"hurried while it lasts": false, "hurried before it begins": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				const wait = 3 * time.Second
				n := w.node("n", nil)
				b := newBlocker()
				node.Handle(n, "c", b.run)
				node.Handle(n, "stubborn", b.stubborn)
				stop := w.start(n)
				list := append(w.assign("n", "c", 1), w.assign("n", "stubborn", 1)...)
				<-b.began
				<-b.began
				after := 10 * time.Second // DRAIN_HARD
				if before {
					n.Hurry()
				} else {
					after += wait
					time.AfterFunc(wait, n.Hurry)
				}
				passed, err := waits(stop)
				if err == nil || !strings.Contains(err.Error(), "1 still run: task-2 (stubborn)") {
					w.t.Errorf("error %v", err)
				}
				if passed != after {
					w.t.Errorf("it took %v, want %v", passed, after)
				}
				if r := w.final(list[0]); r.Kind != task.ReportReleased {
					w.t.Errorf("what ended by its context is reported as %s", r.Kind)
				}
				n.Hurry() // once more is nothing
				close(b.free)
				synctest.Wait()
			})
		})
	}
	t.Run("names handlers that do not return", func(t *testing.T) {
		bubble(t, func(w *world) {
			const soft, hard = 2 * time.Second, 5 * time.Second
			n := w.node("n", func(c *node.Config) { c.DrainSoft, c.DrainHard = soft, hard })
			b := newBlocker()
			node.Handle(n, "stubborn", b.stubborn)
			stop := w.start(n)
			list := w.assign("n", "stubborn", 12)
			for range list {
				<-b.began
			}
			passed, err := waits(stop)
			if err == nil || !strings.Contains(err.Error(), "12 still run: task-1 (stubborn)") || !strings.Contains(err.Error(), "and 2 more") {
				w.t.Errorf("error %v", err)
			}
			if passed != soft+hard {
				w.t.Errorf("it took %v", passed)
			}
			if _, ok, err := w.Registry.Node(w.ctx, "n"); !ok || err != nil {
				w.t.Errorf("it has left the registry: %v", err)
			}
			close(b.free)
			synctest.Wait()
			for _, tk := range list {
				if slices.ContainsFunc(w.kinds(tk), task.Kind.Final) {
					w.t.Fatalf("%s was reported as %v", tk.ID, w.kinds(tk))
				}
			}
			for _, s := range w.Statuses() {
				if s.Notice == events.NoticeLeft {
					w.t.Error("it said goodbye")
				}
			}
		})
	})
	t.Run("is bounded without Kafka", func(t *testing.T) {
		bubble(t, func(w *world) {
			var log bytes.Buffer
			n := w.node("n", nil, node.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			node.Handle(n, "c", noop)
			stop := w.start(n)
			w.Bus.Fail(func(ctx context.Context, topic string, _ int, _ []kafka.Record) (bool, error) {
				if topic == events.TopicAssign {
					return true, nil
				}
				<-ctx.Done()
				return false, ctx.Err()
			})
			w.assign("n", "c", 3)
			synctest.Wait()
			passed, err := waits(stop)
			if err != nil || !strings.Contains(log.String(), "reports=3") || passed > 10*time.Second {
				w.t.Errorf("after %v: %v; it logged %s", passed, err, &log)
			}
		})
	})
}

func TestReportsOutliveAFailingBus(t *testing.T) {
	t.Parallel()
	for name, written := range map[string]bool{"nothing is written": false, "the answers are lost": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				n := w.node("n", func(c *node.Config) { c.Capacity = 50 })
				node.Handle(n, "c", noop)
				w.start(n)
				var tries atomic.Int64
				w.Bus.Fail(func(_ context.Context, topic string, _ int, _ []kafka.Record) (bool, error) {
					if topic != events.TopicStatus || tries.Add(1) > 5 {
						return true, nil
					}
					return written, errors.New("broken pipe")
				})
				began := time.Now()
				for _, tk := range w.assign("n", "c", 50) {
					if r := w.final(tk); r.Kind != task.ReportFinished {
						w.t.Fatalf("%s was reported as %s", tk.ID, r.Kind)
					}
				}
				synctest.Wait()
				if passed := time.Since(began); passed > 2*time.Second {
					w.t.Errorf("it took %v", passed)
				}
			})
		})
	}
}

// TestC38_NoGoroutineIsLeftBehind: 100 times start, work and stop.
func TestC38_NoGoroutineIsLeftBehind(t *testing.T) {
	base := goleak.IgnoreCurrent()
	for i := range 100 {
		func() {
			w := &world{nodetest.New(), t, t.Context()}
			defer w.Close()
			n := w.node("n", func(c *node.Config) { c.DrainSoft = 0 })
			b := newBlocker()
			node.Handle(n, "c", noop)
			node.Handle(n, "block", b.run)
			stop := w.start(n)
			if i%2 == 0 {
				w.final(w.assign("n", "c", 1)[0])
				w.assign("n", "block", 3)
				<-b.began
			}
			w.ok(stop())
		}()
	}
	if err := goleak.Find(base); err != nil {
		t.Error(err)
	}
}

// TestC42_OneRunEach: three nodes on one partition. A value that is none tells who decodes it.
func TestC42_OneRunEach(t *testing.T) {
	bubble(t, func(w *world) {
		w.Bus = bustest.Skalds(1)
		var mu sync.Mutex
		runs := map[string][]string{}
		for i := range 3 {
			id := fmt.Sprint("n", i)
			n := w.node(id, func(c *node.Config) { c.Capacity = 400 })
			node.Handle(n, "c", func(ctx context.Context, _ any) (any, error) {
				mu.Lock()
				defer mu.Unlock()
				tk := node.TaskFrom(ctx).ID
				runs[tk] = append(runs[tk], id)
				return nil, nil
			})
			w.start(n)
		}
		want := map[string][]string{}
		for i := range 100 {
			id := fmt.Sprint("n", i%3)
			for _, tk := range w.assign(id, "c", 10) {
				want[tk.ID] = []string{id}
			}
		}
		w.ok(w.Bus.Publish(w.ctx, events.TopicAssign, 0, []kafka.Record{{
			Key: []byte("k"), Value: []byte("garbage"), Headers: []kafka.Header{{Key: events.HeaderNode, Value: []byte("n1")}},
		}}))
		w.ok(w.Bus.Publish(w.ctx, events.TopicAssign, 0, []kafka.Record{{
			Key: []byte("k"), Value: []byte("garbage"), Headers: []kafka.Header{
				{Key: events.HeaderNode, Value: []byte("n1")}, {Key: events.HeaderIncarnation, Value: []byte("of old")},
			},
		}}))
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if !reflect.DeepEqual(runs, want) {
			w.t.Errorf("%d tasks ran, want %d, each once and on its node", len(runs), len(want))
		}
		if got := len(w.Bus.Records(events.TopicQuarantine)); got != 1 {
			w.t.Errorf("%d nodes decoded a value for one of them", got)
		}
	})
}

// TestC80_BadRecordIsSteppedOver: one bad record among 1,000.
func TestC80_BadRecordIsSteppedOver(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", func(c *node.Config) { c.Capacity = 1000 })
		var runs atomic.Int64
		node.Handle(n, "c", func(context.Context, any) (any, error) { runs.Add(1); return nil, nil })
		w.start(n)
		at := events.Partition("n", 4)
		for i := range 1000 {
			if i == 500 {
				w.ok(w.Bus.Publish(w.ctx, events.TopicAssign, at, []kafka.Record{{Key: []byte("k"), Value: []byte(`{"version":1,"tasks":7}`)}}))
				continue
			}
			w.assign("n", "c", 1)
		}
		for topic, value := range map[string]string{events.TopicControl: `nonsense`, events.TopicAssign: `{"version":2}`} {
			w.ok(w.Bus.Publish(w.ctx, topic, at, []kafka.Record{{Key: []byte("k"), Value: []byte(value)}}))
		}
		synctest.Wait()
		if runs.Load() != 999 {
			w.t.Errorf("%d runs, want 999", runs.Load())
		}
		got := map[string]string{}
		for _, r := range w.Bus.Records(events.TopicQuarantine) {
			q, err := events.DecodeQuarantine(r.Value)
			w.ok(err)
			got[string(r.Key)] = q.Reason
		}
		for key, reason := range map[string]string{
			fmt.Sprintf("task.assign/%d/500", at): "malformed", fmt.Sprintf("task.control/%d/0", at): "malformed",
			fmt.Sprintf("task.assign/%d/1000", at): "unknown event version 2",
		} {
			if !strings.Contains(got[key], reason) {
				w.t.Errorf("%s: quarantined for %q, want %q; all: %v", key, got[key], reason, got)
			}
		}
	})
}

func TestQuarantineThatFailsHoldsNothingUp(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", nil)
		node.Handle(n, "c", noop)
		w.start(n)
		w.Bus.Fail(func(ctx context.Context, topic string, _ int, _ []kafka.Record) (bool, error) {
			if topic != events.TopicQuarantine {
				return true, nil
			}
			<-ctx.Done()
			return false, ctx.Err()
		})
		w.ok(w.Bus.Publish(w.ctx, events.TopicAssign, events.Partition("n", 4), []kafka.Record{{Key: []byte("k"), Value: []byte("x")}}))
		began := time.Now()
		w.final(w.assign("n", "c", 1)[0])
		if passed := time.Since(began); passed > 2*time.Second {
			w.t.Errorf("the next task waited %v", passed)
		}
	})
}

// sleeper is a clock that can sleep as a suspended machine does: Boot goes on, timers do not.
type sleeper struct {
	nodetest.Clock
	slept atomic.Int64
}

func (s *sleeper) Boot() time.Duration { return s.Clock.Boot() + time.Duration(s.slept.Load()) }

// A node that wakes from a suspend longer than its trust does nothing of what it was about to do, whichever comes first.
func TestSuspend(t *testing.T) {
	t.Parallel()
	t.Run("before a report", func(t *testing.T) {
		bubble(t, func(w *world) {
			c := &sleeper{Clock: w.Clock}
			n := w.node("n", nil, node.WithClock(c))
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
			n := w.node("n", func(c *node.Config) { c.Capacity, c.Prefetch = 1, 1 }, node.WithClock(c))
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
			n := w.node("n", nil, node.WithClock(c), node.WithRegistry(reg))
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
