package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

const (
	// maxWait is how long one call may wait for a task's end; maxWaiters is how many may at once.
	maxWait    = 60 * time.Second
	maxWaiters = 1000
	// firstPoll and lastPoll are the pauses between two looks at a task that is waited for.
	firstPoll = 5 * time.Millisecond
	lastPoll  = 250 * time.Millisecond

	// maxLists is how many pages are made at once. One is read in parts of listPart tasks, until it is full or has
	// maxPageBytes.
	maxLists     = 8
	listPart     = 100
	maxPageBytes = 32 << 20
)

type getInput struct {
	ID   string `path:"id" maxLength:"1024" doc:"Id of the task."`
	Wait string `query:"wait" example:"30s" doc:"How long to wait for the end of the task, at most 60s. The answer is the task as it is then."`
}

type listInput struct {
	LifecycleStatus []string `query:"lifecycleStatus,explode" doc:"Only these, without regard to case; repeated, or with commas."`
	ClassName       string   `query:"className" maxLength:"256" doc:"Only this class."`
	Executor        string   `query:"executor" maxLength:"1024" doc:"Only tasks of this node."`
	ID              string   `query:"id" maxLength:"1024" doc:"Only ids that begin so."`
	Page            int      `query:"page" minimum:"1" maximum:"1000000" doc:"Number of the page, from 1. Not with a cursor, which is faster for many pages."`
	PageSize        int      `query:"pageSize" minimum:"1" maximum:"1000" default:"20" doc:"Tasks in a page. Without page, one of more than 32 MiB ends earlier."`
	Cursor          string   `query:"cursor" maxLength:"4096" doc:"The nextCursor of the page before."`
}

type listOutput struct {
	Body client.TaskPage
}

func (s taskAPI) registerRead(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "get-task", Method: http.MethodGet, Path: "/api/tasks/{id}", Tags: []string{"tasks"},
		Summary: "Read a task, or wait for its end",
		Errors:  []int{http.StatusNotFound, http.StatusServiceUnavailable},
	}, s.get)
	huma.Register(api, huma.Operation{
		OperationID: "list-tasks", Method: http.MethodGet, Path: "/api/tasks", Tags: []string{"tasks"},
		Summary: "List tasks, the newest first",
		Errors:  []int{http.StatusUnprocessableEntity, http.StatusServiceUnavailable},
	}, bounded(s.list))
}

// read returns one task. An error is the answer.
func (s taskAPI) read(ctx context.Context, id string) (*task.Task, error) {
	tasks, err := s.Tasks.Get(ctx, []string{id})
	if err != nil {
		return nil, s.storeFailed(ctx, "to read a task", err)
	}
	if len(tasks) == 0 {
		return nil, notFound("task", id)
	}
	return &tasks[0], nil
}

func (s taskAPI) get(ctx context.Context, in *getInput) (*taskOutput, error) {
	wait, err := parseWait(in.Wait)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait+answerLimit, errTooLong)
	defer cancel()
	t, err := s.read(ctx, in.ID)
	if err != nil || wait == 0 || t.LifecycleStatus.Terminal() {
		return &taskOutput{Body: t}, err
	}
	if !s.waiters.TryAcquire(1) {
		return nil, unavailable("too many calls wait for tasks: at most " + strconv.Itoa(maxWaiters) + " may; try again, or without wait")
	}
	defer s.waiters.Release(1)
	t, err = s.waitFor(ctx, t, wait)
	return &taskOutput{Body: t}, err
}

// waitFor looks at a task, with growing pauses, until it has ended or the time is over.
func (s taskAPI) waitFor(ctx context.Context, t *task.Task, wait time.Duration) (*task.Task, error) {
	over := time.NewTimer(wait)
	defer over.Stop()
	for pause := firstPoll; ; pause = min(2*pause, lastPoll) {
		poll := time.NewTimer(pause)
		select {
		case <-poll.C:
		case <-over.C:
			poll.Stop()
			return s.read(ctx, t.ID)
		case <-draining(ctx):
			poll.Stop()
			return t, nil
		case <-ctx.Done():
			poll.Stop()
			return nil, s.storeFailed(ctx, "to wait for a task", ctx.Err())
		}
		next, err := s.read(ctx, t.ID)
		if err != nil || next.LifecycleStatus.Terminal() {
			return next, err
		}
		t = next
	}
}

func parseWait(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	if n, numErr := strconv.Atoi(text); numErr == nil && n >= 0 && n <= int(maxWait/time.Second) {
		wait, err = time.Duration(n)*time.Second, nil
	}
	if err != nil || wait < 0 || wait > maxWait {
		return 0, invalid("query.wait", shorten(text), "must be a time from 0s to %s, such as 30s", maxWait)
	}
	return wait, nil
}

func (s taskAPI) list(ctx context.Context, in *listInput) (*listOutput, error) {
	status, err := parseStatuses(in.LifecycleStatus)
	if err != nil {
		return nil, err
	}
	if in.Cursor != "" && in.Page != 0 {
		return nil, invalid("query.page", in.Page, "must not be given with a cursor")
	}
	if !acquire(ctx, s.lists, 1) {
		return nil, unavailable("too many lists are read at once; try again")
	}
	defer s.lists.Release(1)
	f := store.Filter{
		Status: status, ClassName: in.ClassName, Executor: in.Executor, IDPrefix: in.ID,
		Skip: max(in.Page-1, 0) * in.PageSize, Cursor: in.Cursor, Total: in.Cursor == "",
	}
	page, err := s.readPage(ctx, f, in.PageSize, in.Page == 0)
	if err != nil {
		return nil, err
	}
	page.PageSize = in.PageSize
	if in.Cursor == "" {
		page.Page = max(in.Page, 1)
	} else {
		page.Total = nil
	}
	return &listOutput{Body: page}, nil
}

// readPage reads one page in parts, so that its memory is bounded. A page that is too large ends early if it may, and
// is refused otherwise: who counts in pages would miss the rest.
func (s taskAPI) readPage(ctx context.Context, f store.Filter, size int, mayEndEarly bool) (client.TaskPage, error) {
	page := client.TaskPage{Items: []task.Task{}}
	bytes := 0
	for {
		f.Limit = min(size-len(page.Items), listPart)
		part, err := s.Tasks.List(ctx, f)
		if err != nil {
			return page, s.storeFailed(ctx, "to list tasks", err)
		}
		if f.Total {
			page.Total = &part.Total
		}
		page.Items = append(page.Items, part.Tasks...)
		page.NextCursor = part.NextCursor
		for i := range part.Tasks {
			bytes += len(part.Tasks[i].Attachments) + len(part.Tasks[i].Result)
		}
		switch {
		case part.NextCursor == "" || len(page.Items) >= size || len(part.Tasks) == 0:
			return page, nil
		case bytes > maxPageBytes && mayEndEarly:
			return page, nil
		case bytes > maxPageBytes:
			return page, invalid("query.pageSize", size, "the tasks of this page have more than %d MiB; ask for fewer, or go by cursor", maxPageBytes>>20)
		}
		f.Skip, f.Total, f.Cursor = 0, false, part.NextCursor
	}
}

func parseStatuses(values []string) ([]task.Status, error) {
	var list []task.Status
	for _, value := range values {
		for name := range strings.SplitSeq(value, ",") {
			status, ok := task.ParseStatus(strings.TrimSpace(name))
			if !ok {
				return nil, invalid("query.lifecycleStatus", shorten(name), "must be one of %s", joinStatuses(task.All()))
			}
			list = append(list, status)
		}
	}
	return list, nil
}

func joinStatuses(list []task.Status) string {
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}
