package dispatcher

import (
	"context"
	"fmt"
	"slices"

	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// mustEnd returns the change that ends or holds a task that must not or cannot run. It reports whether there is one.
func (d *Dispatcher) mustEnd(t *task.Task, now int64) (task.Change, bool) {
	if c, ok := task.ApplyDesired(t, now); ok {
		return c, true
	}
	if t.Late(now) { // also if somebody retried it after its deadline
		return task.Overdue(t, now), true
	}
	reason := t.Unfit()
	if n := len(t.Attachments); n > d.cfg.TaskMaxBytes {
		reason = fmt.Sprintf("attachments have %d bytes as JSON, %d at most (TASK_MAX_BYTES)", n, d.cfg.TaskMaxBytes)
	}
	if _, ok := placement.ParseStrategy(t.Strategy); reason == "" && t.Strategy != "" && !ok {
		reason = fmt.Sprintf("strategy is %.100q, must be one of %v", t.Strategy, placement.Strategies())
	}
	if reason == "" {
		return task.Change{}, false
	}
	return task.Refuse(t, reason, now), true
}

// writeEnds ends the tasks that the round has found that must not or cannot run.
func (d *Dispatcher) writeEnds(ctx context.Context, r *round) error {
	if d.lease.Remaining() <= 0 {
		return ErrNotLeading
	}
	if err := d.claimer.end(ctx, r.ends); err != nil {
		return err
	}
	r.ends = r.ends[:0]
	return nil
}

// end ends or holds tasks that wait and must not or cannot run.
func (c *claimer) end(ctx context.Context, ends []task.Change) error {
	for page := range slices.Chunk(ends, store.MaxBatch) {
		if _, err := c.store.Apply(ctx, page); err != nil && !c.refusal(ctx, err) {
			return fmt.Errorf("end %d tasks that cannot run: %w", len(page), err)
		}
	}
	return nil
}
