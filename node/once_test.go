package node_test

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/bustest"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/pkg/task"
)

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

func TestCopiesOfAClaim(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", nil)
		var runs atomic.Int64
		b := newBlocker()
		node.Handle(n, "c", func(ctx context.Context, _ any) (any, error) {
			runs.Add(1)
			return b.run(ctx, nil)
		})
		w.start(n)
		tk := w.assign("n", "c", 1)[0]
		<-b.began
		synctest.Wait()
		again := func() {
			w.ok(w.Assign(w.ctx, "n", tk))
			synctest.Wait()
		}
		again()
		if got := w.kinds(tk); !reflect.DeepEqual(got, []task.Kind{task.ReportStarted, task.ReportStarted}) {
			w.t.Errorf("a copy while it runs is answered with %v", got)
		}
		close(b.free)
		synctest.Wait()
		again()
		if got := w.kinds(tk)[2:]; !reflect.DeepEqual(got, []task.Kind{task.ReportFinished, task.ReportFinished}) {
			w.t.Errorf("a copy after the end is answered with %v", got)
		}
		w.ok(w.Acknowledge(w.ctx, "n", tk.ClaimID))
		again()
		if got := len(w.kinds(tk)); got != 4 || runs.Load() != 1 {
			w.t.Errorf("after it was settled: %d reports, %d runs", got, runs.Load())
		}
	})
}

func TestLowerTermIsIgnored(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", nil)
		node.Handle(n, "c", noop)
		w.start(n)
		w.Term(5)
		w.final(w.assign("n", "c", 1)[0])
		w.Term(4)
		old := w.assign("n", "c", 1)[0]
		w.Term(5)
		w.final(w.assign("n", "c", 1)[0])
		if got := w.kinds(old); got != nil {
			w.t.Errorf("a claim of a lower term was reported as %v", got)
		}
	})
}
