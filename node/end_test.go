package node_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/pkg/task"
)

// limited assigns one task with limits of its own.
func (w *world) limited(class string, set func(*events.AssignedTask)) events.AssignedTask {
	w.t.Helper()
	tk, err := w.Task(class, nil)
	w.ok(err)
	set(&tk)
	w.ok(w.Assign(w.ctx, "n", tk))
	return tk
}

func TestHowAHandlerSaysWhatComesNext(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", nil)
		node.Handle(n, "permanent", func(context.Context, any) (any, error) {
			return nil, fmt.Errorf("wrapped: %w", node.Permanent(errors.New("no such video")))
		})
		node.Handle(n, "later", func(context.Context, any) (any, error) {
			return nil, node.RetryAfter(errors.New("busy"), time.Minute)
		})
		node.Handle(n, "plain", func(context.Context, any) (any, error) { return nil, errors.New("oops") })
		node.Handle(n, "typed", func(context.Context, int) (any, error) { return nil, nil })
		w.start(n)
		now := time.Now().UnixMilli()
		for class, want := range map[string]task.Report{
			"permanent": {Permanent: true, Error: "wrapped: no such video"},
			"later":     {RetryAt: now + 60_000, Error: "busy"},
			"plain":     {Error: "oops"},
		} {
			if got := w.final(w.assign("n", class, 1)[0]); got.Kind != task.ReportFailed || got.Permanent != want.Permanent || got.RetryAt != want.RetryAt || got.Error != want.Error {
				w.t.Errorf("%s: %+v", class, got)
			}
		}
		tk, err := w.Task("typed", "not a number")
		w.ok(err)
		w.ok(w.Assign(w.ctx, "n", tk))
		if got := w.final(tk); !got.Permanent {
			w.t.Errorf("attachments that do not decode are tried again: %+v", got)
		}
	})
}

func TestTimeoutAndDeadlineEndARun(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", nil)
		b := newBlocker()
		node.Handle(n, "c", b.run)
		w.start(n)
		began := time.Now()
		timed := w.limited("c", func(tk *events.AssignedTask) { tk.TimeoutMs = 500 })
		if got := w.final(timed); got.Kind != task.ReportFailed || got.Permanent || !strings.Contains(got.Error, "timeoutMs") || time.Since(began) != 500*time.Millisecond {
			w.t.Errorf("after %s: %+v", time.Since(began), got)
		}
		if cause := <-b.ended; !errors.Is(cause, node.ErrTimeout) {
			w.t.Errorf("cause %v", cause)
		}
		late := w.limited("c", func(tk *events.AssignedTask) { tk.DeadlineDateTime = time.Now().UnixMilli() + 700 })
		began = time.Now()
		if got := w.final(late); got.Kind != task.ReportFailed || !got.Permanent || time.Since(began) != 700*time.Millisecond {
			w.t.Errorf("after %s: %+v", time.Since(began), got)
		}
		if cause := <-b.ended; !errors.Is(cause, node.ErrDeadline) {
			w.t.Errorf("cause %v", cause)
		}
		over := w.limited("c", func(tk *events.AssignedTask) { tk.DeadlineDateTime = 1 })
		if got := w.final(over); got.Kind != task.ReportFailed || !got.Permanent {
			w.t.Errorf("%+v", got)
		}
		if cause := <-b.ended; cause == nil {
			w.t.Error("it ended without a cause")
		}
	})
}

// A drain from outside waits for a handler however long it takes; a cancel that comes meanwhile does not.
func TestACancelIsCarriedOutThoughADrainHasEndedTheContext(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", nil)
		began, resting, free := make(chan struct{}), make(chan struct{}), make(chan struct{})
		node.Handle(n, "stubborn", func(ctx context.Context, _ any) (any, error) {
			close(began)
			tk := node.TaskFrom(ctx)
			<-tk.Paused()
			close(resting)
			err := tk.WaitWhilePaused(ctx)
			<-free
			return nil, err
		})
		stop := w.start(n)
		tk := w.assign("n", "stubborn", 1)[0]
		<-began
		w.ok(w.Command(w.ctx, "n", events.CommandPause, tk))
		<-resting
		w.wantLast(tk, task.ReportPaused)
		w.ok(w.Drain(w.ctx, "n", true))
		pass(time.Minute)
		w.wantLast(tk, task.ReportPaused)
		asked := time.Now()
		for range 3 { // the leader repeats it
			w.ok(w.Cancel(w.ctx, "n", tk))
			pass(500 * time.Millisecond)
		}
		if r := w.final(tk); r.Kind != task.ReportCancelled || time.Since(asked) != 10*time.Second {
			w.t.Errorf("after %s: %+v", time.Since(asked), r)
		}
		close(free)
		w.ok(stop())
	})
}

func TestAHandlerThatIgnoresItsContextIsAbandoned(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(w *world, tk events.AssignedTask)
		kind task.Kind
	}{
		"cancel":   {func(w *world, tk events.AssignedTask) { w.ok(w.Cancel(w.ctx, "n", tk)) }, task.ReportCancelled},
		"timeout":  {func(*world, events.AssignedTask) {}, task.ReportFailed},
		"deadline": {func(*world, events.AssignedTask) {}, task.ReportFailed},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				n := w.node("n", func(c *node.Config) { c.Capacity, c.Prefetch = 1, 1 })
				b := newBlocker()
				node.Handle(n, "stubborn", b.stubborn)
				node.Handle(n, "c", noop)
				stop := w.start(n)
				began := time.Now()
				tk := w.limited("stubborn", func(tk *events.AssignedTask) {
					switch name {
					case "timeout":
						tk.TimeoutMs = 1000
					case "deadline":
						tk.DeadlineDateTime = time.Now().UnixMilli() + 1000
					}
				})
				<-b.began
				c.end(w, tk)
				got := w.final(tk)
				if got.Kind != c.kind || !strings.Contains(got.Error, "abandoned") || time.Since(began) < 10*time.Second {
					w.t.Fatalf("after %s: %+v", time.Since(began), got)
				}
				if c.kind == task.ReportFailed && !got.Permanent {
					w.t.Error("it would run again while it may still be at work")
				}
				// Its slot is lost: another task waits until the handler returns.
				behind := w.assign("n", "c", 1)[0]
				pass(time.Minute)
				if kinds := w.kinds(behind); len(kinds) != 0 {
					w.t.Errorf("another task has begun: %v", kinds)
				}
				close(b.free)
				if r := w.final(behind); r.Kind != task.ReportFinished {
					w.t.Errorf("%+v", r)
				}
				if r := w.final(tk); r.Kind != c.kind {
					w.t.Errorf("what the handler returned was not refused: %+v", r)
				}
				w.ok(stop())
			})
		})
	}
}
