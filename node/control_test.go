package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
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

func TestS18_ControlWaitsForNoHandler(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", func(c *node.Config) { c.Capacity = 200 })
		b := newBlocker()
		node.Handle(n, "stubborn", b.stubborn)
		node.Handle(n, "c", noop)
		w.start(n)
		stubborn := w.assign("n", "stubborn", 100)
		for range stubborn {
			<-b.began
		}
		began := time.Now()
		w.ok(w.Cancel(w.ctx, "n", stubborn...))
		behind := w.assign("n", "c", 1)[0]
		if r := w.final(behind); r.Kind != task.ReportFinished {
			w.t.Errorf("behind the cancels: %s", r.Kind)
		}
		if passed := time.Since(began); passed > 50*time.Millisecond {
			w.t.Errorf("an assign behind 100 cancels took %v", passed)
		}
		synctest.Wait() // the cancels have arrived
		for _, tk := range stubborn {
			if slices.ContainsFunc(w.kinds(tk), task.Kind.Final) {
				w.t.Fatalf("%s ended before its handler: %v", tk.ID, w.kinds(tk))
			}
		}
		close(b.free)
		for _, tk := range stubborn {
			if r := w.final(tk); r.Kind != task.ReportCancelled {
				w.t.Fatalf("%s ended as %s", tk.ID, r.Kind)
			}
		}
	})
}

func TestCancel(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", func(c *node.Config) { c.Capacity, c.Prefetch = 1, 5 })
		b := newBlocker()
		node.Handle(n, "c", b.run)
		node.Handle(n, "finishes", func(ctx context.Context, _ any) (string, error) {
			b.began <- node.TaskFrom(ctx).ID
			<-ctx.Done()
			return "well", nil
		})
		node.Handle(n, "complains", func(ctx context.Context, _ any) (any, error) {
			b.began <- node.TaskFrom(ctx).ID
			<-ctx.Done()
			return nil, errors.New("half a file is left")
		})
		w.start(n)

		running := w.assign("n", "c", 1)[0]
		<-b.began
		waiting := w.assign("n", "c", 1)[0]
		synctest.Wait()
		w.ok(w.Cancel(w.ctx, "n", waiting))
		if r := w.final(waiting); r.Kind != task.ReportCancelled || r.StartedAt != 0 {
			w.t.Errorf("queued: %+v", r)
		}
		w.ok(w.Cancel(w.ctx, "n", running))
		if cause := <-b.ended; !errors.Is(cause, node.ErrCancelled) {
			w.t.Errorf("cause %v", cause)
		}
		if r := w.final(running); r.Kind != task.ReportCancelled || r.Error != "" {
			w.t.Errorf("running: %+v", r)
		}

		early, err := w.Task("c", nil)
		w.ok(err)
		w.ok(w.Cancel(w.ctx, "n", early))
		synctest.Wait()
		w.ok(w.Assign(w.ctx, "n", early))
		if r := w.final(early); r.Kind != task.ReportCancelled || r.StartedAt != 0 {
			w.t.Errorf("cancelled before it arrived: %+v", r)
		}

		for class, want := range map[string]task.Report{
			"finishes":  {Kind: task.ReportFinished, Result: json.RawMessage(`"well"`)},
			"complains": {Kind: task.ReportCancelled, Error: "half a file is left"},
		} {
			tk := w.assign("n", class, 1)[0]
			<-b.began
			w.ok(w.Cancel(w.ctx, "n", tk))
			if r := w.final(tk); r.Kind != want.Kind || string(r.Result) != string(want.Result) || r.Error != want.Error {
				w.t.Errorf("%s: %+v", class, r)
			}
		}
	})
}
