package node_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/pkg/task"
)

// A result that is JSON, but nested so deep that no event around it can be encoded or read, fails its own task: it must not keep the
// reports of the others from being sent.
func TestAResultNestedTooDeepFailsItsTaskAlone(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n1", nil)
		deep := func(levels int) func(context.Context, any) (json.RawMessage, error) {
			return func(context.Context, any) (json.RawMessage, error) {
				return json.RawMessage(strings.Repeat("[", levels) + strings.Repeat("]", levels)), nil
			}
		}
		node.Handle(n, "deep", deep(9_999))
		node.Handle(n, "flat", deep(500))
		w.start(n)
		bad, good := w.assign("n1", "deep", 3), w.assign("n1", "flat", 3)
		for i := range good {
			if r := w.final(good[i]); r.Kind != task.ReportFinished {
				t.Errorf("%s: %s", r.Kind, r.Error)
			}
			if r := w.final(bad[i]); r.Kind != task.ReportFailed || !strings.Contains(r.Error, "nested") {
				t.Errorf("%s: %s", r.Kind, r.Error)
			}
		}
	})
}

// While nobody settles them, final reports are sent again further and further apart: with thousands of nodes the topic would fill with
// copies while no controller is there, and the next leader could not keep up with what comes in while it reads them.
func TestUnsettledReportsAreSentAgainFurtherAndFurtherApart(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n1", nil)
		node.Handle(n, "noop", noop)
		w.start(n)
		c := w.assign("n1", "noop", 1)[0]
		w.final(c)
		<-time.After(3 * time.Second)
		if copies := len(w.Reports(c.ClaimID)); copies < 2 {
			t.Errorf("%d reports after 3 s, want a second one", copies)
		}
		<-time.After(20 * time.Minute)
		copies := len(w.Reports(c.ClaimID))
		if copies > 50 {
			t.Errorf("%d reports in 20 minutes", copies)
		}
		<-time.After(2 * time.Minute)
		if len(w.Reports(c.ClaimID)) == copies {
			t.Error("none in two further minutes: a new leader would wait for it")
		}
	})
}
