package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
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
