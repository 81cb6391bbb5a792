package node_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/bustest"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/node/session"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

// Found by the simulation: a node whose registration was never answered got claims, was put out of the registry, so
// that they ran elsewhere, and began them all the same when it was let in again half a minute later.
func TestANodeThatLostItsPlaceWhileItJoinedBeginsAnew(t *testing.T) {
	bubble(t, func(w *world) {
		reg := &hooked{Registry: w.Registry}
		n := w.node("n", nil, node.WithSeams(session.Seams{Registry: reg}))
		b := newBlocker()
		node.Handle(n, "c", b.run)
		first, beats := "", 0
		reg.set(func(ctx context.Context, rn *registry.Node, beat func(context.Context, *registry.Node) error) error {
			switch beats++; beats {
			case 1:
				w.ok(beat(ctx, rn))
				first = rn.Incarnation
				w.assign("n", "c", 1)
				return registry.ErrUnavailable // the answer got lost
			case 2:
				w.ok(w.Registry.Evict(ctx, "n", first))
				return registry.ErrTaken
			}
			return beat(ctx, rn)
		})
		w.start(n)
		rn, _, err := w.Registry.Node(w.ctx, "n")
		w.ok(err)
		synctest.Wait()
		if rn.Incarnation == first || len(b.began) != 0 {
			w.t.Errorf("incarnation %s after %s lost its place, %d runs", rn.Incarnation, first, len(b.began))
		}
	})
}

// TestS19_RegisteredMeansReady: a claim that is sent the instant the registration is seen, before its answer has
// reached the node.
func TestS19_RegisteredMeansReady(t *testing.T) {
	bubble(t, func(w *world) {
		reg := &hooked{Registry: w.Registry}
		n := w.node("n", nil, node.WithSeams(session.Seams{Registry: reg}))
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

func TestTakenID(t *testing.T) {
	bubble(t, func(w *world) {
		other := registry.Node{ID: "n", Incarnation: "other", Counter: 1, Mode: registry.ModeNode, State: registry.Online}
		w.ok(w.Registry.Heartbeat(w.ctx, &other))
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
		w.ok(w.Registry.Heartbeat(w.ctx, &other))
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
