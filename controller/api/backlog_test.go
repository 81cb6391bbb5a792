package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/controller/api"
	"github.com/skalds-go/skalds/pkg/task"
)

// batchOf is a batch of tasks of which each has these members beside its class.
func batchOf(members ...string) string {
	for i, m := range members {
		members[i] = `{"className":"c"` + strings.TrimSuffix(","+m, ",") + `}`
	}
	return `{"tasks":[` + strings.Join(members, ",") + `]}`
}

// A repeat of what is known adds nothing: it gets its usual answer although no more may wait.
func TestARepeatIsAnsweredWhileNoMoreMayWait(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(d *api.Deps) { d.MaxBacklog = 3 })
	first := want[task.Task](t, f.do(t, http.MethodPost, "/api/tasks", `{"className":"c","idempotencyKey":"k"}`), http.StatusCreated)
	want[items](t, f.do(t, http.MethodPost, "/api/tasks/batch", batchOf(`"id":"a"`, `"id":"b"`)), http.StatusOK)
	wantProblem(t, f.do(t, http.MethodPost, "/api/tasks", `{"className":"c","idempotencyKey":"other"}`), http.StatusTooManyRequests, "MAX_BACKLOG")

	if again := want[task.Task](t, f.do(t, http.MethodPost, "/api/tasks", `{"className":"c","idempotencyKey":"k"}`), http.StatusOK); again.ID != first.ID {
		t.Errorf("the repeat gave the task %q, want %q", again.ID, first.ID)
	}
	wantProblem(t, f.do(t, http.MethodPost, "/api/tasks", `{"className":"c","id":"a"}`), http.StatusConflict)
	got := want[items](t, f.do(t, http.MethodPost, "/api/tasks/batch",
		batchOf(`"idempotencyKey":"k"`, `"id":"a"`, `"idempotencyKey":"k"`, `"id":"b"`)), http.StatusOK)
	var statuses []int
	for _, item := range got.Items {
		statuses = append(statuses, item.Status)
	}
	if !slices.Equal(statuses, []int{200, 409, 200, 409}) {
		t.Errorf("statuses %v", statuses)
	}
	wantProblem(t, f.do(t, http.MethodPost, "/api/tasks/batch", batchOf(`"idempotencyKey":"k"`, "")), http.StatusTooManyRequests, "MAX_BACKLOG")
	if counts, err := f.store.Counts(t.Context()); err != nil || counts[task.Created] != 3 {
		t.Errorf("%v %v", counts, err)
	}
}

// What is known of a batch leaves its room to the rest.
func TestOnlyWhatABatchAddsNeedsRoom(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(d *api.Deps) { d.MaxBacklog = 3 })
	want[items](t, f.do(t, http.MethodPost, "/api/tasks/batch", batchOf(`"id":"a"`, `"id":"b"`)), http.StatusOK)
	got := want[items](t, f.do(t, http.MethodPost, "/api/tasks/batch", batchOf(`"id":"a"`, `"id":"b"`, `"id":"c"`)), http.StatusOK)
	if len(got.Items) != 3 || got.Items[2].Status != http.StatusCreated {
		t.Errorf("%+v", got.Items)
	}
}

// A batch that can never pass is not asked to try again later.
func TestABatchLargerThanTheBacklogMayBeIsToBeSplit(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(d *api.Deps) { d.MaxBacklog = 3 })
	res := f.do(t, http.MethodPost, "/api/tasks/batch", batchOf("", "", "", ""))
	wantProblem(t, res, http.StatusUnprocessableEntity, "4 new tasks", "at most 3", "MAX_BACKLOG", "split")
	if res.Header().Get("Retry-After") != "" {
		t.Errorf("it is to be tried again in %s s", res.Header().Get("Retry-After"))
	}
	want[items](t, f.do(t, http.MethodPost, "/api/tasks/batch", batchOf("", "", "")), http.StatusOK)
}
