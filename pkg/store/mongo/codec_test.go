package mongo

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/skalds-go/skalds/pkg/task"
)

// filled sets every field of a struct to something that is not empty, so that a new field is tested as soon as it is
// there.
func filled(t testing.TB, v reflect.Value, n *int) {
	t.Helper()
	*n++
	switch {
	case v.Type() == rawJSON:
		v.SetBytes([]byte(`{"n":[1,2.5]}`))
		return
	case v.Type() == reflect.TypeFor[map[string]string]():
		v.Set(reflect.ValueOf(map[string]string{"b": "1", "a": "2"}))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(strings.Repeat("x", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n) << 40)
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(t, v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		filled(t, v.Index(0), n)
		filled(t, v.Index(1), n)
	case reflect.Struct:
		for _, f := range v.Fields() {
			filled(t, f, n)
		}
	default:
		t.Fatalf("no value for %s", v.Type())
	}
}

// TestEveryField: every field goes through the codec, and the driver's own codec finds the same names and types.
func TestEveryField(t *testing.T) {
	t.Parallel()
	var want, got task.Task
	n := 0
	filled(t, reflect.ValueOf(&want).Elem(), &n)
	doc := encode(&want)
	if err := decode(doc, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for f := range reflect.TypeFor[task.Task]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("bson"), ",")
		if _, err := doc.LookupErr(name); err != nil {
			t.Errorf("%s is not in the document: %v", name, err)
		}
	}
}

// TestLeavesOutWhatIsEmpty: above all idempotencyKey, whose index is sparse.
func TestLeavesOutWhatIsEmpty(t *testing.T) {
	t.Parallel()
	doc := encode(&task.Task{ID: "a", Labels: map[string]string{}, Attempts: []task.Run{}, Attachments: json.RawMessage{}})
	elements, err := doc.Elements()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range elements {
		names = append(names, e.Key())
	}
	const want = "_id id className mode isPersistent createDateTime updateDateTime deadlineDateTime lifecycleStatus priority notBefore queue"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestQueueOfADocument: a new document has its queue, the same that is read out of it again.
func TestQueueOfADocument(t *testing.T) {
	t.Parallel()
	for _, tk := range []task.Task{
		{ID: "a", ClassName: "c", Priority: 3}, {ID: "a", ClassName: "c", Labels: map[string]string{"zone": "n"}, Selector: "!spot", Pool: "p", NotBefore: 5},
		{ID: "a", ClassName: strings.Repeat("é", 200)},
	} {
		doc := encode(&tk)
		var got task.Task
		if err := decode(doc, &got); err != nil || got.Queue() != queueOf(doc) || queueOf(doc) != tk.Queue() || got.NotBefore != tk.NotBefore {
			t.Errorf("%+v: queue %q, then %q, error %v", tk, queueOf(doc), got.Queue(), err)
		}
	}
}

func TestLabelsAsAString(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		labels, selector any
		want             string
	}{
		{"alone", "zone=north, !spot", nil, "zone=north, !spot"},
		{"beside a selector", "zone=north", "gpu", "gpu,zone=north"},
		{"empty", "", "gpu", "gpu"},
		{"that does not parse", "a b", nil, "a b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got task.Task
			if err := judge(document(t, "labels", c.labels, "selector", c.selector), &got); err != nil || got.Selector != c.want || got.Labels != nil {
				t.Errorf("selector %q, labels %v, error %v; want %q", got.Selector, got.Labels, err, c.want)
			}
		})
	}
}

func TestPythonDocuments(t *testing.T) {
	t.Parallel()
	base := task.Task{ID: "sample-task-1", ClassName: "SleepWorker", Source: "Test", Mode: task.ModePassive, IsPersistent: true,
		CreateDateTime: 1796010393269, UpdateDateTime: 1796010393269, DeadlineDateTime: 1796615193269, LifecycleStatus: task.Created,
		Attachments: json.RawMessage(`{"totalSeconds":3600.0}`)}
	assigning, running := base, base
	assigning.LifecycleStatus, assigning.Executor = task.Assigning, "sample-node-1"
	running.LifecycleStatus, running.Executor, running.UpdateDateTime = task.Running, "sample-node-1", 1796010411389
	cancelled := running
	cancelled.LifecycleStatus, cancelled.UpdateDateTime, cancelled.Attachments = task.Cancelled, 1796010418749, json.RawMessage(`{"totalSeconds":1800.5}`)
	for name, want := range map[string]task.Task{
		"created.bson": base, "assigning.canonical.json": assigning, "running.canonical.json": running, "cancelled.canonical.json": cancelled,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := os.ReadFile(filepath.Join("testdata", "python.task."+name))
			if err != nil {
				t.Fatal(err)
			}
			doc := bson.Raw(b)
			if strings.HasSuffix(name, ".json") {
				if err := bson.UnmarshalExtJSON(b, true, &doc); err != nil {
					t.Fatal(err)
				}
			}
			var got task.Task
			if err := judge(doc, &got); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

// document is the smallest document of a script, with some fields set otherwise.
func document(t testing.TB, pairs ...any) bson.Raw {
	t.Helper()
	doc := bson.D{{Key: "_id", Value: 1}, {Key: "id", Value: "t1"}, {Key: "className", Value: "resize"}, {Key: "mode", Value: "Passive"},
		{Key: "createDateTime", Value: 5.0}, {Key: "lifecycleStatus", Value: "Created"}, {Key: "priority", Value: 3.0}}
	for i := 0; i < len(pairs); i += 2 {
		key, _ := pairs[i].(string)
		doc = append(doc, bson.E{Key: key, Value: pairs[i+1]})
	}
	b, err := bson.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTolerantDecode(t *testing.T) {
	t.Parallel()
	decimal, err := bson.ParseDecimal128("7")
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name string
		doc  bson.Raw
		want func(*task.Task)
	}{
		{"doubles of the shell", document(t), func(*task.Task) {}},
		{"int32 for int64", document(t, "attempt", int32(4), "timeoutMs", int32(9)), func(t *task.Task) { t.Attempt, t.TimeoutMs = 4, 9 }},
		{"a whole decimal", document(t, "attempt", decimal), func(t *task.Task) { t.Attempt = 7 }},
		{"null for everything", document(t, "labels", nil, "backoff", nil, "attempts", nil, "attempt", nil, "isPersistent", nil, "maxAttempts", nil, "result", nil),
			func(*task.Task) {}},
		{"unknown fields", document(t, "heartbeat", 5, "extra", bson.D{{Key: "a", Value: 1}}), func(*task.Task) {}},
		{"unknown fields deep down", document(t, "progress", bson.D{{Key: "percent", Value: 5}, {Key: "eta", Value: 1}}),
			func(t *task.Task) { t.Progress = &task.Progress{Percent: 5} }},
		{"null in a list", document(t, "dependencies", bson.A{"a", nil}), func(t *task.Task) { t.Dependencies = []string{"a", ""} }},
		{"a priority that the API would refuse", document(t, "priority", 99), func(t *task.Task) { t.Priority = 99 }},
		{"attachments that are no document", document(t, "attachments", bson.A{1, "x"}), func(t *task.Task) { t.Attachments = json.RawMessage(`[1,"x"]`) }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			want := task.Task{ID: "t1", ClassName: "resize", Mode: task.ModePassive, CreateDateTime: 5, LifecycleStatus: task.Created, Priority: 3}
			c.want(&want)
			var got task.Task
			if err := judge(c.doc, &got); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

// badFields are what a document may hold that can never run, and a part of what is said of it.
func badFields() map[string]struct {
	key  string
	v    any
	says string
} {
	type bad = struct {
		key  string
		v    any
		says string
	}
	return map[string]bad{
		"id a number":              {"id", 5, `id is 5 (32-bit integer): must be a string`},
		"id empty":                 {"id", "", "id is missing"},
		"id null":                  {"id", nil, "id is missing"},
		"class empty":              {"className", "", "className is missing"},
		"class a list":             {"className", bson.A{"x"}, `className is ["x"] (array)`},
		"priority a word":          {"priority", "high", `priority is "high" (string): must be a whole number`},
		"priority half":            {"priority", 2.5, `priority is 2.5 (double): must be a whole number`},
		"priority NaN":             {"priority", math.NaN(), "priority is null (double)"},
		"creation a date":          {"createDateTime", time.UnixMilli(0), "createDateTime is"},
		"creation a half":          {"createDateTime", 1796010393269.5, "must be a whole number"},
		"labels a list":            {"labels", bson.A{"a"}, `labels is ["a"] (array): must be a document or a selector`},
		"a label a number":         {"labels", bson.D{{Key: "a", Value: 1}}, "labels .a is 1"},
		"progress a number":        {"progress", 5, "progress is 5"},
		"backoff with a word":      {"backoff", bson.D{{Key: "baseMs", Value: "x"}}, `backoff baseMs is "x"`},
		"a run that is no run":     {"attempts", bson.A{1}, "attempts [0] is 1"},
		"persistent a word":        {"isPersistent", "yes", "must be true or false"},
		"a very long wrong value":  {"timeoutMs", strings.Repeat("x", 5000), "... (string)"},
		"attempt larger than that": {"attempt", 1e300, "must be a whole number"},
	}
}

func TestBadFields(t *testing.T) {
	t.Parallel()
	for name, bad := range badFields() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := document(t, bad.key, bad.v)
			var tk task.Task
			err := judge(doc, &tk)
			if err == nil || !strings.Contains(err.Error(), bad.says) || len(reason(err)) > 1100 {
				t.Fatalf("error %v; want %q", err, bad.says)
			}
			if got := read(doc); bad.key != "className" && got.ClassName != "resize" {
				t.Errorf("what can be read is not there: %+v", got)
			}
		})
	}
}

// FuzzDecode: no document makes the decoder panic, and what it reads can be written and read again.
func FuzzDecode(f *testing.F) {
	b, err := os.ReadFile("testdata/python.task.created.bson")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	var full task.Task
	n := 0
	filled(f, reflect.ValueOf(&full).Elem(), &n)
	f.Add([]byte(encode(&full)))
	for _, bad := range badFields() {
		f.Add([]byte(document(f, bad.key, bad.v)))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		got := read(doc)
		if _, err := json.Marshal(&got); err != nil {
			t.Fatalf("not JSON: %v", err)
		}
		var again task.Task
		if err := decode(encode(&got), &again); err != nil {
			t.Fatalf("%+v does not come back: %v", got, err)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	t := task.Task{ID: "a-task-of-some-length", ClassName: "resize", Mode: task.ModePassive, LifecycleStatus: task.Created,
		CreateDateTime: 1796010393269, Attachments: json.RawMessage(`{"width":100,"height":200,"source":"x"}`)}
	b.ReportAllocs()
	for b.Loop() {
		encode(&t)
	}
}

func BenchmarkDecode(b *testing.B) {
	t := task.Task{ID: "a-task-of-some-length", ClassName: "resize", Mode: task.ModePassive, LifecycleStatus: task.Created,
		CreateDateTime: 1796010393269, Attachments: json.RawMessage(`{"width":100,"height":200,"source":"x"}`)}
	doc := encode(&t)
	b.ReportAllocs()
	for b.Loop() {
		if err := decode(doc, &t); err != nil {
			b.Fatal(err)
		}
	}
}
