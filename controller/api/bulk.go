package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

const (
	// maxBulk is how many tasks one request of a bulk looks at, and bulkTime how long it goes on to read; where there
	// are more, its answer says how the next goes on.
	maxBulk  = 10_000
	bulkTime = 5 * time.Second
)

type bulkInput struct {
	Body client.Bulk
}

type bulkOutput struct {
	Body client.BulkResult
}

func (s taskAPI) registerBulk(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "bulk-tasks", Method: http.MethodPost, Path: "/api/tasks/bulk", Tags: []string{"tasks"}, DefaultStatus: http.StatusOK,
		Summary: "Cancel, pause, resume or retry all tasks that a filter selects",
		Description: "With dryRun nothing is changed, and the counts say what would be. One request looks at up to 10,000 tasks, the newest first; as long as the " +
			"answer has next, the rest is done by a request with that. Each task is changed for itself, as by PUT status; those for which the action makes " +
			"no sense are skipped.",
		BodyReadTimeout: bodyTimeout,
		Errors:          []int{http.StatusUnprocessableEntity, http.StatusServiceUnavailable},
	}, bounded(s.bulk))
}

func (s taskAPI) bulk(ctx context.Context, in *bulkInput) (*bulkOutput, error) {
	do, ok := actions[in.Body.Action]
	if !ok {
		return nil, invalid("body.action", shorten(in.Body.Action), "must be cancel, pause, resume or retry")
	}
	f := store.Filter{
		ClassName: in.Body.Filter.ClassName, Executor: in.Body.Filter.Executor, IDPrefix: in.Body.Filter.IDPrefix, Limit: listPart, Cursor: in.Body.Next,
	}
	for _, name := range in.Body.Filter.LifecycleStatus {
		status, ok := task.ParseStatus(string(name))
		if !ok {
			return nil, invalid("body.filter.lifecycleStatus", shorten(string(name)), "must be one of %s", joinStatuses(task.All()))
		}
		f.Status = append(f.Status, status)
	}
	if len(f.Status) == 0 && f.ClassName == "" && f.Executor == "" && f.IDPrefix == "" && !in.Body.All {
		return nil, invalid("body.filter", nil, "selects every task: say what to select, or all")
	}
	if !acquire(ctx, s.lists, 1) {
		return nil, unavailable("too many lists are read at once; try again")
	}
	defer s.lists.Release(1)
	var out bulkOutput
	for began := s.Now(); ; {
		page, err := s.Tasks.List(ctx, f)
		if err != nil {
			return nil, s.storeFailed(ctx, "to list tasks", err)
		}
		out.Body.Matched += len(page.Tasks)
		changed, err := s.bulkPage(ctx, page.Tasks, do, in.Body.DryRun)
		if err != nil {
			return nil, err
		}
		out.Body.Changed += changed
		f.Cursor = page.NextCursor
		if f.Cursor == "" || out.Body.Matched >= maxBulk || s.Now().Sub(began) > bulkTime {
			break
		}
	}
	out.Body.Skipped, out.Body.Next = out.Body.Matched-out.Body.Changed, f.Cursor
	return &out, nil
}

// bulkPage does it to one page, and says to how many.
func (s taskAPI) bulkPage(ctx context.Context, tasks []task.Task, do action, dry bool) (int, error) {
	var changes []task.Change
	for i := range tasks {
		if change, needed, why := do(&tasks[i], s.now()); needed && why == "" {
			changes = append(changes, change)
		}
	}
	if dry || len(changes) == 0 {
		return len(changes), nil
	}
	n, err := s.Tasks.Apply(ctx, changes)
	if err != nil {
		return 0, s.storeFailed(ctx, "to change tasks", err)
	}
	s.Wake()
	if n == len(changes) {
		return n, nil
	}
	// Some have changed since they were read. Those that were done need no change any more.
	for i := range changes {
		_, changed, err := s.act(ctx, changes[i].ID, do)
		if status := statusOf(err); err != nil && status != http.StatusConflict && status != http.StatusNotFound {
			return 0, err
		}
		if changed {
			n++
		}
	}
	return n, nil
}
