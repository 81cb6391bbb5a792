package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/node/nodetest"
	"github.com/skalds-go/skalds/pkg/task"
)

type point struct{ X, Y int }

func TestHandlerEnds(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", nil)
		node.Handle(n, "swap", func(_ context.Context, in point) (point, error) { return point{in.Y, in.X}, nil })
		node.Handle(n, "raw", func(_ context.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil })
		node.Handle(n, "fail", func(context.Context, any) (any, error) { return nil, errors.New("no <such> file") })
		node.Handle(n, "long", func(context.Context, any) (any, error) { return nil, errors.New(strings.Repeat("ä", 1<<20)) })
		node.Handle(n, "panic", func(context.Context, any) (any, error) { panic("at the disco") })
		node.Handle(n, "exit", func(context.Context, any) (any, error) { runtime.Goexit(); return nil, nil })
		node.Handle(n, "huge", func(context.Context, any) (string, error) { return strings.Repeat("x", 256<<10), nil })
		node.Handle(n, "full", func(context.Context, any) (string, error) { return strings.Repeat("<", 256<<10-2), nil })
		node.Handle(n, "chan", func(context.Context, any) (any, error) { return make(chan int), nil })
		w.start(n)
		for _, tc := range []struct {
			class  string
			in     any
			kind   task.Kind
			result string
			text   string
		}{
			{"swap", point{1, 2}, task.ReportFinished, `{"X":2,"Y":1}`, ""},
			{"swap", nil, task.ReportFinished, `{"X":0,"Y":0}`, ""},
			{"swap", map[string]any{"X": 3, "Z": []int{1}}, task.ReportFinished, `{"X":0,"Y":3}`, ""},
			{"swap", "text", task.ReportFailed, "", "attachments do not decode into node_test.point"},
			{"raw", []string{"<ä>"}, task.ReportFinished, "", ""},
			{"raw", nil, task.ReportFinished, "", ""},
			{"fail", nil, task.ReportFailed, "", "no <such> file"},
			{"long", nil, task.ReportFailed, "", "ää"},
			{"panic", nil, task.ReportFailed, "", "panic: at the disco\n\ngoroutine"},
			{"exit", nil, task.ReportFailed, "", "runtime.Goexit"},
			{"huge", nil, task.ReportFailed, "", "the result has 262146 bytes, RESULT_MAX_BYTES is 262144"},
			{"full", nil, task.ReportFinished, "", ""},
			{"chan", nil, task.ReportFailed, "", "result of type chan int does not encode"},
			{"nobody", nil, task.ReportRejected, "", `no handler for class "nobody"`},
		} {
			r, err := w.Do(w.ctx, "n", tc.class, tc.in)
			w.ok(err)
			if r.Kind != tc.kind || (tc.result != "" && string(r.Result) != tc.result) || !strings.HasPrefix(r.Error, tc.text) &&
				!strings.Contains(r.Error, tc.text) {
				w.t.Errorf("%s of %v: %s, result %.60s, error %.200q", tc.class, tc.in, r.Kind, r.Result, r.Error)
			}
			if (tc.text == "") != (r.Error == "") || len(r.Error) > 8<<10 || !utf8.ValidString(r.Error) {
				w.t.Errorf("%s: error of %d bytes %.60q", tc.class, len(r.Error), r.Error)
			}
			if tc.kind != task.ReportRejected && (r.StartedAt == 0 || r.FinishedAt < r.StartedAt) {
				w.t.Errorf("%s: started at %d, finished at %d", tc.class, r.StartedAt, r.FinishedAt)
			}
		}
	})
}

func TestTaskInContext(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", nil)
		got := make(chan *node.Task, 1)
		node.Handle(n, "c", func(ctx context.Context, _ any) (any, error) {
			got <- node.TaskFrom(ctx)
			return ctx.Value(worldKey{}), nil
		})
		stop, err := w.Start(context.WithValue(w.ctx, worldKey{}, "from Run"), n)
		w.ok(err)
		defer func() { w.ok(stop()) }()
		r, err := w.Do(w.ctx, "n", "c", nil)
		w.ok(err)
		if string(r.Result) != `"from Run"` {
			w.t.Errorf("the context of Run has not come through: %s", r.Result)
		}
		if tk := <-got; tk.ID != "task-1" || tk.ClassName != "c" || tk.Attempt != 1 || tk.Logger() == nil {
			w.t.Errorf("task %+v", tk)
		}
	})
}

type worldKey struct{}

func TestTaskOutsideARun(t *testing.T) {
	t.Parallel()
	tk := node.TaskFrom(context.Background())
	tk.Progress(50, "half")
	if tk.ID != "" || tk.Logger() == nil {
		t.Errorf("task %+v", tk)
	}
}

func TestMiddleware(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", nil)
		var order []string
		wrap := func(name string) node.Middleware {
			return func(next node.Handler) node.Handler {
				return func(ctx context.Context, in json.RawMessage) (json.RawMessage, error) {
					order = append(order, name+" "+node.TaskFrom(ctx).ClassName)
					return next(ctx, in)
				}
			}
		}
		n.Use(wrap("outer"))
		node.Handle(n, "c", noop)
		n.Use(wrap("middle"), wrap("inner"), func(node.Handler) node.Handler {
			return func(context.Context, json.RawMessage) (json.RawMessage, error) { return json.RawMessage(`{]`), nil }
		})
		w.start(n)
		r, err := w.Do(w.ctx, "n", "c", nil)
		w.ok(err)
		if want := []string{"outer c", "middle c", "inner c"}; !reflect.DeepEqual(order, want) {
			w.t.Errorf("order %v, want %v", order, want)
		}
		if r.Kind != task.ReportFailed || !strings.Contains(r.Error, "not JSON") {
			w.t.Errorf("a result that is no JSON: %+v", r)
		}
	})
}

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
			w.ok(w.Settle(w.ctx, "n", claims...))
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
		w.ok(w.Settle(w.ctx, "n", tk.ClaimID))
		again()
		if got := len(w.kinds(tk)); got != 4 || runs.Load() != 1 {
			w.t.Errorf("after it was settled: %d reports, %d runs", got, runs.Load())
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
		w.ok(w.Settle(w.ctx, "n", tk.ClaimID))
		synctest.Wait()
		had = len(w.kinds(tk))
		pass(100 * time.Second)
		if got := len(w.kinds(tk)) - had; got != 0 {
			w.t.Errorf("sent again %d times after it was settled", got)
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

func TestHandlePanics(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		class string
		want  string
	}{
		"empty":             {"", "empty"},
		"too long":          {strings.Repeat("c", 257), "257 bytes"},
		"not UTF-8":         {"a\xff", "UTF-8"},
		"control character": {"a\nb", "control"},
		"twice":             {"there", "already"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, err := node.New(nodetest.Config("n"))
			if err != nil {
				t.Fatal(err)
			}
			node.Handle(n, "there", noop)
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, tc.want) {
					t.Errorf("panic %q, want one with %q", got, tc.want)
				}
			}()
			node.Handle(n, tc.class, noop)
		})
	}
	if n, err := node.New(nodetest.Config("n")); err != nil {
		t.Error(err)
	} else {
		node.Handle(n, strings.Repeat("c", 256), noop)
	}
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

func TestNewNamesEveryProblem(t *testing.T) {
	t.Setenv("NODE_CAPACITY", "many")
	t.Setenv("DRAIN_HARD", "-1s")
	_, err := node.New(node.ConfigFromEnv())
	if err == nil || !strings.Contains(err.Error(), "NODE_CAPACITY") || !strings.Contains(err.Error(), "DRAIN_HARD") {
		t.Errorf("error %v", err)
	}
	if _, err := node.New(node.Config{}); err == nil {
		t.Error("the zero Config is taken")
	}
}

func TestTooManyClassesAreRefusedAtOnce(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node("n", nil)
		for i := range 300 {
			node.Handle(n, fmt.Sprintf("%0250d", i), noop)
		}
		if err := n.Run(w.ctx); err == nil || !strings.Contains(err.Error(), "classes") {
			w.t.Errorf("error %v", err)
		}
	})
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		opts []node.Option
		want string
	}{
		"as given":   {[]node.Option{node.WithVersion("1.2.3")}, "1.2.3"},
		"by default": {nil, "(devel)"}, // of a test binary
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				n := w.node("n", nil, tt.opts...)
				node.Handle(n, "c", noop)
				w.start(n)
				if got, _, err := w.Registry.Node(w.ctx, "n"); err != nil || got.Version != tt.want {
					w.t.Errorf("version %q, %v; want %q", got.Version, err, tt.want)
				}
			})
		})
	}
}
