package node_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/pkg/task"
)

// elsewhere is the id of a node whose partition is there among many, and not among few.
func elsewhere(many, few int) string {
	for i := 0; ; i++ {
		if id := fmt.Sprint("n", i); events.Partition(id, many) >= few {
			return id
		}
	}
}

func (w *world) makeAnew(partitions int) {
	for _, topic := range []string{events.TopicAssign, events.TopicControl, events.TopicStatus} {
		w.Bus.Delete(topic)
		w.Bus.Create(topic, partitions)
	}
}

// Topics that had been enlarged are made anew with fewer partitions: a node whose partition is no more begins anew on
// one that is there.
func TestANodeWhosePartitionIsGoneFindsAnother(t *testing.T) {
	bubble(t, func(w *world) {
		w.makeAnew(8)
		id := elsewhere(8, 2)
		n := w.node(id, nil)
		b := newBlocker()
		node.Handle(n, "blocks", b.run)
		node.Handle(n, "c", noop)
		stop := w.start(n)
		first, _, err := w.Registry.Node(w.ctx, id)
		w.ok(err)
		w.assign(id, "blocks", 1)
		<-b.began
		w.makeAnew(2)
		if cause := <-b.ended; !errors.Is(cause, node.ErrLeaseLost) {
			w.t.Errorf("what ran there ended for %v", cause)
		}
		pass(10 * time.Second)
		second, found, err := w.Registry.Node(w.ctx, id)
		w.ok(err)
		if !found || second.Partition >= 2 || second.Replaces != first.Incarnation {
			w.t.Errorf("registered: %v, %+v", found, second)
		}
		if r := w.final(w.assign(id, "c", 1)[0]); r.Kind != task.ReportFinished {
			w.t.Errorf("%+v", r)
		}
		w.ok(stop())
	})
}

// Partitions that are gone for a moment end nothing, nor do topics that are gone altogether: controllers make them
// anew.
func TestAPartitionThatComesBackEndsNothing(t *testing.T) {
	bubble(t, func(w *world) {
		w.makeAnew(8)
		id := elsewhere(8, 2)
		n := w.node(id, nil)
		node.Handle(n, "c", noop)
		stop := w.start(n)
		first, _, err := w.Registry.Node(w.ctx, id)
		w.ok(err)
		for range 4 { // a look falls into the first half minute of one of them
			w.makeAnew(2)
			pass(29 * time.Second)
			w.makeAnew(8)
			pass(3*time.Minute + 47*time.Second)
			for _, topic := range []string{events.TopicAssign, events.TopicControl, events.TopicStatus} {
				w.Bus.Delete(topic)
			}
			pass(29 * time.Second)
		}
		w.makeAnew(8)
		now, _, err := w.Registry.Node(w.ctx, id)
		w.ok(err)
		if now.Incarnation != first.Incarnation {
			w.t.Error("its session has ended")
		}
		w.ok(stop())
	})
}
