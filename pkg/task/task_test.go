package task_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/skalds-go/skalds/pkg/task"
)

var update = flag.Bool("update", false, "write the golden files anew")

// full is a task with every field set, as the golden file holds it.
func full(t testing.TB) task.Task {
	t.Helper()
	tk := task.Task{
		ID: "t1", ClassName: "resize", Source: "shop", Name: "n", Description: "d", Executor: "n1", Dependencies: []string{"t0"},
		Mode: task.ModePassive, IsPersistent: true, CreateDateTime: now, UpdateDateTime: now + 5, DeadlineDateTime: now + 9,
		LifecycleStatus: task.Running, Priority: 7, Attachments: json.RawMessage(`{"totalSeconds":3600.0}`),
		Attempt: 2, ClaimID: "c2", Incarnation: "i1", Failures: 1, Crashes: 1, MaxAttempts: new(5), MaxCrashes: new(2),
		Backoff: &task.Backoff{BaseMs: 100, Factor: 2, MaxMs: 1000}, TimeoutMs: 60000, NotBefore: now, Labels: map[string]string{"gpu": "true"},
		Selector: "zone=a", StickyKey: "s", AntiAffinityKey: "a", Slots: 2, ConcurrencyLimit: 3, Pool: "p", KeyPermit: "k#0", PoolPermit: "p#1",
		Strategy: "RANDOM", ConcurrencyKey: "k", IdempotencyKey: "i", AssignedDateTime: now + 1, StartDateTime: now + 2, FinishDateTime: now + 3,
		Result: json.RawMessage(`[1]`), Error: "boom", Progress: &task.Progress{Percent: 12.5, Message: "m"},
		Attempts: []task.Run{{Attempt: 1, Executor: "n0", StartDateTime: now, FinishDateTime: now + 1, Outcome: "lost", Error: "e"}},
		Desired:  task.DesiredCancelled, AttachmentsVersion: 3, Namespace: "ns",
	}
	v := reflect.ValueOf(tk)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Fatalf("%s is not set here; set it, so that it is tested", v.Type().Field(i).Name)
		}
	}
	return tk
}

func TestGoldenJSON(t *testing.T) {
	t.Parallel()
	cases := map[string]task.Task{"full.json": full(t), "least.json": {ID: "t1", ClassName: "resize", LifecycleStatus: task.Created}}
	for name, tk := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := json.MarshalIndent(tk, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", name)
			if *update {
				if err := os.WriteFile(path, append(got, '\n'), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(bytes.TrimSpace(want), got) {
				t.Errorf("%s holds\n%s\ngot\n%s", path, want, got)
			}
			var back task.Task
			if err := json.Unmarshal(want, &back); err != nil {
				t.Fatal(err)
			}
			if again, _ := json.MarshalIndent(back, "", "  "); !bytes.Equal(again, got) {
				t.Errorf("read and written again it is\n%s", again)
			}
		})
	}
}

// TestTagsAgree: a field has the same name in MongoDB as in JSON.
func TestTagsAgree(t *testing.T) {
	t.Parallel()
	for _, typ := range []reflect.Type{
		reflect.TypeFor[task.Task](), reflect.TypeFor[task.Backoff](), reflect.TypeFor[task.Progress](), reflect.TypeFor[task.Run](),
	} {
		for f := range typ.Fields() {
			b, _, _ := bytes.Cut([]byte(f.Tag.Get("bson")), []byte(","))
			j, _, _ := bytes.Cut([]byte(f.Tag.Get("json")), []byte(","))
			if len(b) == 0 || !bytes.Equal(b, j) {
				t.Errorf("%s.%s: bson %q, json %q", typ.Name(), f.Name, b, j)
			}
		}
	}
}

// TestPythonDocuments reads what the Python package wrote.
func TestPythonDocuments(t *testing.T) {
	t.Parallel()
	base := task.Task{ID: "sample-task-1", ClassName: "SleepWorker", Source: "Test", Mode: task.ModePassive, IsPersistent: true,
		CreateDateTime: 1796010393269, UpdateDateTime: 1796010393269, DeadlineDateTime: 1796615193269, LifecycleStatus: task.Created,
		Attachments: json.RawMessage(`{"totalSeconds":3600.0}`)}
	cases := map[string]task.Task{
		"1-created":   base,
		"2-assigning": with(base, func(t *task.Task) { t.LifecycleStatus, t.Executor = task.Assigning, "sample-node-1" }),
		"3-running": with(base, func(t *task.Task) {
			t.LifecycleStatus, t.Executor, t.UpdateDateTime = task.Running, "sample-node-1", 1796010411389
		}),
		"4-cancelled": with(base, func(t *task.Task) {
			t.LifecycleStatus, t.Executor, t.UpdateDateTime = task.Cancelled, "sample-node-1", 1796010418749
			t.Attachments = json.RawMessage(`{"totalSeconds":1800.5}`)
		}),
	}
	for name, want := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := os.ReadFile(filepath.Join("testdata", "mongo.task."+name+".relaxed.json"))
			if err != nil {
				t.Fatal(err)
			}
			var got task.Task
			if err := json.Unmarshal(b, &got); err != nil {
				t.Fatal(err)
			}
			var compact bytes.Buffer
			if err := json.Compact(&compact, got.Attachments); err != nil {
				t.Fatal(err)
			}
			got.Attachments = compact.Bytes()
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}
