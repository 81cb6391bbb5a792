package node_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestProgressIsCoalesced(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", nil)
		node.Handle(n, "c", func(ctx context.Context, _ any) (any, error) {
			for i := range 1001 {
				node.TaskFrom(ctx).Progress(float64(i)/10, strings.Repeat("m", 2000))
				pass(time.Millisecond)
			}
			return nil, nil
		})
		w.start(n)
		r, err := w.Do(w.ctx, "n", "c", nil)
		w.ok(err)
		if r.Progress == nil || r.Progress.Percent != 100 || len(r.Progress.Message) != 1024 {
			w.t.Errorf("the final report has the progress %+v", r.Progress)
		}
		said, last := 0, -1.0
		for _, r := range w.Reports("claim-1") {
			if r.Kind == task.ReportProgress {
				said++
				if r.Progress.Percent <= last {
					w.t.Errorf("progress %v after %v", r.Progress.Percent, last)
				}
				last = r.Progress.Percent
			}
		}
		if said < 4 || said > 5 {
			w.t.Errorf("%d progress reports in a second, want 4 or 5", said)
		}
	})
}

// The newest word goes out even if the handler says nothing more for long.
func TestProgressIsNotHeldBack(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", nil)
		b := newBlocker()
		node.Handle(n, "c", func(ctx context.Context, _ any) (any, error) {
			node.TaskFrom(ctx).Progress(1, "")
			node.TaskFrom(ctx).Progress(2, "")
			return b.run(ctx, nil)
		})
		w.start(n)
		tk := w.assign("n", "c", 1)[0]
		began := time.Now()
		if _, err := w.AwaitReport(w.ctx, tk.ClaimID, func(r task.Report) bool {
			return r.Progress != nil && r.Progress.Percent == 2
		}); err != nil {
			w.t.Fatal(err)
		}
		if passed := time.Since(began); passed > 250*time.Millisecond {
			w.t.Errorf("the second word took %v", passed)
		}
		close(b.free)
		w.final(tk)
	})
}
