package node_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestPauseAndResume(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", nil)
		made := make(chan int, 100)
		node.Handle(n, "c", steps(made))
		stop := w.start(n)
		tk := w.assign("n", "c", 1)[0]
		<-made
		w.ok(w.Command(w.ctx, "n", events.CommandPause, tk))
		synctest.Wait()
		w.wantLast(tk, task.ReportStarted) // it has not come to rest yet
		<-made
		w.wantLast(tk, task.ReportPaused)
		pass(time.Minute)
		if len(made) != 0 {
			w.t.Errorf("%d steps while it was paused", len(made))
		}
		before := len(w.kinds(tk))
		w.ok(w.Command(w.ctx, "n", events.CommandPause, tk))
		w.wantLast(tk, task.ReportPaused)
		if len(w.kinds(tk)) != before+1 {
			w.t.Error("a repeated wish is not answered")
		}
		w.ok(w.Command(w.ctx, "n", events.CommandResume, tk))
		w.wantLast(tk, task.ReportResumed)
		<-made
		w.ok(w.Command(w.ctx, "n", events.CommandPause, tk))
		<-made
		w.wantLast(tk, task.ReportPaused)
		w.ok(w.Command(w.ctx, "n", events.CommandCancel, tk))
		if r := w.final(tk); r.Kind != task.ReportCancelled {
			w.t.Errorf("ended as %s", r.Kind)
		}
		w.ok(stop())
	})
}

func TestAPauseThatNobodyLooksAtIsNotReported(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", nil)
		asked := make(chan struct{})
		b := newBlocker()
		node.Handle(n, "c", b.run)
		node.Handle(n, "looks", func(ctx context.Context, _ any) (any, error) {
			tk := node.TaskFrom(ctx)
			for range 2 {
				<-tk.Paused()
				asked <- struct{}{}
				<-asked
				if err := tk.WaitWhilePaused(ctx); err != nil {
					return nil, err
				}
			}
			return nil, nil
		})
		stop := w.start(n)
		blind, tk := w.assign("n", "c", 1)[0], w.assign("n", "looks", 1)[0]
		<-b.began
		w.ok(w.Command(w.ctx, "n", events.CommandPause, blind, tk))
		<-asked
		w.wantLast(blind, task.ReportStarted)
		w.wantLast(tk, task.ReportStarted)
		w.ok(w.Command(w.ctx, "n", events.CommandResume, tk)) // before it rests
		synctest.Wait()
		asked <- struct{}{}
		w.wantLast(tk, task.ReportResumed)
		w.ok(w.Command(w.ctx, "n", events.CommandPause, tk))
		<-asked
		asked <- struct{}{}
		w.wantLast(tk, task.ReportPaused)
		w.ok(w.Command(w.ctx, "n", events.CommandResume, tk))
		if r := w.final(tk); r.Kind != task.ReportFinished {
			w.t.Errorf("%+v", r)
		}
		close(b.free)
		w.final(blind)
		w.ok(stop())
	})
}

func TestAPauseOfWhatHasNotStartedGivesItBack(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", func(c *node.Config) { c.Capacity, c.Prefetch = 1, 1 })
		b := newBlocker()
		node.Handle(n, "c", b.run)
		stop := w.start(n)
		list := w.assign("n", "c", 2)
		<-b.began
		w.ok(w.Command(w.ctx, "n", events.CommandPause, list[1]))
		if r := w.final(list[1]); r.Kind != task.ReportReleased || r.StartedAt != 0 {
			w.t.Errorf("%+v", r)
		}
		early, err := w.Task("c", nil) // the wish comes before the claim
		w.ok(err)
		undone, err := w.Task("c", nil)
		w.ok(err)
		w.ok(w.Command(w.ctx, "n", events.CommandPause, early))
		w.ok(w.Command(w.ctx, "n", events.CommandCancel, undone))
		w.ok(w.Command(w.ctx, "n", events.CommandResume, undone))
		synctest.Wait()
		w.ok(w.Assign(w.ctx, "n", early, undone))
		if r := w.final(early); r.Kind != task.ReportReleased {
			w.t.Errorf("%+v", r)
		}
		close(b.free)
		if r := w.final(undone); r.Kind != task.ReportFinished {
			w.t.Errorf("%+v", r)
		}
		w.ok(stop())
	})
}

func TestWhatPausesWhileItsNodeDrainsIsGivenBack(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", nil)
		made := make(chan int, 100)
		node.Handle(n, "c", steps(made))
		stop := w.start(n)
		tk := w.assign("n", "c", 1)[0]
		<-made
		w.ok(w.Drain(w.ctx, "n", true))
		<-made // it goes on
		w.ok(w.Command(w.ctx, "n", events.CommandPause, tk))
		if r := w.final(tk); r.Kind != task.ReportReleased {
			w.t.Errorf("%+v", r)
		}
		w.ok(stop())
	})
}

func TestAPauseStopsTheTimeoutAndNotTheDeadline(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", nil)
		made := make(chan int, 10_000)
		node.Handle(n, "c", steps(made))
		w.start(n)
		began := time.Now()
		timed := w.limited("c", func(tk *events.AssignedTask) { tk.TimeoutMs = 5500 })
		for range 2 { // it is paused after 2 and 4 of its seconds
			<-made
			w.ok(w.Command(w.ctx, "n", events.CommandPause, timed))
			<-made
			w.wantLast(timed, task.ReportPaused)
			pass(time.Minute)
			w.ok(w.Command(w.ctx, "n", events.CommandResume, timed))
			w.wantLast(timed, task.ReportResumed)
		}
		if r := w.final(timed); r.Kind != task.ReportFailed || time.Since(began) != 2*time.Minute+5500*time.Millisecond {
			w.t.Errorf("after %s: %+v", time.Since(began), r)
		}
		for len(made) > 0 {
			<-made
		}
		began = time.Now()
		late := w.limited("c", func(tk *events.AssignedTask) { tk.DeadlineDateTime = time.Now().UnixMilli() + 10_000 })
		<-made
		w.ok(w.Command(w.ctx, "n", events.CommandPause, late))
		if r := w.final(late); r.Kind != task.ReportFailed || time.Since(began) != 10*time.Second {
			w.t.Errorf("after %s: %+v", time.Since(began), r)
		}
	})
}

func TestAPausedRunDoesNotHoldUpTheStop(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", nil)
		made := make(chan int, 100)
		node.Handle(n, "c", steps(made))
		stop := w.start(n)
		tk := w.assign("n", "c", 1)[0]
		<-made
		w.ok(w.Command(w.ctx, "n", events.CommandPause, tk))
		<-made
		w.wantLast(tk, task.ReportPaused)
		if took, err := waits(stop); err != nil || took > time.Second {
			w.t.Errorf("the stop took %s: %v", took, err)
		}
		if r := w.final(tk); r.Kind != task.ReportReleased {
			w.t.Errorf("%+v", r)
		}
	})
}
