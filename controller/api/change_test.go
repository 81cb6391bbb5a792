package api_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/skalds-go/skalds/controller/api"
	"github.com/skalds-go/skalds/pkg/task"
)

// inState is a task of this status, as the life cycle leaves it.
func inState(id string, s task.Status) task.Task {
	t := task.Task{ID: id, LifecycleStatus: s, Attempt: 1, ClaimID: "claim", FinishDateTime: 0}
	if s.Active() {
		t.Executor, t.Incarnation = "node", "inc"
	}
	if s.Terminal() {
		t.FinishDateTime, t.Error = 9, "why"
	}
	return t
}

func TestSetStatus(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		from    task.Status
		body    string
		code    int
		to      task.Status
		desired task.Desired
		wakes   int
	}{
		"cancel one that waits":       {task.Created, `{"lifecycleStatus":"Cancelled"}`, 200, task.Cancelled, "", 1},
		"cancel, other key and case":  {task.Created, `{"status":"cancelled"}`, 200, task.Cancelled, "", 1},
		"cancel, both keys":           {task.Created, `{"status":"cancelled","lifecycleStatus":"Cancelled"}`, 200, task.Cancelled, "", 1},
		"cancel one that is assigned": {task.Assigning, `{"lifecycleStatus":"Cancelled"}`, 200, task.Assigning, task.DesiredCancelled, 1},
		"cancel one that runs":        {task.Running, `{"lifecycleStatus":"Cancelled"}`, 200, task.Running, task.DesiredCancelled, 1},
		"cancel a cancelled one":      {task.Cancelled, `{"lifecycleStatus":"Cancelled"}`, 200, task.Cancelled, "", 0},
		"cancel a finished one":       {task.Finished, `{"lifecycleStatus":"Cancelled"}`, 409, task.Finished, "", 0},
		"cancel a failed one":         {task.Failed, `{"lifecycleStatus":"Cancelled"}`, 409, task.Failed, "", 0},
		"retry a finished one":        {task.Finished, `{"lifecycleStatus":"Created"}`, 200, task.Created, "", 1},
		"retry a failed one":          {task.Failed, `{"lifecycleStatus":"created"}`, 200, task.Created, "", 1},
		"retry a cancelled one":       {task.Cancelled, `{"lifecycleStatus":"Created"}`, 200, task.Created, "", 1},
		"retry one that waits":        {task.Created, `{"lifecycleStatus":"Created"}`, 409, task.Created, "", 0},
		"retry one that runs":         {task.Running, `{"lifecycleStatus":"Created"}`, 409, task.Running, "", 0},
		"pause one that waits":        {task.Created, `{"lifecycleStatus":"Paused"}`, 200, task.Paused, "", 1},
		"pause one that is assigned":  {task.Assigning, `{"lifecycleStatus":"Paused"}`, 200, task.Assigning, task.DesiredPaused, 1},
		"pause one that runs":         {task.Running, `{"lifecycleStatus":"Paused"}`, 200, task.Running, task.DesiredPaused, 1},
		"pause a paused one":          {task.Paused, `{"lifecycleStatus":"Paused"}`, 200, task.Paused, "", 0},
		"pause a finished one":        {task.Finished, `{"lifecycleStatus":"Paused"}`, 409, task.Finished, "", 0},
		"pause a cancelled one":       {task.Cancelled, `{"lifecycleStatus":"Paused"}`, 409, task.Cancelled, "", 0},
		"resume a paused one":         {task.Paused, `{"lifecycleStatus":"Running"}`, 200, task.Paused, task.DesiredRunning, 1},
		"resume one that waits":       {task.Created, `{"lifecycleStatus":"Running"}`, 200, task.Created, "", 0},
		"resume one that runs":        {task.Running, `{"lifecycleStatus":"Running"}`, 200, task.Running, "", 0},
		"resume a failed one":         {task.Failed, `{"lifecycleStatus":"Running"}`, 409, task.Failed, "", 0},
		"to assigning":                {task.Created, `{"lifecycleStatus":"Assigning"}`, 422, task.Created, "", 0},
		"to nothing":                  {task.Created, `{"lifecycleStatus":"Gone"}`, 422, task.Created, "", 0},
		"empty":                       {task.Created, `{}`, 422, task.Created, "", 0},
		"two that differ":             {task.Failed, `{"lifecycleStatus":"Created","status":"Cancelled"}`, 422, task.Failed, "", 0},
		"unknown field":               {task.Created, `{"lifecycleStatus":"Cancelled","force":true}`, 422, task.Created, "", 0},
		"not JSON":                    {task.Created, `{`, 400, task.Created, "", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.add(t, inState("a", tt.from))
			res := f.do(t, http.MethodPut, "/api/tasks/a/status", tt.body, "Content-Type", "application/x-www-form-urlencoded")
			var answer *task.Task
			switch tt.code {
			case http.StatusOK:
				got := want[task.Task](t, res, tt.code)
				answer = &got
			case http.StatusConflict:
				answer = wantProblem(t, res, tt.code, string(tt.from)).Task
			default:
				wantProblem(t, res, tt.code)
				answer = f.task(t, "a")
			}
			for _, x := range []*task.Task{answer, f.task(t, "a")} {
				if x.LifecycleStatus != tt.to || x.Desired != tt.desired || x.Attempt != 1 {
					t.Errorf("%+v", x)
				}
			}
			if *f.wakes != tt.wakes {
				t.Errorf("%d wakes", *f.wakes)
			}
		})
	}
	wantProblem(t, newFixture(t).do(t, http.MethodPut, "/api/tasks/a/status", `{"status":"Cancelled"}`), http.StatusNotFound)
}

func TestSetStatusNamesWhatIsAllowed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.add(t, inState("a", task.Created))
	wantProblem(t, f.do(t, http.MethodPut, "/api/tasks/a/status", `{"status":"Gone"}`), 422, "body.status", "Gone", "Cancelled", "Created")
	wantProblem(t, f.do(t, http.MethodPut, "/api/tasks/a/status", `{"lifecycleStatus":7}`), 422, "body.lifecycleStatus", "7")
	wantProblem(t, f.do(t, http.MethodPut, "/api/tasks/a/status", `{"lifecycleStatus":"Cancelled","force":true}`), 422, "body.force")
}

func TestCancelAskedTwiceChangesNothingMore(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.add(t, inState("a", task.Running))
	for range 2 {
		want[task.Task](t, f.do(t, http.MethodDelete, "/api/tasks/a", ""), http.StatusOK)
	}
	if *f.wakes != 1 {
		t.Errorf("%d wakes", *f.wakes)
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		from  task.Status
		query string
		code  int
		left  bool
	}{
		"cancel":               {task.Created, "", 200, true},
		"cancel a finished":    {task.Finished, "", 409, true},
		"purge a finished":     {task.Finished, "?purge=true", 204, false},
		"purge a cancelled":    {task.Cancelled, "?purge=true", 204, false},
		"purge one that runs":  {task.Running, "?purge=true", 409, true},
		"purge one that waits": {task.Created, "?purge=true", 409, true},
		"no purge":             {task.Created, "?purge=false", 200, true},
		"purge what":           {task.Finished, "?purge=maybe", 422, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.add(t, inState("a", tt.from))
			res := f.do(t, http.MethodDelete, "/api/tasks/a"+tt.query, "")
			if tt.code >= 400 {
				wantProblem(t, res, tt.code)
			} else {
				want[task.Task](t, res, tt.code)
			}
			if res.Code == http.StatusNoContent && res.Body.Len() > 0 {
				t.Errorf("204 with a body: %s", res.Body)
			}
			if (f.task(t, "a") != nil) != tt.left {
				t.Errorf("left: %v", f.task(t, "a"))
			}
		})
	}
	f := newFixture(t)
	wantProblem(t, f.do(t, http.MethodDelete, "/api/tasks/a?purge=true", ""), http.StatusNotFound)
	wantProblem(t, f.do(t, http.MethodDelete, "/api/tasks/a", ""), http.StatusNotFound)
}

// racingTasks lets something else change the task between the read and the compare-and-set, a number of times.
type racingTasks struct {
	api.Tasks

	races int
	race  func()
}

func (r *racingTasks) Apply(ctx context.Context, changes []task.Change) (int, error) {
	if r.races > 0 {
		r.races--
		r.race()
	}
	return r.Tasks.Apply(ctx, changes)
}

func TestCancelWinsAgainstOtherChanges(t *testing.T) {
	t.Parallel()
	for races, code := range map[int]int{1: http.StatusOK, 9: http.StatusOK, 10: http.StatusServiceUnavailable} {
		racing := &racingTasks{races: races}
		f := newFixture(t, func(d *api.Deps) {
			racing.Tasks = d.Tasks
			d.Tasks = racing
		})
		f.add(t, task.Task{ID: "a"})
		racing.race = func() { // claimed, and given back or claimed again: the attempt moves on
			x := f.task(t, "a")
			if x.LifecycleStatus == task.Assigning {
				lost, _ := task.Lose(x, task.LossSilent, task.DefaultPolicy(), 1)
				if n, err := f.store.Apply(t.Context(), []task.Change{lost}); n != 1 || err != nil {
					t.Errorf("lose: %d, %v", n, err)
				}
				x = f.task(t, "a")
			}
			if n, err := f.store.Apply(t.Context(), []task.Change{task.Claim(x, "node", "inc", "claim", 1)}); n != 1 || err != nil {
				t.Errorf("claim: %d, %v", n, err)
			}
		}
		res := f.do(t, http.MethodDelete, "/api/tasks/a", "")
		if res.Code != code {
			t.Errorf("%d races: status %d: %s", races, res.Code, res.Body)
		}
		if x := f.task(t, "a"); code == http.StatusOK && x.Desired != task.DesiredCancelled {
			t.Errorf("%d races: %+v", races, x)
		}
	}
}
