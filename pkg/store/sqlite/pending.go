package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"time"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

const waiting = " FROM tasks INDEXED BY tasks_waiting WHERE status = 0 AND mode = 0 AND not_before"

var (
	pendingHead   = "SELECT n, " + whole + waiting + " = 0 ORDER BY rank, created, id LIMIT ?"
	pendingBehind = "SELECT n, " + whole + waiting + " = 0 AND (rank, created, id) > (?, ?, ?) ORDER BY rank, created, id LIMIT ?"

	ripe   = "SELECT n" + waiting + " > 0 AND not_before <= ? ORDER BY not_before LIMIT ?"
	unripe = "SELECT not_before" + waiting + " > 0 ORDER BY not_before LIMIT 1"
	ripen  = "UPDATE tasks SET not_before = 0 WHERE n IN "

	overdue     = "SELECT " + light + " FROM tasks WHERE deadline <> 0 AND status < 4 AND deadline <= ? ORDER BY deadline LIMIT ?"
	nextOverdue = "SELECT deadline FROM tasks WHERE deadline <> 0 AND status < 4 AND deadline > ? ORDER BY deadline LIMIT 1"
)

// markBad ends a task that waits and cannot be read, if it still waits.
const markBad = "UPDATE tasks SET status = 5, updated = ?, finished = ?, error = ?, desired = NULL WHERE n = ? AND status = 0"

// badRow is one that does not decode.
type badRow struct {
	n int64
	store.BadDocument
}

// Pending implements store.Tasks.
func (s *Store) Pending(ctx context.Context, after store.Place, limit int) (store.PendingPage, error) {
	if err := store.CheckLimit(limit); err != nil {
		return store.PendingPage{}, fmt.Errorf("sqlite: pending: %w", err)
	}
	const op = "read what waits"
	page := store.PendingPage{Next: after, Tasks: make([]task.Task, 0, min(limit, 64))}
	var bad []badRow
	rows := 0
	take := func(row []driver.Value) error { //nolint:unparam // as query wants it
		rows++
		t, err := decode(row[1:])
		page.Next = store.After(&t)
		if err != nil {
			n, _ := row[0].(int64)
			bad = append(bad, badRow{n, store.BadDocument{ID: t.ID, Reason: err.Error()}})
			return nil //nolint:nilerr // it is told of in the page
		}
		page.Tasks = append(page.Tasks, t)
		return nil
	}
	err := s.read(ctx, op, func(c *conn) error {
		if !after.Set {
			return c.query(pendingHead, take, int64(limit))
		}
		return c.query(pendingBehind, take, int64(^after.Priority), after.CreateDateTime, after.ID, int64(limit))
	})
	if err != nil {
		return store.PendingPage{}, err
	}
	page.More = rows == limit
	if len(bad) > 0 {
		if err := s.mark(ctx, op, bad); err != nil {
			return store.PendingPage{}, err
		}
		for i := range bad {
			page.Bad = append(page.Bad, bad[i].BadDocument)
		}
	}
	return page, nil
}

// mark makes rows that do not decode failed tasks, so that they can be looked at and purged like any other.
func (s *Store) mark(ctx context.Context, op string, bad []badRow) error {
	now := time.Now().UnixMilli()
	return s.commit(ctx, op, s.calls, &call{rows: len(bad), do: func(t *tx) error {
		for i := range bad {
			n, err := t.exec(markBad, now, now, bad[i].Reason, bad[i].n)
			if err != nil {
				return err
			}
			t.counts[number(task.Created)] -= n
			t.counts[number(task.Failed)] += n
		}
		return nil
	}})
}

// Ripen implements store.Tasks.
func (s *Store) Ripen(ctx context.Context, now int64, limit int) (ripened int, next int64, err error) {
	if err := store.CheckLimit(limit); err != nil {
		return 0, 0, fmt.Errorf("sqlite: ripen: %w", err)
	}
	const op = "let tasks wait whose time has come"
	err = s.read(ctx, op, func(c *conn) (err error) {
		next, err = c.number(unripe)
		return err
	})
	if err != nil || next == 0 || next > now {
		return 0, next, err // the usual case does not write
	}
	err = s.commit(ctx, op, s.calls, &call{rows: limit, do: func(t *tx) (err error) {
		var found []int64
		ripened = 0
		err = t.query(ripe, func(row []driver.Value) error {
			n, _ := row[0].(int64)
			found = append(found, n)
			return nil
		}, now, int64(limit))
		if err != nil {
			return err
		}
		for some := range slices.Chunk(found, maxList) {
			size := listOf(len(some))
			list := make([]driver.Value, size)
			for i, n := range some {
				list[i] = n
			}
			n, err := t.exec(inList(ripen, size), list...)
			if err != nil {
				return err
			}
			ripened += int(n)
		}
		next, err = t.number(unripe)
		return err
	}})
	if err != nil {
		return 0, 0, err
	}
	return ripened, next, nil
}

// Overdue implements store.Tasks.
func (s *Store) Overdue(ctx context.Context, now int64, limit int) (tasks []task.Task, next int64, err error) {
	if err := store.CheckLimit(limit); err != nil {
		return nil, 0, fmt.Errorf("sqlite: overdue: %w", err)
	}
	err = s.read(ctx, "read what is overdue", func(c *conn) (err error) {
		if next, err = c.number(nextOverdue, now); err != nil {
			return err
		}
		return c.query(overdue, collect(&tasks), now, int64(limit))
	})
	if err != nil {
		return nil, 0, err
	}
	return tasks, next, nil
}
