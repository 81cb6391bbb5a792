package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/controller/api"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestAWishCanBeUndoneUntilItIsCarriedOut(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		from    task.Task
		ask     string
		code    int
		to      task.Status
		desired task.Desired
	}{
		"a cancel":                 {task.Task{LifecycleStatus: task.Running, Desired: task.DesiredCancelled}, "Running", 200, task.Running, ""},
		"a cancel of a paused one": {task.Task{LifecycleStatus: task.Paused, Desired: task.DesiredCancelled}, "Running", 200, task.Paused, task.DesiredRunning},
		"a pause":                  {task.Task{LifecycleStatus: task.Running, Desired: task.DesiredPaused}, "Running", 200, task.Running, ""},
		"a resume":                 {task.Task{LifecycleStatus: task.Paused, Desired: task.DesiredRunning}, "Paused", 200, task.Paused, ""},
		"a pause, by a cancel":     {task.Task{LifecycleStatus: task.Running, Desired: task.DesiredPaused}, "Cancelled", 200, task.Running, task.DesiredCancelled},
		"not a cancel, by a pause": {task.Task{LifecycleStatus: task.Running, Desired: task.DesiredCancelled}, "Paused", 409, task.Running, task.DesiredCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			tk := tt.from
			tk.ID, tk.Attempt, tk.ClaimID, tk.Executor, tk.Incarnation = "a", 1, "claim", "node", "inc"
			f.add(t, tk)
			res := f.do(t, http.MethodPut, "/api/tasks/a/status", fmt.Sprintf(`{"status":%q}`, tt.ask))
			if res.Code != tt.code {
				t.Fatalf("%d: %s", res.Code, res.Body)
			}
			if x := f.task(t, "a"); x.LifecycleStatus != tt.to || x.Desired != tt.desired {
				t.Errorf("%s, %q", x.LifecycleStatus, x.Desired)
			}
		})
	}
}

func TestResumeOfAHold(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.add(t, task.Task{ID: "a", NotBefore: 1 << 50})
	want[task.Task](t, f.do(t, http.MethodPut, "/api/tasks/a/status", `{"status":"Paused"}`), 200)
	got := want[task.Task](t, f.do(t, http.MethodPut, "/api/tasks/a/status", `{"status":"Running"}`), 200)
	if got.LifecycleStatus != task.Created || got.NotBefore != 1<<50 {
		t.Errorf("%+v", got)
	}
}

func TestSetAttachments(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		from task.Status
		body string
		code int
		want string
	}{
		"of one that waits":     {task.Created, ` { "n" : [ 1.0 ] } `, 200, `{"n":[1.0]}`},
		"of one that runs":      {task.Running, `"text"`, 200, `"text"`},
		"of one that is paused": {task.Paused, `7`, 200, `7`},
		"none":                  {task.Running, `null`, 200, ``},
		"of one that has ended": {task.Finished, `1`, 409, `"old"`},
		"nothing":               {task.Running, ``, 400, `"old"`},
		"not JSON":              {task.Running, `{`, 400, `"old"`},
		"too deep":              {task.Running, strings.Repeat("[", 91) + strings.Repeat("]", 91), 422, `"old"`},
		"too large":             {task.Running, `"` + strings.Repeat("x", 1000) + `"`, 413, `"old"`},
		"large without space":   {task.Running, `[` + strings.Repeat(" ", 1500) + `1]`, 200, `[1]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var updated []string
			f := newFixture(t, func(d *api.Deps) {
				d.TaskMaxBytes = 1000
				d.Updated = func(id string) { updated = append(updated, id) }
			})
			tk := inState("a", tt.from)
			tk.Attachments = json.RawMessage(`"old"`)
			f.add(t, tk)
			res := f.do(t, http.MethodPut, "/api/tasks/a/attachments", tt.body)
			if res.Code != tt.code {
				t.Fatalf("%d: %s", res.Code, res.Body)
			}
			x := f.task(t, "a")
			if !bytes.Equal(x.Attachments, []byte(tt.want)) || x.LifecycleStatus != tt.from {
				t.Errorf("%s, attachments %s", x.LifecycleStatus, x.Attachments)
			}
			if ok := tt.code == 200; ok != (x.AttachmentsVersion == 1) || ok != (len(updated) == 1) || ok != (*f.wakes > 0) {
				t.Errorf("version %d, told of %v, %d wakes", x.AttachmentsVersion, updated, *f.wakes)
			}
		})
	}
	f := newFixture(t)
	wantProblem(t, f.do(t, http.MethodPut, "/api/tasks/a/attachments", `1`), http.StatusNotFound)
}

func TestBulk(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		body string
		want client.BulkResult
		left map[task.Status]int64
	}{
		"a dry run": {
			`{"action":"cancel","filter":{"className":"a"},"dryRun":true}`, client.BulkResult{Matched: 400, Changed: 300, Skipped: 100},
			map[task.Status]int64{task.Created: 300, task.Running: 100, task.Finished: 100},
		},
		"cancel": {
			`{"action":"cancel","filter":{"className":"a"}}`, client.BulkResult{Matched: 400, Changed: 300, Skipped: 100},
			map[task.Status]int64{task.Created: 100, task.Cancelled: 200, task.Running: 100, task.Finished: 100},
		},
		"pause what waits": {
			`{"action":"pause","filter":{"lifecycleStatus":["created"],"idPrefix":"a-"}}`, client.BulkResult{Matched: 200, Changed: 200},
			map[task.Status]int64{task.Created: 100, task.Paused: 200, task.Running: 100, task.Finished: 100},
		},
		"retry all": {
			`{"action":"retry","all":true}`, client.BulkResult{Matched: 500, Changed: 100, Skipped: 400},
			map[task.Status]int64{task.Created: 400, task.Running: 100},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			for class, status := range map[string][]task.Status{"a": {task.Created, task.Created, task.Running, task.Finished}, "b": {task.Created}} {
				for k, s := range status {
					for i := range 100 {
						tk := inState(fmt.Sprintf("%s-%d-%03d", class, k, i), s)
						tk.ClassName = class
						f.add(t, tk)
					}
				}
			}
			if got := want[client.BulkResult](t, f.do(t, http.MethodPost, "/api/tasks/bulk", tt.body), 200); got != tt.want {
				t.Errorf("%+v", got)
			}
			counts, err := f.store.Counts(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range task.All() {
				if counts[s] != tt.left[s] {
					t.Errorf("%d are %s, want %d", counts[s], s, tt.left[s])
				}
			}
		})
	}
}

func TestBulkSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for body, words := range map[string][]string{
		`{"action":"delete","all":true}`:                                        {"body.action", "cancel"},
		`{"action":"cancel"}`:                                                   {"body.filter", "every task"},
		`{"action":"cancel","filter":{}}`:                                       {"body.filter", "every task"},
		`{"action":"cancel","filter":{"lifecycleStatus":["Gone"]}}`:             {"lifecycleStatus", "Gone", "Created"},
		`{"action":"cancel","filter":{"class":"a"}}`:                            {"body.filter.class"},
		`{"action":"cancel","filter":{"className":"a"},"next":"not a cursor!"}`: {"cursor"},
	} {
		wantProblem(t, newFixture(t).do(t, http.MethodPost, "/api/tasks/bulk", body), 422, words...)
	}
}

func TestBulkGoesOnWhereItEnded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for k := range 25 {
		var page []task.Task
		for i := range 1000 {
			page = append(page, task.Task{ID: fmt.Sprintf("t%02d%03d", k, i)})
		}
		f.add(t, page...)
	}
	body := client.Bulk{Action: "cancel", All: true}
	var answers []int
	for {
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		got := want[client.BulkResult](t, f.do(t, http.MethodPost, "/api/tasks/bulk", string(text)), 200)
		answers = append(answers, got.Changed)
		if body.Next = got.Next; body.Next == "" {
			break
		}
	}
	if fmt.Sprint(answers) != "[10000 10000 5000]" {
		t.Errorf("changed %v", answers)
	}
}

// TestBulkAgainstOtherChanges: what changes between the reading and the writing is looked at again, one by one.
func TestBulkAgainstOtherChanges(t *testing.T) {
	t.Parallel()
	racing := &racingTasks{races: 1}
	f := newFixture(t, func(d *api.Deps) {
		racing.Tasks = d.Tasks
		d.Tasks = racing
	})
	for _, id := range []string{"claimed", "ended", "same"} {
		f.add(t, task.Task{ID: id})
	}
	racing.race = func() {
		refused, claimed := f.task(t, "ended"), f.task(t, "claimed")
		if n, err := f.store.Apply(t.Context(), []task.Change{task.Claim(claimed, "node", "inc", "claim", 1), task.Refuse(refused, "no", 1)}); n != 2 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	got := want[client.BulkResult](t, f.do(t, http.MethodPost, "/api/tasks/bulk", `{"action":"cancel","all":true}`), 200)
	if got != (client.BulkResult{Matched: 3, Changed: 2, Skipped: 1}) || f.task(t, "claimed").Desired != task.DesiredCancelled {
		t.Errorf("%+v", got)
	}
}
