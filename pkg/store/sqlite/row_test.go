package sqlite

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// filled is a task in which every field is set, also those that this package does not know.
func filled(t *testing.T) task.Task {
	t.Helper()
	var full task.Task
	fill(t, reflect.ValueOf(&full).Elem())
	full.LifecycleStatus, full.Mode = task.Running, task.ModeActive
	full.Attachments, full.Result = json.RawMessage(`{"a":1}`), json.RawMessage(`[1.0]`)
	return full
}

func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("text")
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8:
		v.SetUint('1')
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(t, v.Index(i))
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key)
		fill(t, value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(t, field)
		}
	default:
		t.Fatalf("a field of the kind %s: teach this test to fill it", v.Kind())
	}
}

// TestEveryFieldIsKept fails when the task gets a field that has no place in the file.
func TestEveryFieldIsKept(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	want := filled(t)
	mustCreate(t, s, want)
	if got := mustGet(t, s, want.ID); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v: give the field a column, or a place in spec or run", got, want)
	}
	err := s.Active(t.Context(), func(got *task.Task) error {
		light := want
		light.Attachments, light.Result = nil, nil
		if !reflect.DeepEqual(*got, light) {
			t.Errorf("light %+v", got)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRowsThatDoNotDecode: what somebody has spoilt in the file stops nothing.
func TestRowsThatDoNotDecode(t *testing.T) {
	t.Parallel()
	big := json.RawMessage(`"` + strings.Repeat("x", inlineBytes) + `"`)
	cases := map[string]struct{ spoil, reason string }{
		"spec":             {`UPDATE tasks SET spec = '{"source":' WHERE id = ?`, "column spec does not decode"},
		"run":              {`UPDATE tasks SET run = '[]' WHERE id = ?`, "column run does not decode"},
		"attachments":      {`UPDATE tasks SET attachments = x'7b' WHERE id = ?`, "column attachments is not JSON"},
		"attachments lost": {`DELETE FROM bodies WHERE n = (SELECT n FROM tasks WHERE id = ?)`, "column attachments is not JSON"},
		"result":           {`UPDATE tasks SET result = x'ff' WHERE id = ?`, "column result is not JSON"},
	}
	s := fresh(t)
	for name := range cases {
		spoilt := waits(1)
		spoilt.ID, spoilt.Attachments = name, big
		mustCreate(t, s, spoilt)
		s.sql(t, cases[name].spoil, name)
	}
	good := waits(2)
	mustCreate(t, s, good)
	page, err := s.Waiting(t.Context(), demoQueue, store.Place{}, 10)
	if err != nil || len(page.Bad) != len(cases) || len(page.Tasks) != 1 || page.Tasks[0].ID != good.ID {
		t.Fatalf("page %+v, error %v", page, err)
	}
	for _, b := range page.Bad {
		got := mustGet(t, s, b.ID)
		if want := cases[b.ID].reason; !strings.Contains(b.Reason, want) || got.LifecycleStatus != task.Failed || got.Error != b.Reason || got.FinishDateTime == 0 {
			t.Errorf("%s: reason %q, want %q; now %+v", b.ID, b.Reason, want, got)
		}
		if ok, err := s.Purge(t.Context(), b.ID); err != nil || !ok {
			t.Errorf("purge %s: %t, %v", b.ID, ok, err)
		}
	}
	if page, err = s.Waiting(t.Context(), demoQueue, store.Place{}, 10); err != nil || len(page.Bad) != 0 || len(page.Tasks) != 1 {
		t.Errorf("the second page %+v, error %v", page, err)
	}
}

// TestLargeAttachmentsStandApart: they are not written again with each change, and go with their task.
func TestLargeAttachmentsStandApart(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	text := func(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", n-2) + `"`) }
	update := func(from int64, to json.RawMessage) {
		t.Helper()
		c := task.Change{ID: "a", From: task.Set(task.Created), To: task.Created, Update: &task.Update{From: from, Attachments: to}}
		if n, err := s.Apply(t.Context(), []task.Change{c}); err != nil || n != 1 {
			t.Fatalf("update: %d, %v", n, err)
		}
		if got := mustGet(t, s, "a"); string(got.Attachments) != string(to) {
			t.Fatalf("attachments of %d bytes; want %d", len(got.Attachments), len(to))
		}
	}
	apart := func(want string) {
		t.Helper()
		if got := s.sql(t, "SELECT count(*) FROM bodies")[0]; got != want {
			t.Fatalf("%s bodies; want %s", got, want)
		}
	}
	tk := waits(0)
	tk.ID, tk.Attachments = "a", text(inlineBytes)
	mustCreate(t, s, tk)
	apart("0")
	update(0, text(inlineBytes+1))
	apart("1")
	update(1, text(100_000))
	apart("1")
	update(2, nil)
	apart("0")
	update(3, text(5000))
	apart("1")
	page, err := s.Waiting(t.Context(), demoQueue, store.Place{}, 1)
	if err != nil || len(page.Tasks) != 1 || len(page.Tasks[0].Attachments) != 5000 {
		t.Fatalf("page %v, %v", page.Tasks, err)
	}
	if n, err := s.Apply(t.Context(), []task.Change{task.Refuse(&page.Tasks[0], "no", 5)}); err != nil || n != 1 {
		t.Fatalf("refuse: %d, %v", n, err)
	}
	apart("1")
	if n, err := s.Expire(t.Context(), 6, 10); err != nil || n != 1 {
		t.Fatalf("expire: %d, %v", n, err)
	}
	apart("0")
}
