package node_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
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

// TestC89_SoftAndHardStopAreAsConfigured: what ends within the soft time is let end, the rest is told to, and what does
// not within the hard time is named.
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
