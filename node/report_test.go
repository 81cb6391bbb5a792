package node_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/pkg/task"
)

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

// TestS20_NoEndIsLost: 10,000 handlers that end at once.
func TestS20_NoEndIsLost(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", func(c *node.Config) { c.Capacity = 500 })
		node.Handle(n, "c", noop)
		w.start(n)
		for range 20 {
			list := w.assign("n", "c", 500)
			synctest.Wait()
			byClaim := map[string][]task.Report{}
			for _, s := range w.Statuses() {
				for _, r := range s.Reports {
					byClaim[r.ClaimID] = append(byClaim[r.ClaimID], r)
				}
			}
			claims := make([]string, len(list))
			for i, tk := range list {
				claims[i] = tk.ClaimID
				rs := byClaim[tk.ClaimID]
				if len(rs) == 0 || rs[len(rs)-1].Kind != task.ReportFinished || rs[len(rs)-1].StartedAt == 0 || len(rs) > 2 {
					w.t.Fatalf("%s was reported as %+v", tk.ID, rs)
				}
			}
			w.ok(w.Acknowledge(w.ctx, "n", claims...))
			synctest.Wait()
		}
		pass(1500 * time.Millisecond)
		r, _, err := w.Registry.Node(w.ctx, "n")
		w.ok(err)
		if r.Received != 10_000 || r.Finished != 10_000 || r.Running != 0 || len(r.Tasks) != 0 {
			w.t.Errorf("received %d, finished %d, running %d, held %d", r.Received, r.Finished, r.Running, len(r.Tasks))
		}
	})
}

func TestUnsettledEndsAreSentAgain(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", nil)
		node.Handle(n, "c", noop)
		w.start(n)
		tk := w.assign("n", "c", 1)[0]
		w.final(tk)
		synctest.Wait()
		had := len(w.kinds(tk))
		pass(15 * time.Second)
		if got := len(w.kinds(tk)) - had; got != 3 {
			w.t.Errorf("sent again %d times in 15 s, want 3: after 2, 4 and 8 s", got)
		}
		w.ok(w.Acknowledge(w.ctx, "n", tk.ClaimID))
		synctest.Wait()
		had = len(w.kinds(tk))
		pass(100 * time.Second)
		if got := len(w.kinds(tk)) - had; got != 0 {
			w.t.Errorf("sent again %d times after it was settled", got)
		}
	})
}
