package node_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/node/session"
	"github.com/skalds-go/skalds/pkg/registry"
)

// withoutRegistry is a node that runs one task when the registry stops answering it.
func withoutRegistry(w *world) (b *blocker, reg *hooked) {
	reg = &hooked{Registry: w.Registry}
	n := w.node("n", nil, node.WithSeams(session.Seams{Registry: reg}))
	b = newBlocker()
	node.Handle(n, "c", b.run)
	w.start(n)
	w.assign("n", "c", 1)
	<-b.began
	return b, reg
}

// beats are the heartbeats over task.status so far.
func (w *world) beats() []events.Status {
	var list []events.Status
	for _, s := range w.Statuses() {
		if s.Heartbeat != nil {
			list = append(list, s)
		}
	}
	return list
}

// confirmFor plays the leader: it confirms what comes over task.status for so long, and gives the last heartbeat that
// it confirmed.
func (w *world) confirmFor(d time.Duration) events.Status {
	var last events.Status
	for end := time.Now().Add(d); time.Now().Before(end); pass(100 * time.Millisecond) {
		if all := w.beats(); len(all) > 0 && all[len(all)-1].Heartbeat.Counter != last.Counter {
			last = all[len(all)-1]
			w.ok(w.Confirm(w.ctx, "n", last.Heartbeat.Counter))
		}
	}
	return last
}

func hang(ctx context.Context, _ *registry.Node, _ func(context.Context, *registry.Node) error) error {
	<-ctx.Done()
	return ctx.Err()
}

// A node whose registry does not answer lives on as long as the leader confirms its heartbeats, and until the trust of
// the last of them is over, counted from its sending.
func TestANodeWithoutARegistryLivesOnThroughTheLeader(t *testing.T) {
	t.Parallel()
	for name, bend := range map[string]func(context.Context, *registry.Node, func(context.Context, *registry.Node) error) error{
		"refused": refuse, "no answer": hang,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				b, reg := withoutRegistry(w)
				pass(5 * time.Second)
				if got := w.beats(); len(got) != 0 {
					w.t.Fatalf("%d heartbeats over task.status while the registry answers", len(got))
				}
				reg.set(bend)
				last := w.confirmFor(25 * time.Second) // its key in the registry lives 30 s, which Confirm looks at
				select {
				case cause := <-b.ended:
					w.t.Fatalf("it stopped all the same: %v", cause)
				default:
				}
				if last.Heartbeat.Running != 1 || last.Heartbeat.Partition != events.Partition("n", 4) || last.Incarnation == "" || last.Heartbeat.Term != 1 {
					w.t.Errorf("the heartbeat says %+v", last.Heartbeat)
				}
				if cause := <-b.ended; !errors.Is(cause, node.ErrLeaseLost) {
					w.t.Errorf("cause %v", cause)
				}
				if passed := time.Since(time.UnixMilli(last.At)); passed != 7*time.Second {
					w.t.Errorf("trust ended %v after the last confirmed heartbeat was sent, want 7s", passed)
				}
			})
		})
	}
}

// What does not confirm: a lower term, another incarnation, a heartbeat that was never sent, one that is no longer
// remembered.
func TestWhatConfirmsNothing(t *testing.T) {
	t.Parallel()
	for name, confirm := range map[string]func(w *world, counter int64) error{
		"a lower term":    func(w *world, counter int64) error { w.Term(0); return w.Confirm(w.ctx, "n", counter) },
		"not sent":        func(w *world, counter int64) error { return w.Confirm(w.ctx, "n", counter+1000) },
		"by the registry": func(w *world, _ int64) error { return w.Confirm(w.ctx, "n", 1) },
		"too old": func(w *world, _ int64) error {
			return w.Confirm(w.ctx, "n", w.beats()[0].Heartbeat.Counter)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				b, reg := withoutRegistry(w)
				synctest.Wait()
				confirmed := reg.at(-1)
				reg.set(refuse)
				var cause error
				for cause == nil {
					select {
					case cause = <-b.ended:
					case <-time.After(100 * time.Millisecond):
						if all := w.beats(); len(all) > 0 && (name != "too old" || time.Since(confirmed) > 6*time.Second) {
							w.ok(confirm(w, all[len(all)-1].Heartbeat.Counter))
						}
					}
				}
				passed := time.Since(confirmed)
				if name == "too old" { // from its own sending, a second after the last of the registry, and no more
					passed -= time.Second
				}
				if !errors.Is(cause, node.ErrLeaseLost) || passed != 7*time.Second {
					w.t.Errorf("%v after %v, want 7s", cause, passed)
				}
			})
		})
	}
}

// A confirmation that comes when the trust is over revives nothing.
func TestALateConfirmationRevivesNothing(t *testing.T) {
	bubble(t, func(w *world) {
		b, reg := withoutRegistry(w)
		first, _, err := w.Registry.Node(w.ctx, "n")
		w.ok(err)
		reg.set(refuse)
		if cause := <-b.ended; cause == nil {
			w.t.Error("it ended without a cause")
		}
		all := w.beats()
		a := events.Assign{Heartbeats: []events.ConfirmedHeartbeat{{Incarnation: first.Incarnation, Counter: all[len(all)-1].Heartbeat.Counter}}} // sent a moment ago
		a.SetSender("nodetest", 1)
		e := one(w.t, a)
		w.ok(w.Bus.Publish(w.ctx, events.TopicAssign, first.Partition, []kafka.Record{{Key: e.Key, Value: e.Value}}))
		reg.set(nil)
		pass(3 * time.Second)
		second, ok, err := w.Registry.Node(w.ctx, "n")
		w.ok(err)
		if !ok || second.Incarnation == first.Incarnation {
			w.t.Errorf("incarnation %s goes on", first.Incarnation)
		}
	})
}

// A fence stops the work at once, and the node begins anew.
func TestAFenceStopsAllWorkAtOnce(t *testing.T) {
	bubble(t, func(w *world) {
		b, _ := withoutRegistry(w)
		first, _, err := w.Registry.Node(w.ctx, "n")
		w.ok(err)
		w.Term(0)
		w.ok(w.Fence(w.ctx, "n"))
		synctest.Wait()
		if len(b.ended) != 0 {
			w.t.Fatal("the fence of a lower term was obeyed")
		}
		w.Term(1)
		fenced := time.Now()
		w.ok(w.Fence(w.ctx, "n"))
		if cause := <-b.ended; !errors.Is(cause, node.ErrLeaseLost) || time.Since(fenced) != 0 {
			w.t.Errorf("%v after %v", cause, time.Since(fenced))
		}
		pass(2 * time.Second)
		second, ok, err := w.Registry.Node(w.ctx, "n")
		w.ok(err)
		if !ok || second.Incarnation == first.Incarnation {
			w.t.Errorf("the next session is %+v, %v", second, ok)
		}
	})
}

// A registration that the leader gave up before its answer arrived is fenced, too: the node registers anew and starts
// nothing of it.
func TestAFenceReachesANodeThatJoins(t *testing.T) {
	bubble(t, func(w *world) {
		reg := &hooked{Registry: w.Registry}
		n := w.node("n", nil, node.WithSeams(session.Seams{Registry: reg}))
		b := newBlocker()
		node.Handle(n, "c", b.run)
		first := ""
		reg.set(func(ctx context.Context, rn *registry.Node, beat func(context.Context, *registry.Node) error) error {
			if err := beat(ctx, rn); err != nil || first != "" {
				return err
			}
			first = rn.Incarnation
			w.assign("n", "c", 1)
			w.ok(w.Fence(w.ctx, "n"))
			pass(500 * time.Millisecond)
			return nil
		})
		w.start(n)
		rn, _, err := w.Registry.Node(w.ctx, "n")
		w.ok(err)
		synctest.Wait()
		if rn.Incarnation == first || len(b.began) != 0 {
			w.t.Errorf("incarnation %s after the fence of %s, %d runs", rn.Incarnation, first, len(b.began))
		}
	})
}

// stuck is a registry that nobody can leave.
type stuck struct{ session.Registry }

func (stuck) Leave(context.Context, string, string) error { return registry.ErrUnavailable }

// The next session of a process takes the place of the one before at once, though that could not leave, and says whom
// it replaces.
func TestTheNextSessionTakesThePlaceOfTheLast(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", nil, node.WithSeams(session.Seams{Registry: stuck{w.Registry}}))
		node.Handle(n, "c", noop)
		w.start(n)
		first, _, err := w.Registry.Node(w.ctx, "n")
		w.ok(err)
		w.ok(w.Fence(w.ctx, "n"))
		pass(time.Second)
		second, ok, err := w.Registry.Node(w.ctx, "n")
		w.ok(err)
		if !ok || second.Incarnation == first.Incarnation || second.Replaces != first.Incarnation || second.Crashed {
			w.t.Errorf("after the fence of %s: %+v", first.Incarnation, second)
		}
	})
}

// A node names the predecessor whose death the state file proves, and the file names the node from then on.
func TestANodeReplacesWhomItProvesDead(t *testing.T) {
	dir := t.TempDir()
	start := func(w *world) (registry.Node, func() error) {
		n := w.node("n", func(c *node.Config) { c.StateDir = dir })
		node.Handle(n, "c", noop)
		stop := w.start(n)
		rn, _, err := w.Registry.Node(w.ctx, "n")
		w.ok(err)
		return rn, stop
	}
	bubble(t, func(w *world) {
		first, stop := start(w)
		if first.Replaces != "" {
			w.t.Errorf("the first replaces %s", first.Replaces)
		}
		w.ok(w.Fence(w.ctx, "n"))
		pass(time.Second)
		again, _, err := w.Registry.Node(w.ctx, "n")
		w.ok(err)
		w.ok(stop())
		next, stop := start(w)
		if again.Incarnation == first.Incarnation || next.Replaces != again.Incarnation || next.Crashed {
			w.t.Errorf("%s, then %s, then %+v", first.Incarnation, again.Incarnation, next)
		}
		w.ok(stop())
	})
}
