package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/pkg/task"
)

// A result that is JSON, but nested so deep that no event around it can be encoded or read, fails its own task: it must
// not keep the reports of the others from being sent.
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

// While nobody settles them, final reports are sent again further and further apart: with thousands of nodes the topic
// would fill with copies while no controller is there, and the next leader could not keep up with what comes in while
// it reads them.
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

// TestC80_BadRecordIsSteppedOver: one bad record among 1,000.
func TestC80_BadRecordIsSteppedOver(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", func(c *node.Config) { c.Capacity = 1000 })
		var runs atomic.Int64
		node.Handle(n, "c", func(context.Context, any) (any, error) { runs.Add(1); return nil, nil })
		w.start(n)
		at := events.Partition("n", 4)
		for i := range 1000 {
			if i == 500 {
				w.ok(w.Bus.Publish(w.ctx, events.TopicAssign, at, []kafka.Record{{Key: []byte("k"), Value: []byte(`{"version":1,"tasks":7}`)}}))
				continue
			}
			w.assign("n", "c", 1)
		}
		for topic, value := range map[string]string{events.TopicControl: `nonsense`, events.TopicAssign: `{"version":2}`} {
			w.ok(w.Bus.Publish(w.ctx, topic, at, []kafka.Record{{Key: []byte("k"), Value: []byte(value)}}))
		}
		synctest.Wait()
		if runs.Load() != 999 {
			w.t.Errorf("%d runs, want 999", runs.Load())
		}
		got := map[string]string{}
		for _, r := range w.Bus.Records(events.TopicQuarantine) {
			var q events.Quarantine
			w.ok(json.Unmarshal(r.Value, &q))
			got[string(r.Key)] = q.Reason
		}
		for key, reason := range map[string]string{
			fmt.Sprintf("task.assign/%d/500", at): "malformed", fmt.Sprintf("task.control/%d/0", at): "malformed",
			fmt.Sprintf("task.assign/%d/1000", at): "unknown event version 2",
		} {
			if !strings.Contains(got[key], reason) {
				w.t.Errorf("%s: quarantined for %q, want %q; all: %v", key, got[key], reason, got)
			}
		}
	})
}

func TestQuarantineThatFailsHoldsNothingUp(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", nil)
		node.Handle(n, "c", noop)
		w.start(n)
		w.Bus.Fail(func(ctx context.Context, topic string, _ int, _ []kafka.Record) (bool, error) {
			if topic != events.TopicQuarantine {
				return true, nil
			}
			<-ctx.Done()
			return false, ctx.Err()
		})
		w.ok(w.Bus.Publish(w.ctx, events.TopicAssign, events.Partition("n", 4), []kafka.Record{{Key: []byte("k"), Value: []byte("x")}}))
		began := time.Now()
		w.final(w.assign("n", "c", 1)[0])
		if passed := time.Since(began); passed > 2*time.Second {
			w.t.Errorf("the next task waited %v", passed)
		}
	})
}
