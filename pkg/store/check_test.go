package store_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestCheckJSON(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, in, want string // want is a part of the error; empty = none
	}{
		{"nothing", "", ""},
		{"an object", `{"a":[1,2.5,"x"]}`, ""},
		{"a NUL in a value", `{"a":"\u0000","b":["\u0000"]}`, ""},
		{"an escaped backslash before u0000 in a key", `{"a\\u0000":1}`, ""},
		{"a NUL in a key", `{"a\u0000b":1}`, "NUL"},
		{"a NUL in a key deep down, blanks before the colon", `[{"x":"\u0000"},{"\u0000" :1}]`, "NUL"},
		{"cut off", `{"a":`, "not JSON"},
		{"two values", `1 2`, "not JSON"},
		{"not UTF-8", "\"\xff\"", "not UTF-8"},
		{"a long text is cut in the error", strings.Repeat("x", 1000), `xxxx"...`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := store.CheckJSON(json.RawMessage(c.in))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v; want %q", err, c.want)
			}
		})
	}
}

// FuzzCheckJSON: what it lets pass has no key with a NUL, by the decoder's reading.
func FuzzCheckJSON(f *testing.F) {
	for _, s := range []string{`{"a\u0000":1}`, `{"a":"\u0000"}`, `["\\u0000",{"b" : {"\u0000c":1}}]`, `"\"\u0000"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if store.CheckJSON(raw) != nil || len(raw) == 0 {
			return
		}
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatalf("passed, but does not decode: %v", err)
		}
		var walk func(any)
		walk = func(v any) {
			switch v := v.(type) {
			case map[string]any:
				for k, e := range v {
					if strings.ContainsRune(k, 0) {
						t.Fatalf("passed with the key %q", k)
					}
					walk(e)
				}
			case []any:
				for _, e := range v {
					walk(e)
				}
			default:
			}
		}
		walk(v)
	})
}

func TestCheckNew(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		set  func(*task.Task)
		want string
	}{
		{"good", func(*task.Task) {}, ""},
		{"an edge node's own", func(t *task.Task) { t.Mode = task.ModeActive }, ""},
		{"no id", func(t *task.Task) { t.ID = "" }, "id is empty"},
		{"unknown status", func(t *task.Task) { t.LifecycleStatus = "Sleeping" }, `"Sleeping"`},
		{"unknown mode", func(t *task.Task) { t.Mode = "passive" }, `"passive"`},
		{"bad attachments", func(t *task.Task) { t.Attachments = json.RawMessage(`{`) }, "attachments: not JSON"},
		{"bad result", func(t *task.Task) { t.Result = json.RawMessage(`{`) }, "result: not JSON"},
		{"a label with a NUL", func(t *task.Task) { t.Labels = map[string]string{"a\x00": "b"} }, "NUL"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tk := task.Task{ID: "a", LifecycleStatus: task.Created, Mode: task.ModePassive}
			c.set(&tk)
			err := store.CheckNew(&tk)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v; want %q", err, c.want)
			}
		})
	}
}

func TestFilterCheck(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		f    store.Filter
		ok   bool
	}{
		{"smallest", store.Filter{Limit: 1}, true},
		{"largest", store.Filter{Limit: store.MaxBatch, Skip: 5}, true},
		{"no limit", store.Filter{}, false},
		{"over the limit", store.Filter{Limit: store.MaxBatch + 1}, false},
		{"negative skip", store.Filter{Limit: 1, Skip: -1}, false},
		{"skip and cursor", store.Filter{Limit: 1, Skip: 1, Cursor: "x"}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if err := c.f.Check(); (err == nil) != c.ok {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestCursor(t *testing.T) {
	t.Parallel()
	for _, tk := range []task.Task{{ID: "a", CreateDateTime: 5}, {}, {ID: "x\x00é", CreateDateTime: -1}} {
		at, id, err := store.ParseCursor(store.Cursor(&tk))
		if err != nil || at != tk.CreateDateTime || id != tk.ID {
			t.Errorf("%+v came back as %d, %q, %v", tk, at, id, err)
		}
	}
	for _, bad := range []string{"", "x", "AAAA", "!!!", "AgAAAAAAAAAAYQ"} {
		if _, _, err := store.ParseCursor(bad); !errors.Is(err, store.ErrBadCursor) {
			t.Errorf("%q: error %v", bad, err)
		}
	}
}

func FuzzParseCursor(f *testing.F) {
	f.Add(store.Cursor(&task.Task{ID: "a", CreateDateTime: 5}))
	f.Fuzz(func(t *testing.T, s string) {
		at, id, err := store.ParseCursor(s)
		if err != nil {
			return
		}
		if back, id2, err := store.ParseCursor(store.Cursor(&task.Task{ID: id, CreateDateTime: at})); err != nil || back != at || id2 != id {
			t.Fatalf("%q: %d %q, then %d %q, %v", s, at, id, back, id2, err)
		}
	})
}

func TestAfter(t *testing.T) {
	t.Parallel()
	got := store.After(&task.Task{ID: "a", Priority: 3, CreateDateTime: 9})
	if want := (store.Place{Set: true, CreateDateTime: 9, ID: "a"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
