package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

// steps is a handler that makes a step every second and rests between two of them.
func steps(made chan<- int) func(context.Context, any) (any, error) {
	return func(ctx context.Context, _ any) (any, error) {
		for n := 1; ; n++ {
			if err := node.TaskFrom(ctx).WaitWhilePaused(ctx); err != nil {
				return nil, err
			}
			select {
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case <-time.After(time.Second):
				made <- n
			}
		}
	}
}

// last is the kind of a claim's newest report.
func (w *world) last(t events.AssignedTask) task.Kind {
	synctest.Wait()
	kinds := w.kinds(t)
	if len(kinds) == 0 {
		return ""
	}
	return kinds[len(kinds)-1]
}

func (w *world) wantLast(t events.AssignedTask, want task.Kind) {
	w.t.Helper()
	if got := w.last(t); got != want {
		w.t.Fatalf("the newest report of %s says %q, want %q", t.ID, got, want)
	}
}

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

// A recall takes back what has not begun, and nothing else: what runs goes on, and says so.
func TestARecallTakesBackWhatHasNotBegun(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", func(c *node.Config) { c.Capacity, c.Prefetch = 1, 2 })
		b := newBlocker()
		node.Handle(n, "c", b.run)
		stop := w.start(n)
		list := w.assign("n", "c", 3)
		<-b.began
		w.ok(w.Command(w.ctx, "n", events.CommandRecall, list[1])) // queued
		if r := w.final(list[1]); r.Kind != task.ReportReleased || r.StartedAt != 0 {
			w.t.Errorf("%+v", r)
		}
		synctest.Wait()
		before := len(w.kinds(list[0]))
		w.ok(w.Command(w.ctx, "n", events.CommandRecall, list[0])) // running
		w.wantLast(list[0], task.ReportStarted)
		if after := len(w.kinds(list[0])); after != before+1 {
			w.t.Errorf("it answered %d times", after-before)
		}
		early, err := w.Task("c", nil) // not here yet
		w.ok(err)
		w.ok(w.Command(w.ctx, "n", events.CommandRecall, early))
		synctest.Wait()
		w.ok(w.Assign(w.ctx, "n", early))
		if r := w.final(early); r.Kind != task.ReportReleased || r.StartedAt != 0 {
			w.t.Errorf("%+v", r)
		}
		w.ok(w.Assign(w.ctx, "n", early, list[1])) // late copies begin nothing
		close(b.free)
		for _, t := range []events.AssignedTask{list[0], list[2]} {
			if r := w.final(t); r.Kind != task.ReportFinished {
				w.t.Errorf("%+v", r)
			}
		}
		w.ok(w.Command(w.ctx, "n", events.CommandRecall, list[0])) // ended
		w.wantLast(list[0], task.ReportFinished)
		w.wantLast(early, task.ReportReleased)
		w.wantLast(list[1], task.ReportReleased)
		w.ok(stop())
	})
}

func TestUpdatesEndAtTheNewest(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", func(c *node.Config) { c.Capacity, c.Prefetch = 1, 1 })
		begin, got := make(chan struct{}), make(chan string, 10)
		node.Handle(n, "c", func(ctx context.Context, in json.RawMessage) (any, error) {
			got <- string(in)
			<-begin
			updates := node.TaskFrom(ctx).Updates()
			for {
				select {
				case in := <-updates:
					got <- string(in)
				case <-ctx.Done():
					return nil, context.Cause(ctx)
				}
			}
		})
		stop := w.start(n)
		list := w.assign("n", "c", 2)
		first, second := list[0], list[1]
		update := func(tk events.AssignedTask, version int64, attachments string) {
			tk.Attachments, tk.AttachmentsVersion = json.RawMessage(attachments), version
			w.ok(w.Command(w.ctx, "n", events.CommandUpdate, tk))
			synctest.Wait()
		}
		<-got
		for v, text := range []string{`"one"`, `"two"`, `"three"`} {
			update(first, int64(v+1), text)
		}
		update(first, 2, `"late"`)
		close(begin)
		if in := <-got; in != `"three"` {
			w.t.Errorf("the handler gets %s first", in)
		}
		update(first, 4, "")
		if in := <-got; in != "" {
			w.t.Errorf("no attachments came as %s", in)
		}
		reports := w.Reports(first.ClaimID)
		if r := reports[len(reports)-1]; r.Version != 4 || r.Kind != task.ReportStarted {
			w.t.Errorf("the leader hears %+v", r)
		}
		update(second, 7, `"queued"`)
		w.ok(w.Cancel(w.ctx, "n", first))
		if in := <-got; in != `"queued"` {
			w.t.Errorf("the queued one starts with %s", in)
		}
		w.ok(w.Cancel(w.ctx, "n", second))
		if r := w.final(second); r.Version != 7 {
			w.t.Errorf("%+v", r)
		}
		update(second, 8, `"over"`)
		w.ok(stop())
	})
}

func TestDrainedFromOutside(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", func(c *node.Config) { c.Capacity, c.Prefetch = 2, 1 })
		made := make(chan int, 100)
		b := newBlocker()
		node.Handle(n, "c", b.run)
		node.Handle(n, "steps", steps(made))
		stop := w.start(n)
		running, paused := w.assign("n", "c", 1)[0], w.assign("n", "steps", 1)[0]
		<-b.began
		<-made
		w.ok(w.Command(w.ctx, "n", events.CommandPause, paused))
		<-made
		w.wantLast(paused, task.ReportPaused)
		waiting := w.assign("n", "c", 1)[0]
		synctest.Wait()
		state := func() registry.State {
			synctest.Wait()
			rn, ok, err := w.Registry.Node(w.ctx, "n")
			if err != nil || !ok {
				w.t.Fatal(ok, err)
			}
			return rn.State
		}
		w.ok(w.Drain(w.ctx, "n", true))
		for _, tk := range []events.AssignedTask{waiting, paused} {
			if r := w.final(tk); r.Kind != task.ReportReleased {
				w.t.Errorf("%s: %+v", tk.ID, r)
			}
		}
		if r := w.final(w.assign("n", "c", 1)[0]); r.Kind != task.ReportReleased {
			w.t.Errorf("it takes work: %+v", r)
		}
		if s := state(); s != registry.Draining {
			w.t.Errorf("it says that it is %s", s)
		}
		w.wantLast(running, task.ReportStarted)
		w.ok(w.Drain(w.ctx, "n", false))
		if s := state(); s != registry.Online {
			w.t.Errorf("it says that it is %s", s)
		}
		again := w.assign("n", "c", 1)[0]
		<-b.began
		// One that stops takes no work, whatever is asked.
		stopped := make(chan error)
		go func() { stopped <- stop() }()
		synctest.Wait()
		w.ok(w.Drain(w.ctx, "n", false))
		if s := state(); s != registry.Draining {
			w.t.Errorf("while it stops it says that it is %s", s)
		}
		close(b.free)
		for _, tk := range []events.AssignedTask{running, again} {
			if r := w.final(tk); r.Kind != task.ReportFinished {
				w.t.Errorf("%+v", r)
			}
		}
		w.ok(<-stopped)
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

func TestSteeringWithoutARun(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	tk := node.TaskFrom(ctx)
	if tk.Paused() != nil || tk.Updates() != nil || tk.WaitWhilePaused(ctx) != nil {
		t.Error("an empty task is steered")
	}
	cause := errors.New("over")
	cancel(cause)
	if err := tk.WaitWhilePaused(ctx); !errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
}
