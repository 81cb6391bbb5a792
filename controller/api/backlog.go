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

// GetHeaders gives the Retry-After.
func (*full) GetHeaders() http.Header { return http.Header{"Retry-After": {"1"}} }

// room says whether n more tasks may wait, or gives the answer 429. An error of the store is not its own: to store the tasks will fail, too.
func (b *backlog) room(ctx context.Context, n int) error {
	if b.limit == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := b.now(); b.at.IsZero() || now.Sub(b.at) >= backlogAge || now.Before(b.at) {
		counts, err := b.tasks.Counts(ctx)
		if err != nil {
			return nil
		}
		b.counted, b.at = counts[task.Created], now
	}
	if b.counted+int64(n) > int64(b.limit) {
		return &full{ErrorModel: *problem(http.StatusTooManyRequests,
			fmt.Sprintf("%d tasks wait, and at most %d may (MAX_BACKLOG): try again later", b.counted, b.limit))}
	}
	b.counted += int64(n)
	return nil
}
