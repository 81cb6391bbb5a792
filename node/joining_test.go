package node_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/pkg/registry"
)

// Found by the simulation: a node whose registration was never answered got claims, was put out of the registry, so that they ran elsewhere,
// and began them all the same when it was let in again half a minute later.
func TestANodeThatLostItsPlaceWhileItJoinedBeginsAnew(t *testing.T) {
	bubble(t, func(w *world) {
		reg := &hooked{Registry: w.Registry}
		n := w.node("n", nil, node.WithRegistry(reg))
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
