package api

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/skalds-go/skalds/pkg/task"
)

// backlogAge is how old the count of what waits may be. What this controller has stored since is added.
const backlogAge = time.Second

// backlog knows about how many tasks wait.
type backlog struct {
	tasks Tasks
	limit int // 0 = none
	now   func() time.Time

	mu      sync.Mutex
	counted int64
	at      time.Time
}

// full is a problem that passes when tasks have run.
type full struct{ huma.ErrorModel }

var (
	_ huma.HeadersError      = (*full)(nil)
	_ huma.StatusError       = (*full)(nil)
	_ huma.ContentTypeFilter = (*full)(nil)
)

// GetHeaders returns the Retry-After.
func (*full) GetHeaders() http.Header { return http.Header{"Retry-After": {"1"}} }

// admit reports whether these tasks may wait, too. The error is the answer: 422 for more than may ever wait at once,
// else 429. What is known adds nothing and is always let through: it gets the answer of a repeat. That is looked at
// only where there is no room, so that a submit costs no read else.
func (s taskAPI) admit(ctx context.Context, tasks []task.Task) error {
	b := &s.backlog
	if _, ok := b.take(ctx, len(tasks)); ok {
		return nil
	}
	known, err := b.tasks.Known(ctx, tasks)
	if err != nil {
		return s.storeFailed(ctx, "to look for tasks that exist", err)
	}
	n := 0
	for _, is := range known {
		if !is {
			n++
		}
	}
	if n > b.limit {
		return invalid("body.tasks", nil, "%d new tasks in one batch, and at most %d may wait at once (MAX_BACKLOG): split it", n, b.limit)
	}
	waiting, ok := b.take(ctx, n)
	if ok {
		return nil
	}
	return &full{ErrorModel: *problem(http.StatusTooManyRequests,
		fmt.Sprintf("%d tasks wait, and at most %d may (MAX_BACKLOG): try again later", waiting, b.limit))}
}

// take counts n more tasks as waiting if they may. It says how many waited before. An error of the store is not its
// own: to store the tasks will fail, too.
func (b *backlog) take(ctx context.Context, n int) (waiting int64, ok bool) {
	if b.limit == 0 || n == 0 {
		return 0, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := b.now(); b.at.IsZero() || now.Sub(b.at) >= backlogAge || now.Before(b.at) {
		counts, err := b.tasks.Counts(ctx)
		if err != nil {
			return 0, true
		}
		b.counted, b.at = counts[task.Created], now
	}
	if b.counted+int64(n) > int64(b.limit) {
		return b.counted, false
	}
	b.counted += int64(n)
	return b.counted, true
}
