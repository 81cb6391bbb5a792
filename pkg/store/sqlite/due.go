package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

const fromWaiting = " FROM tasks INDEXED BY tasks_queue WHERE status = 0 AND mode = 0 AND not_before"

var (
	nextDue = "SELECT not_before" + fromWaiting + " > 0 ORDER BY not_before LIMIT 1"
	promote = "UPDATE tasks SET not_before = 0 WHERE n IN (SELECT n" + fromWaiting + " > 0 AND not_before <= ? ORDER BY not_before LIMIT ?) RETURNING id"

	overdue     = "SELECT " + light + " FROM tasks WHERE deadline <> 0 AND status < 4 AND deadline <= ? ORDER BY deadline LIMIT ?"
	nextOverdue = "SELECT deadline FROM tasks WHERE deadline <> 0 AND status < 4 AND deadline > ? ORDER BY deadline LIMIT 1"
)

// Promote implements store.Tasks.
func (s *Store) Promote(ctx context.Context, now int64, limit int) (promoted int, next int64, err error) {
	if err := store.CheckLimit(limit); err != nil {
		return 0, 0, fmt.Errorf("sqlite: promote: %w", err)
	}
	const op = "let tasks wait whose time has come"
	err = s.read(ctx, op, func(c *conn) (err error) {
		next, err = c.number(nextDue)
		return err
	})
	if err != nil || next == 0 || next > now {
		return 0, next, err // the usual case does not write
	}
	err = s.commit(ctx, op, s.calls, &call{rows: limit, do: func(t *tx) (err error) {
		promoted = 0
		err = t.query(promote, func(row []driver.Value) error {
			c := cells(row)
			t.rows[c.text()] = nil
			promoted++
			return nil
		}, now, int64(limit))
		if err == nil {
			next, err = t.number(nextDue)
		}
		return err
	}})
	if err != nil {
		return 0, 0, err
	}
	return promoted, next, nil
}

// Overdue implements store.Tasks.
func (s *Store) Overdue(ctx context.Context, now int64, limit int) (tasks []task.Task, next int64, err error) {
	if err := store.CheckLimit(limit); err != nil {
		return nil, 0, fmt.Errorf("sqlite: overdue: %w", err)
	}
	err = s.readTasks(ctx, "read what is overdue", func(c *conn) (err error) {
		if next, err = c.number(nextOverdue, now); err != nil {
			return err
		}
		return c.query(overdue, collect(&tasks), now, int64(limit))
	})
	return tasks, next, err
}
