package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/skalds-go/skalds/pkg/task"
)

// MaxBatch is how many tasks SubmitBatch takes.
const MaxBatch = 1000

const (
	// serverWait is how long one call of Wait lets the server wait.
	serverWait = 30 * time.Second
	// earlyPause is the pause after an answer that came long before that, without the end: of a controller that stops.
	earlyPause = 100 * time.Millisecond
	// waitRetries is how often in a row Wait tries again when the server is busy, and retryPause its pause if the
	// server names none.
	waitRetries = 10
	retryPause  = time.Second
)

// Submit stores a task and returns it as it was stored. For an idempotency key that was used before it returns the
// first task. An id that exists is an [*Error] with status 409 and that task.
func (c *Client) Submit(ctx context.Context, t NewTask) (task.Task, error) {
	var out task.Task
	err := c.do(ctx, http.MethodPost, "/api/tasks", nil, t, &out)
	return out, err
}

// SubmitBatch stores up to MaxBatch tasks, each for itself, and says what became of each, in order.
func (c *Client) SubmitBatch(ctx context.Context, tasks []NewTask) ([]BatchItem, error) {
	in := struct {
		Tasks []NewTask `json:"tasks"`
	}{tasks}
	var out struct {
		Items []BatchItem `json:"items"`
	}
	err := c.do(ctx, http.MethodPost, "/api/tasks/batch", nil, in, &out)
	return out.Items, err
}

// Get reads a task. One that does not exist is an [*Error] with status 404.
func (c *Client) Get(ctx context.Context, id string) (task.Task, error) {
	var out task.Task
	err := c.do(ctx, http.MethodGet, taskPath(id), nil, nil, &out)
	return out, err
}

// Wait returns the task once it has ended, however long that takes; the context bounds it. While the server is busy
// (503) it tries again, up to 10 times in a row.
func (c *Client) Wait(ctx context.Context, id string) (task.Task, error) {
	query := url.Values{"wait": {serverWait.String()}}
	for busy := 0; ; {
		var out task.Task
		begin := time.Now()
		err := c.do(ctx, http.MethodGet, taskPath(id), query, nil, &out)
		var no *Error
		rest := time.Duration(0)
		switch {
		case err == nil && out.LifecycleStatus.Terminal():
			return out, nil
		case err == nil:
			busy = 0
			if time.Since(begin) < serverWait/2 {
				rest = earlyPause
			}
		case errors.As(err, &no) && no.Status == http.StatusServiceUnavailable && busy < waitRetries:
			busy++
			rest = max(no.RetryAfter, retryPause)
		default:
			return out, err
		}
		if err := pause(ctx, rest); err != nil {
			return out, err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for a task: %w", context.Cause(ctx))
	}
}

// Query selects tasks. Empty fields do not filter.
type Query struct {
	Status    []task.Status
	ClassName string
	Executor  string // node id
	IDPrefix  string
	Page      int    // from 1; 0 = the first; not with a cursor
	PageSize  int    // 1..1000; 0 = 20
	Cursor    string // NextCursor of the page before
}

func (q *Query) values() url.Values {
	v := url.Values{}
	for _, s := range q.Status {
		v.Add("lifecycleStatus", string(s))
	}
	for name, value := range map[string]string{"className": q.ClassName, "executor": q.Executor, "id": q.IDPrefix, "cursor": q.Cursor} {
		if value != "" {
			v.Set(name, value)
		}
	}
	setInt(v, "page", q.Page)
	setInt(v, "pageSize", q.PageSize)
	return v
}

func setInt(v url.Values, name string, n int) {
	if n != 0 {
		v.Set(name, strconv.Itoa(n))
	}
}

// List reads one page of tasks, the newest first.
func (c *Client) List(ctx context.Context, q Query) (TaskPage, error) {
	var out TaskPage
	err := c.do(ctx, http.MethodGet, "/api/tasks", q.values(), nil, &out)
	return out, err
}

// Tasks goes through all tasks that the query selects, page by page. It ends after the first error.
func (c *Client) Tasks(ctx context.Context, q Query) iter.Seq2[task.Task, error] {
	return func(yield func(task.Task, error) bool) {
		for {
			page, err := c.List(ctx, q)
			if err != nil {
				yield(task.Task{}, err)
				return
			}
			for i := range page.Items {
				if !yield(page.Items[i], nil) {
					return
				}
			}
			if page.NextCursor == "" {
				return
			}
			q.Page, q.Cursor = 0, page.NextCursor
		}
	}
}

// Cancel asks for a task's end, and returns the task as it is then: Cancelled, or still on its node with Desired set.
// One that has ended otherwise is an [*Error] with status 409.
func (c *Client) Cancel(ctx context.Context, id string) (task.Task, error) {
	return c.setStatus(ctx, id, task.Cancelled)
}

// Pause asks that a task does not go on, and returns the task as it is then: Paused, or still on its node with Desired
// set until its handler rests. One that has ended, or is to be cancelled, is an [*Error] with status 409.
func (c *Client) Pause(ctx context.Context, id string) (task.Task, error) {
	return c.setStatus(ctx, id, task.Paused)
}

// Resume lets a task go on, and undoes a pause or a cancel that is not yet carried out. One that has ended is an
// [*Error] with status 409.
func (c *Client) Resume(ctx context.Context, id string) (task.Task, error) {
	return c.setStatus(ctx, id, task.Running)
}

// Update replaces a task's attachments as a whole; nil is none. One that has ended is an [*Error] with status 409.
func (c *Client) Update(ctx context.Context, id string, attachments any) (task.Task, error) {
	if attachments == nil {
		attachments = json.RawMessage("null")
	}
	var out task.Task
	err := c.do(ctx, http.MethodPut, taskPath(id)+"/attachments", nil, attachments, &out)
	return out, err
}

// Bulk asks one thing of all tasks that the filter selects, request after request, and sums up. After an error the sum
// is of what was done before.
func (c *Client) Bulk(ctx context.Context, b Bulk) (BulkResult, error) {
	var sum BulkResult
	for {
		var out BulkResult
		if err := c.do(ctx, http.MethodPost, "/api/tasks/bulk", nil, b, &out); err != nil {
			return sum, err
		}
		sum.Matched, sum.Changed, sum.Skipped = sum.Matched+out.Matched, sum.Changed+out.Changed, sum.Skipped+out.Skipped
		if b.Next = out.Next; b.Next == "" {
			return sum, nil
		}
	}
}

// Retry makes an ended task run again, as a new attempt. One that has not ended is an [*Error] with status 409.
func (c *Client) Retry(ctx context.Context, id string) (task.Task, error) {
	return c.setStatus(ctx, id, task.Created)
}

func (c *Client) setStatus(ctx context.Context, id string, status task.Status) (task.Task, error) {
	in := struct {
		LifecycleStatus task.Status `json:"lifecycleStatus"`
	}{status}
	var out task.Task
	err := c.do(ctx, http.MethodPut, taskPath(id)+"/status", nil, in, &out)
	return out, err
}

// Purge removes an ended task. One that has not ended is an [*Error] with status 409.
func (c *Client) Purge(ctx context.Context, id string) error {
	err := c.do(ctx, http.MethodDelete, taskPath(id), url.Values{"purge": {"true"}}, nil, nil)
	return err
}

func taskPath(id string) string { return "/api/tasks/" + url.PathEscape(id) }
