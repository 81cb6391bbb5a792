package storetest

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

var createCases = map[string]func(*testing.T, store.Store){
	"create/every field comes back": func(t *testing.T, s store.Store) {
		want := task.Task{
			ID: "t1", ClassName: "resize", Source: "shop", Name: "n", Description: "d\x00é", Executor: "n1", Dependencies: []string{"t0", ""},
			Mode: task.ModePassive, IsPersistent: true, CreateDateTime: base, UpdateDateTime: base + 5, DeadlineDateTime: base + 9,
			LifecycleStatus: task.Running, Priority: 7, Attachments: json.RawMessage(`{"b":3600.0,"a":[1,-2147483649,true,null,"x"],"":{}}`),
			Attempt: 2, ClaimID: "c2", Incarnation: "i1", Failures: 1, Crashes: 1, MaxAttempts: new(0), MaxCrashes: new(2),
			Backoff: &task.Backoff{BaseMs: 100, Factor: 1.5, MaxMs: 1000}, TimeoutMs: 60000, NotBefore: base,
			Labels: map[string]string{"gpu": "true", "a.b": "$c"}, Selector: " zone in (a, b)", Strategy: "RANDOM", StickyKey: "s", AntiAffinityKey: "a",
			Slots: 3, ConcurrencyKey: "k", ConcurrencyLimit: 2, Pool: "p", KeyPermit: "k#1", PoolPermit: "p#0", IdempotencyKey: "i",
			AssignedDateTime: base + 1, StartDateTime: base + 2, FinishDateTime: base + 3, Result: json.RawMessage(`[18446744073709551616]`),
			Error: "boom", Progress: &task.Progress{Percent: 12.5, Message: "m"},
			Attempts: []task.Run{{Attempt: 1, Executor: "n0", StartDateTime: base, FinishDateTime: base + 1, Outcome: "lost", Error: "e"}, {}},
			Desired:  task.DesiredCancelled, AttachmentsVersion: 3, Namespace: "ns",
		}
		for f, v := range reflect.ValueOf(want).Fields() {
			if v.IsZero() {
				t.Errorf("the test does not set %s", f.Name)
			}
		}
		create(t, s, want)
		same(t, get(t, s, "t1"), want)
	},
	"create/the smallest task comes back": func(t *testing.T, s store.Store) {
		want := task.Task{ID: "t1", LifecycleStatus: task.Created, Mode: task.ModePassive}
		create(t, s, want)
		same(t, get(t, s, "t1"), want)
	},
	"create/nothing": func(t *testing.T, s store.Store) {
		if out, err := s.Create(t.Context(), nil); err != nil || len(out) != 0 {
			t.Errorf("outcomes %v, error %v", out, err)
		}
	},
	"create/the largest batch, and one more": func(t *testing.T, s store.Store) {
		tasks := many(store.MaxBatch + 1)
		if out, err := s.Create(t.Context(), tasks); err == nil || out != nil {
			t.Errorf("a batch over the limit: %d outcomes, error %v", len(out), err)
		}
		if got := drain(t, s, 1000); len(got) != 0 {
			t.Errorf("%d tasks of a refused batch are stored", len(got))
		}
		create(t, s, tasks[:store.MaxBatch]...)
		if got := drain(t, s, 1000); len(got) != store.MaxBatch {
			t.Errorf("%d tasks are stored", len(got))
		}
	},
	"create/an id that exists": func(t *testing.T, s store.Store) {
		old := with(fresh("t1", 0), func(t *task.Task) { t.Name = "old" })
		create(t, s, old)
		out, err := s.Create(t.Context(), []task.Task{fresh("t0", 0), with(fresh("t1", 0), func(t *task.Task) { t.Name = "new" }), fresh("t2", 0)})
		if err != nil {
			t.Fatal(err)
		}
		outcomes(t, out, store.CreateOK, store.CreateExists, store.CreateOK)
		same(t, *out[1].Existing, old)
		same(t, get(t, s, "t1"), old)
	},
	"create/an idempotency key that exists": func(t *testing.T, s store.Store) {
		keyed := func(id, key string) task.Task {
			return with(fresh(id, 0), func(t *task.Task) { t.IdempotencyKey = key })
		}
		old := keyed("t1", "k1")
		create(t, s, old, keyed("t2", ""), keyed("t3", ""))
		cases := []struct {
			name     string
			t        task.Task
			status   store.CreateStatus
			existing task.Task
		}{
			{"another id", keyed("t4", "k1"), store.CreateSameKey, old},
			{"the same id, so the same submit once more", keyed("t1", "k1"), store.CreateSameKey, old},
			{"the same id under another key", keyed("t1", "k2"), store.CreateExists, old},
			{"the same id without a key", keyed("t1", ""), store.CreateExists, old},
		}
		for _, c := range cases {
			out, err := s.Create(t.Context(), []task.Task{c.t})
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			outcomes(t, out, c.status)
			same(t, *out[0].Existing, c.existing)
		}
		if n := len(drain(t, s, 10)); n != 3 {
			t.Errorf("%d tasks are stored; want 3", n)
		}
	},
	"create/what is known": func(t *testing.T, s store.Store) {
		keyed := func(id, key string) task.Task {
			return with(fresh(id, 0), func(t *task.Task) { t.IdempotencyKey = key })
		}
		create(t, s, keyed("t1", "k1"), keyed("t2", ""))
		got, err := s.Known(t.Context(), []task.Task{keyed("t1", "k1"), keyed("t3", "k1"), keyed("t2", "k2"), keyed("k1", "t1"), keyed("t3", ""), keyed("t3", "k3")})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "known", got, []bool{true, true, true, false, false, false})
		if got, err := s.Known(t.Context(), nil); err != nil || len(got) != 0 {
			t.Errorf("of none: %v, error %v", got, err)
		}
		if got, err := s.Known(t.Context(), many(store.MaxBatch)); err != nil || slices.Contains(got, true) {
			t.Errorf("of the largest batch, error %v", err)
		}
		if _, err := s.Known(t.Context(), many(store.MaxBatch+1)); err == nil {
			t.Error("a batch over the limit is taken")
		}
		if _, err := s.Known(cancelled(t), many(1)); err == nil {
			t.Error("an ended context is no error")
		}
	},
	"create/twice in one batch": func(t *testing.T, s store.Store) {
		keyed := func(id, key string) task.Task {
			return with(fresh(id, 0), func(t *task.Task) { t.IdempotencyKey = key })
		}
		out, err := s.Create(t.Context(), []task.Task{keyed("t1", "k"), keyed("t1", ""), keyed("t2", "k"), keyed("t3", "")})
		if err != nil {
			t.Fatal(err)
		}
		outcomes(t, out, store.CreateOK, store.CreateExists, store.CreateSameKey, store.CreateOK)
		same(t, *out[1].Existing, keyed("t1", "k"))
		same(t, *out[2].Existing, keyed("t1", "k"))
	},
	// What stood in the way is said as if the tasks of a batch came one after the other.
	"create/id and key taken by different tasks": func(t *testing.T, s store.Store) {
		keyed := func(id, key string) task.Task {
			return with(fresh(id, 0), func(t *task.Task) { t.IdempotencyKey = key })
		}
		a, b := keyed("a", "k1"), keyed("b", "")
		create(t, s, a, b)
		out, err := s.Create(t.Context(), []task.Task{keyed("b", "k1"), keyed("a", ""), keyed("a", "k2"), keyed("c", "k2")})
		if err != nil {
			t.Fatal(err)
		}
		outcomes(t, out, store.CreateSameKey, store.CreateExists, store.CreateExists, store.CreateOK)
		for _, o := range out[:3] {
			same(t, *o.Existing, a)
		}
	},
	"create/one that cannot be stored does not harm the others": func(t *testing.T, s store.Store) {
		attach := func(id, text string) task.Task {
			return with(fresh(id, 0), func(t *task.Task) { t.Attachments = json.RawMessage(text) })
		}
		out, err := s.Create(t.Context(), []task.Task{
			fresh("t0", 0), attach("t1", `{"a":`), attach("t2", `{"a\u0000":1}`), attach("t3", "\"\xff\""), fresh("", 0),
			with(fresh("t4", 0), func(t *task.Task) { t.LifecycleStatus = "Sleeping" }),
			with(fresh("t5", 0), func(t *task.Task) { t.Mode = "passive" }), fresh("t6", 0),
		})
		if err != nil {
			t.Fatal(err)
		}
		const failed = store.CreateFailed
		outcomes(t, out, store.CreateOK, failed, failed, failed, failed, failed, failed, store.CreateOK)
		equal(t, "stored", ids(drain(t, s, 10)), []string{"t0", "t6"})
	},
	"create/JSON comes back as it was given": func(t *testing.T, s store.Store) {
		for i, text := range []string{
			`{}`, `[]`, `""`, `0`, `true`, `{"b":1,"a":2}`, `{"$oid":"65f0c0ffee65f0c0ffee65f0"}`, `{"a":{"$numberLong":"1"}}`, `{"$ref":"#/defs/x"}`,
			`{"a.b":1,"":2,"$":3}`, `[-0.0,1.5,3600.0,1e+300]`, `[9223372036854775807,-9223372036854775808,9223372036854775808]`,
			`["\u0000","é","\\"]`, `{"a":{"a":{"a":[[[]]]}}}`, `"` + string(make16K()) + `"`,
		} {
			id := fresh(string(rune('a'+i)), 0)
			id.Attachments = json.RawMessage(text)
			create(t, s, id)
			same(t, get(t, s, id.ID), id)
		}
	},
	"create/memory is not shared": func(t *testing.T, s store.Store) {
		mine := with(fresh("t1", 0), func(t *task.Task) {
			t.Labels, t.Dependencies, t.MaxAttempts = map[string]string{"a": "1"}, []string{"x"}, new(3)
		})
		want := mine.Clone()
		create(t, s, mine)
		mine.Labels["a"], mine.Dependencies[0], *mine.MaxAttempts = "2", "y", 4
		got := get(t, s, "t1")
		same(t, got, want)
		got.Labels["a"], got.Dependencies[0], *got.MaxAttempts = "2", "y", 4
		same(t, get(t, s, "t1"), want)
		page, err := s.Waiting(t.Context(), want.Queue(), store.Place{}, 1)
		if err != nil || len(page.Tasks) != 1 {
			t.Fatalf("pending: %+v, %v", page, err)
		}
		page.Tasks[0].Labels["a"] = "2"
		same(t, get(t, s, "t1"), want)
	},
	"create/an ended context stores nothing": func(t *testing.T, s store.Store) {
		if out, err := s.Create(cancelled(t), many(2)); err == nil || out != nil {
			t.Errorf("outcomes %v, error %v", out, err)
		}
		if got := drain(t, s, 10); len(got) != 0 {
			t.Errorf("%d are stored", len(got))
		}
	},
}

func make16K() []byte {
	b := make([]byte, 16<<10)
	for i := range b {
		b[i] = 'x'
	}
	return b
}

// outcomes checks the status of each outcome, and that it carries what belongs to it.
func outcomes(t tester, out []store.CreateOutcome, want ...store.CreateStatus) {
	t.Helper()
	if len(out) != len(want) {
		t.Fatalf("%d outcomes; want %d", len(out), len(want))
	}
	for i, o := range out {
		exists := o.Status == store.CreateExists || o.Status == store.CreateSameKey
		if o.Status != want[i] || (o.Existing != nil) != exists || (o.Err != nil) != (o.Status == store.CreateFailed) {
			t.Fatalf("outcome %d: %+v; want status %d", i, o, want[i])
		}
	}
}
