package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/controller/api"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

type items struct {
	Items []client.BatchItem
}

func TestSubmitStoresTheTaskAndAnswersWithIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	res := f.do(t, http.MethodPost, "/api/tasks", `{ "className": "resize", "attachments": {"w": 10, "name": "a\u0000b"}, "priority": 7,
		"name":"n","description":"d","source":"s","mode":"passive","isPersistent":false,"deadlineDateTime":5,"dependencies":[],"idempotencyKey":"k"}`)
	got := want[task.Task](t, res, http.StatusCreated)
	if res.Header().Get("Location") != "/api/tasks/new-0001" || *f.wakes != 1 {
		t.Errorf("location %q, %d wakes", res.Header().Get("Location"), *f.wakes)
	}
	for _, x := range []*task.Task{&got, f.task(t, "new-0001")} {
		if x.ID != "new-0001" || x.ClassName != "resize" || x.Priority != 7 || x.Name != "n" || x.Description != "d" || x.Source != "s" ||
			x.Mode != task.ModePassive || x.IsPersistent || x.DeadlineDateTime != 5 || x.IdempotencyKey != "k" ||
			x.LifecycleStatus != task.Created || x.CreateDateTime != epoch.UnixMilli() || x.UpdateDateTime != epoch.UnixMilli() {
			t.Errorf("task %+v", x)
		}
		if string(x.Attachments) != `{"w":10,"name":"a\u0000b"}` {
			t.Errorf("attachments %s", x.Attachments)
		}
	}
}

func TestSubmitTakesRetriesAndTimes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	got := want[task.Task](t, f.do(t, http.MethodPost, "/api/tasks", `{"className":"c","maxAttempts":0,"maxCrashes":7,"backoff":{"baseMs":50},
		"timeoutMs":60000,"notBefore":99,"deadlineDateTime":100}`), http.StatusCreated)
	if got.MaxAttempts == nil || *got.MaxAttempts != 0 || got.MaxCrashes == nil || *got.MaxCrashes != 7 || got.TimeoutMs != 60000 || got.NotBefore != 99 ||
		got.DeadlineDateTime != 100 || got.Backoff == nil || *got.Backoff != (task.Backoff{BaseMs: 50, Factor: 2, MaxMs: 300_000}) {
		t.Errorf("%+v", got)
	}
}

func TestSubmitDefaults(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, body := range []string{`{"className":"c"}`, `{"className":"c","id":null,"attachments":null,"priority":null,"mode":null,"id":""}`} {
		got := want[task.Task](t, f.do(t, http.MethodPost, "/api/tasks/", body), http.StatusCreated)
		if got.Mode != task.ModePassive || !got.IsPersistent || got.Priority != 0 || got.Attachments != nil || !strings.HasPrefix(got.ID, "new-") {
			t.Errorf("%s: %+v", body, got)
		}
	}
}

func TestSubmitOfAnIDThatExists(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	want[task.Task](t, f.do(t, http.MethodPost, "/api/tasks", `{"className":"first","id":"a"}`), http.StatusCreated)
	p := wantProblem(t, f.do(t, http.MethodPost, "/api/tasks", `{"className":"second","id":"a"}`), http.StatusConflict, `\"a\"`)
	if p.Task == nil || p.Task.ClassName != "first" || *f.wakes != 1 {
		t.Errorf("task %+v, %d wakes", p.Task, *f.wakes)
	}
}

func TestSubmitWithAKeyThatExistsAnswersWithTheFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := want[task.Task](t, f.do(t, http.MethodPost, "/api/tasks", `{"className":"c","idempotencyKey":"k"}`), http.StatusCreated)
	again := want[task.Task](t, f.do(t, http.MethodPost, "/api/tasks", `{"className":"c","idempotencyKey":"k"}`), http.StatusOK)
	if again.ID != first.ID || *f.wakes != 1 {
		t.Errorf("%s, then %s; %d wakes", first.ID, again.ID, *f.wakes)
	}
}

func TestSubmitRefusesBadInput(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	tests := map[string]struct {
		body   string
		status int
		words  []string
	}{
		"nothing":                 {"", 400, []string{"body"}},
		"white space":             {" \n", 400, []string{"empty"}},
		"not JSON":                {`{"className":}`, 400, []string{"byte 14"}},
		"two values":              {`{"className":"c"} {}`, 400, []string{"byte 19"}},
		"not UTF-8":               {"{\"className\":\"\xff\"}", 400, []string{"byte 14", "UTF-8"}},
		"no object":               {`[1]`, 422, []string{"object"}},
		"no class":                {`{}`, 422, []string{"body.className", "required"}},
		"null class":              {`{"className":null}`, 422, []string{"body.className", "required"}},
		"empty class":             {`{"className":""}`, 422, []string{"body.className", "empty"}},
		"class of another type":   {`{"className":7}`, 422, []string{"body.className", "7", "string"}},
		"long class":              {`{"className":"` + strings.Repeat("c", 257) + `"}`, 422, []string{"257", "256"}},
		"class with a control":    {`{"className":"a\u001bb"}`, 422, []string{"body.className", "U+001B", "byte 1"}},
		"class with a C1 control": {`{"className":"a\u0085b"}`, 422, []string{"U+0085"}},
		"priority too high":       {`{"className":"c","priority":11}`, 422, []string{"body.priority", "11", "0 to 10"}},
		"priority negative":       {`{"className":"c","priority":-1}`, 422, []string{"body.priority", "-1", "0 to 10"}},
		"priority a fraction":     {`{"className":"c","priority":1.5}`, 422, []string{"1.5", "whole"}},
		"priority a string":       {`{"className":"c","priority":"1"}`, 422, []string{"body.priority"}},
		"negative deadline":       {`{"className":"c","deadlineDateTime":-5}`, 422, []string{"body.deadlineDateTime", "-5", "0 (none) or more"}},
		"deadline out of range":   {`{"className":"c","deadlineDateTime":99999999999999999999}`, 422, []string{"body.deadlineDateTime"}},
		"negative notBefore":      {`{"className":"c","notBefore":-1}`, 422, []string{"body.notBefore", "-1", "0 (at once) or more"}},
		"timeout a fraction":      {`{"className":"c","timeoutMs":1.5}`, 422, []string{"body.timeoutMs", "1.5", "milliseconds"}},
		"negative maxAttempts":    {`{"className":"c","maxAttempts":-1}`, 422, []string{"body.maxAttempts", "-1", "0 (without end) to 1000000"}},
		"too many crashes":        {`{"className":"c","maxCrashes":1000001}`, 422, []string{"body.maxCrashes", "1000001"}},
		"backoff a number":        {`{"className":"c","backoff":5}`, 422, []string{"body.backoff", "object"}},
		"backoff factor":          {`{"className":"c","backoff":{"factor":0.5}}`, 422, []string{"body.backoff.factor", "0.5", "1 to 100"}},
		"backoff base":            {`{"className":"c","backoff":{"baseMs":-5}}`, 422, []string{"body.backoff.baseMs", "-5"}},
		"backoff max":             {`{"className":"c","backoff":{"maxMs":1e30}}`, 422, []string{"body.backoff.maxMs"}},
		"backoff unknown":         {`{"className":"c","backoff":{"jitter":1}}`, 422, []string{"body.backoff.jitter", "unknown field"}},
		"id with a slash":         {`{"className":"c","id":"a/b"}`, 422, []string{"body.id", "a/b", "slash"}},
		"id of dots":              {`{"className":"c","id":".."}`, 422, []string{"body.id"}},
		"id with a newline":       {`{"className":"c","id":"a\nb"}`, 422, []string{"body.id", "U+000A"}},
		"long id":                 {`{"className":"c","id":"` + strings.Repeat("é", 129) + `"}`, 422, []string{"258", "256"}},
		"long key":                {`{"className":"c","idempotencyKey":"` + strings.Repeat("k", 257) + `"}`, 422, []string{"body.idempotencyKey"}},
		"unknown mode":            {`{"className":"c","mode":"Lazy"}`, 422, []string{"Lazy", "Passive", "Active"}},
		"isPersistent a string":   {`{"className":"c","isPersistent":"yes"}`, 422, []string{"body.isPersistent", "true or false"}},
		"dependencies":            {`{"className":"c","dependencies":["a"]}`, 422, []string{"body.dependencies", "empty"}},
		"long name":               {`{"className":"c","name":"` + strings.Repeat("n", 1025) + `"}`, 422, []string{"body.name", "1025", "1024"}},
		"NUL in a name":           {`{"className":"c","name":"\u0000"}`, 422, []string{"body.name", "NUL"}},
		"unknown field":           {`{"className":"c","prio":1}`, 422, []string{"body.prio", "unknown field"}},
		"field of a later version": {`{"className":"c","shard":"1","scheduleId":"s"}`, 422,
			[]string{"body.shard", "body.scheduleId"}},
		"several at once":     {`{"className":"","priority":99,"x":1}`, 422, []string{"body.className", "body.priority", "body.x"}},
		"NUL in a nested key": {`{"className":"c","attachments":{"a":[{"b\u0000" : 1}]}}`, 422, []string{"body.attachments", "NUL"}},
		"too deep":            {`{"className":"c","attachments":` + deep(91) + `}`, 422, []string{"body.attachments", "90"}},
		"number out of range": {`{"className":"c","attachments":[1e999]}`, 422, []string{"body.attachments", "1e999"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			wantProblem(t, f.do(t, http.MethodPost, "/api/tasks", tt.body), tt.status, tt.words...)
			if page, err := f.store.List(t.Context(), store.Filter{Limit: 1}); err != nil || len(page.Tasks) != 0 || *f.wakes != 0 {
				t.Errorf("something was stored: %v, %v, %d wakes", page.Tasks, err, *f.wakes)
			}
		})
	}
	f := newFixture(t)
	want[task.Task](t, f.do(t, http.MethodPost, "/api/tasks", `{"className":"c","attachments":`+deep(90)+`}`), http.StatusCreated)
	want[task.Task](t, f.do(t, http.MethodPost, "/api/tasks", `{"className":"c","attachments":{"\\u0000":"\u0000"}}`), http.StatusCreated)
}

func TestSubmitNamesAtMostTwentyErrors(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`{"className":"c"`)
	for i := range 1000 {
		fmt.Fprintf(&b, `,"x%d":1`, i)
	}
	b.WriteString(`}`)
	if p := wantProblem(t, newFixture(t).do(t, http.MethodPost, "/api/tasks", b.String()), 422); len(p.Errors) != 20 {
		t.Errorf("%d errors", len(p.Errors))
	}
}

func TestC81_LargePayload(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	body := func(n int) string { return `{"className":"c","attachments":"` + strings.Repeat("a", n-2) + `"}` }
	srv := httptest.NewServer(f.handler) // over a real connection: the sender must get the answer, not a broken pipe
	t.Cleanup(srv.Close)
	tests := map[string]struct {
		size, status int
		words        []string
	}{
		"256 KiB":            {256 << 10, http.StatusCreated, nil},
		"256 KiB and a byte": {256<<10 + 1, http.StatusRequestEntityTooLarge, []string{"body.attachments", "262145", "262144", "TASK_MAX_BYTES"}},
		"16 MiB":             {16 << 20, http.StatusRequestEntityTooLarge, []string{"16777248", "262144", "TASK_MAX_BYTES"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/api/tasks", strings.NewReader(body(tt.size)))
			if err != nil {
				t.Fatal(err)
			}
			res, err := srv.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = res.Body.Close() }()
			rec := httptest.NewRecorder()
			rec.Code = res.StatusCode
			rec.Header().Set("Content-Type", res.Header.Get("Content-Type"))
			if _, err := rec.Body.ReadFrom(res.Body); err != nil {
				t.Fatal(err)
			}
			if tt.status == http.StatusCreated {
				want[task.Task](t, rec, tt.status)
				return
			}
			wantProblem(t, rec, tt.status, tt.words...)
		})
	}
}

func TestC81_WhiteSpaceDoesNotCount(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(d *api.Deps) { d.TaskMaxBytes = 16 })
	wantProblem(t, f.do(t, http.MethodPost, "/api/tasks", `{"className":"c","attachments":{"a":[1,2],"b":"c"}}`), http.StatusRequestEntityTooLarge, "19 bytes", "16")
	ok := want[task.Task](t, f.do(t, http.MethodPost, "/api/tasks", `{"className":"c","attachments":{ "a" : [ 1 , 2 ]    }}`), http.StatusCreated)
	if string(ok.Attachments) != `{"a":[1,2]}` {
		t.Errorf("attachments %s", ok.Attachments)
	}
}

func TestC81_BodyOfUnknownLengthIsBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/tasks", strings.NewReader(strings.Repeat(" ", 1<<20)+"{}"))
	req.ContentLength = -1
	res := httptest.NewRecorder()
	f.handler.ServeHTTP(res, req)
	wantProblem(t, res, http.StatusRequestEntityTooLarge, "limit")
}

func TestSubmitBatchHasAnOutcomeForEach(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(d *api.Deps) { d.TaskMaxBytes = 100 })
	f.add(t, task.Task{ID: "old", IdempotencyKey: "k"})
	res := f.do(t, http.MethodPost, "/api/tasks/batch", `{"tasks":[
		{"className":"c","id":"a"}, {"className":"c"}, {"className":"c","id":"old"}, {"className":"c","idempotencyKey":"k"},
		{"className":"c","priority":11,"x":1}, 7, {"className":"c","attachments":"`+strings.Repeat("a", 100)+`"}, {"className":"c","id":"a"}]}`)
	got := want[items](t, res, http.StatusOK).Items
	wanted := []client.BatchItem{
		{ID: "a", Status: 201},
		{ID: "new-0001", Status: 201},
		{ID: "old", Status: 409, Error: "a task with this id exists"},
		{ID: "old", Status: 200},
		{Status: 422, Error: "task.priority: must be a whole number from 0 to 10; task.x: unknown field"},
		{Status: 422, Error: "task: must be an object"},
		{Status: 413, Error: "task.attachments: has 102 bytes without white space; at most 100 are allowed (TASK_MAX_BYTES)"},
		{ID: "a", Status: 409, Error: "a task with this id exists"},
	}
	if len(got) != len(wanted) {
		t.Fatalf("%d items", len(got))
	}
	for i := range wanted {
		if got[i] != wanted[i] {
			t.Errorf("item %d: %+v, want %+v", i, got[i], wanted[i])
		}
	}
	if *f.wakes != 1 {
		t.Errorf("%d wakes", *f.wakes)
	}
}

func TestSubmitBatchRefusesBadInput(t *testing.T) {
	t.Parallel()
	many := `{"tasks":[` + strings.Repeat(`{"className":"c"},`, 1000) + `{"className":"c"}]}`
	tests := map[string]struct {
		body   string
		status int
		words  []string
	}{
		"not JSON":      {`{"tasks":[`, 400, []string{"byte"}},
		"no object":     {`[{"className":"c"}]`, 422, []string{"tasks"}},
		"no tasks":      {`{}`, 422, []string{"body.tasks", "1 to 1000"}},
		"tasks null":    {`{"tasks":null}`, 422, []string{"body.tasks"}},
		"empty":         {`{"tasks":[]}`, 422, []string{"1 to 1000"}},
		"1,001":         {many, 422, []string{"1 to 1000"}},
		"unknown field": {`{"tasks":[{"className":"c"}],"atomic":true}`, 422, []string{"body.atomic", "unknown field"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantProblem(t, newFixture(t).do(t, http.MethodPost, "/api/tasks/batch", tt.body), tt.status, tt.words...)
		})
	}
	if got := want[items](t, newFixture(t).do(t, http.MethodPost, "/api/tasks/batch", strings.Replace(many, `{"className":"c"},`, "", 1)), 200); len(got.Items) != 1000 {
		t.Errorf("%d items", len(got.Items))
	}
}

// downTasks is a store that does not answer.
type downTasks struct {
	api.Tasks

	err error
}

func (d *downTasks) Create(context.Context, []task.Task) ([]store.CreateOutcome, error) {
	return nil, d.err
}
func (d *downTasks) Get(context.Context, []string) ([]task.Task, error)    { return nil, d.err }
func (d *downTasks) Apply(context.Context, []task.Change) (int, error)     { return 0, d.err }
func (d *downTasks) Purge(context.Context, string) (bool, error)           { return false, d.err }
func (d *downTasks) Counts(context.Context) (map[task.Status]int64, error) { return nil, d.err }
func (d *downTasks) List(context.Context, store.Filter) (store.ListPage, error) {
	return store.ListPage{}, d.err
}

func TestErrorOfTheStoreIsLoggedAndNotShown(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(d *api.Deps) { d.Tasks = &downTasks{err: fmt.Errorf("secret detail")} })
	res := f.do(t, http.MethodPost, "/api/tasks", `{"className":"c"}`)
	wantProblem(t, res, http.StatusInternalServerError)
	if strings.Contains(res.Body.String(), "secret") || !strings.Contains(f.log.String(), "secret detail") {
		t.Errorf("answer %s, log %s", res.Body, f.log)
	}
}

func BenchmarkSubmitBatch(b *testing.B) {
	var body strings.Builder
	body.WriteString(`{"tasks":[`)
	for i := range 1000 {
		if i > 0 {
			body.WriteByte(',')
		}
		fmt.Fprintf(&body, `{"className":"demo.echo","id":"bench-0193-%08d","attachments":{"x":%d,"text":"hello"}}`, i, i)
	}
	body.WriteString(`]}`)
	f := newFixture(b, func(d *api.Deps) { d.Tasks = &instantTasks{} })
	b.ReportAllocs()
	for b.Loop() {
		if res := f.do(b, http.MethodPost, "/api/tasks/batch", body.String()); res.Code != http.StatusOK {
			b.Fatal(res.Body)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/task")
}

func BenchmarkSubmit(b *testing.B) {
	f := newFixture(b, func(d *api.Deps) { d.Tasks = &instantTasks{} })
	b.ReportAllocs()
	for b.Loop() {
		if res := f.do(b, http.MethodPost, "/api/tasks", `{"className":"demo.echo","attachments":{"x":1}}`); res.Code != http.StatusCreated {
			b.Fatal(res.Body)
		}
	}
}

func BenchmarkList1000(b *testing.B) {
	tasks := make([]task.Task, 100)
	for i := range tasks {
		tasks[i] = task.Task{ID: fmt.Sprint(i), ClassName: "demo.echo", Attachments: json.RawMessage(`{"x":1,"text":"hello"}`), LifecycleStatus: task.Finished}
	}
	f := newFixture(b, func(d *api.Deps) { d.Tasks = &instantTasks{page: tasks} })
	b.ReportAllocs()
	for b.Loop() {
		if res := f.do(b, http.MethodGet, "/api/tasks?pageSize=1000", ""); res.Code != http.StatusOK {
			b.Fatal(res.Body)
		}
	}
}

// instantTasks stores nothing and answers at once.
type instantTasks struct {
	api.Tasks

	page []task.Task
}

func (*instantTasks) Create(_ context.Context, tasks []task.Task) ([]store.CreateOutcome, error) {
	return make([]store.CreateOutcome, len(tasks)), nil
}

func (i *instantTasks) List(context.Context, store.Filter) (store.ListPage, error) {
	return store.ListPage{Tasks: i.page, Total: 5000, NextCursor: "more"}, nil
}
