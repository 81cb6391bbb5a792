package node_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestS7_NeverAboveCapacity(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", func(c *node.Config) { c.Capacity, c.Prefetch = 5, 3 })
		var now, most, runs atomic.Int64
		node.Handle(n, "c", func(context.Context, any) (any, error) {
			most.Store(max(most.Load(), now.Add(1)))
			pass(time.Duration(1+runs.Add(1)%7) * time.Millisecond)
			now.Add(-1)
			return nil, nil
		})
		w.start(n)
		pending, rejected := 300, 0
		for pending > 0 {
			for _, tk := range w.assign("n", "c", min(pending, 11)) {
				if r := w.final(tk); r.Kind == task.ReportRejected {
					rejected++
					if !strings.Contains(r.Error, "no room: 5 running and 3 queued, capacity 5 and prefetch 3") {
						w.t.Fatalf("rejected with %q", r.Error)
					}
				} else {
					pending--
				}
			}
		}
		if most.Load() != 5 || runs.Load() != 300 || rejected == 0 {
			w.t.Errorf("at most %d at once, %d runs, %d rejected", most.Load(), runs.Load(), rejected)
		}
	})
}

func TestRunOnce(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", nil)
		if err := n.Run(w.ctx); err == nil || !strings.Contains(err.Error(), "no class has a handler") {
			w.t.Errorf("without handlers: %v", err)
		}
		node.Handle(n, "c", noop)
		stop := w.start(n)
		if err := n.Run(w.ctx); err == nil || !strings.Contains(err.Error(), "already") {
			w.t.Errorf("a second Run: %v", err)
		}
		for name, f := range map[string]func(){
			"Handle": func() { node.Handle(n, "d", noop) }, "Use": func() { n.Use() },
		} {
			func() {
				defer func() {
					if recover() == nil {
						w.t.Errorf("%s after Run does not panic", name)
					}
				}()
				f()
			}()
		}
		w.ok(stop())
	})
}
