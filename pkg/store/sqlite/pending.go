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

const inLine = " FROM tasks INDEXED BY tasks_waiting WHERE status = 0 AND mode = 0 AND not_before"

var (
	pendingHead   = "SELECT n, rank, created, id" + inLine + " = 0 ORDER BY rank, created, id LIMIT ?"
	pendingBehind = "SELECT n, rank, created, id" + inLine + " = 0 AND (rank, created, id) > (?, ?, ?) ORDER BY rank, created, id LIMIT ?"
	pendingRows   = "SELECT n, " + whole + " FROM tasks WHERE n IN "

	ripe   = "SELECT n, id" + inLine + " > 0 AND not_before <= ? ORDER BY not_before LIMIT ?"
	unripe = "SELECT not_before" + inLine + " > 0 ORDER BY not_before LIMIT 1"
	ripen  = "UPDATE tasks SET not_before = 0 WHERE n IN "

	overdue     = "SELECT " + light + " FROM tasks WHERE deadline <> 0 AND status < 4 AND deadline <= ? ORDER BY deadline LIMIT ?"
	nextOverdue = "SELECT deadline FROM tasks WHERE deadline <> 0 AND status < 4 AND deadline > ? ORDER BY deadline LIMIT 1"
)

// markBad ends a task that waits and cannot be read, if it still waits.
const markBad = "UPDATE tasks SET status = 5, updated = ?, finished = ?, error = ?, desired = NULL WHERE n = ? AND status = 0"

// waiter is a place in the order of what waits, and the task there.
type waiter struct {
	n    int64
	at   store.Place
	kept *kept      // if it need not be read
	is   *task.Task // as read
	bad  error      // why it could not be
}

// Pending implements store.Tasks.
func (s *Store) Pending(ctx context.Context, after store.Place, limit int) (store.PendingPage, error) {
	if err := store.CheckLimit(limit); err != nil {
		return store.PendingPage{}, fmt.Errorf("sqlite: pending: %w", err)
	}
	return s.line(ctx, after, limit, order)
}

// leastPart is how much of an order is read at a time, at least: many of the first may be taken.
const leastPart = 64

// line reads what waits, in the order in which it is given who does. The order is read in the file, and of the tasks only those that are not
// kept.
func (s *Store) line(
	ctx context.Context, after store.Place, limit int, order func(c *conn, after store.Place, limit int) ([]waiter, error),
) (store.PendingPage, error) {
	const op = "read what waits"
	taken := s.recent.taken() // which the file, or what will be read of it, may not say yet
	part := max(limit, leastPart)
	line := make([]waiter, 0, limit)
	page := store.PendingPage{Next: after, More: true}
	err := s.snapshot(ctx, op, func(c *conn) error {
		for page.More && len(line) < limit {
			all, err := order(c, page.Next, part)
			if err != nil {
				return err
			}
			s.recent.find(all)
			some, seen := waiting(all, taken, limit-len(line))
			line = append(line, some...)
			if seen > 0 {
				page.Next = all[seen-1].at
			}
			page.More = seen < len(all) || len(all) == part
		}
		return readWaiters(c, line)
	})
	if err != nil {
		return store.PendingPage{}, err
	}
	page.Tasks = make([]task.Task, 0, len(line))
	var bad []waiter
	for i := range line {
		switch w := &line[i]; {
		case w.bad != nil:
			bad = append(bad, *w)
		case w.is != nil:
			page.Tasks = append(page.Tasks, *w.is)
		default:
			page.Tasks = append(page.Tasks, w.kept.is.Clone())
		}
	}
	if len(bad) > 0 {
		if err := s.mark(ctx, op, bad); err != nil {
			return store.PendingPage{}, err
		}
		for _, w := range bad {
			page.Bad = append(page.Bad, store.BadDocument{ID: w.at.ID, Reason: w.bad.Error()})
		}
	}
	return page, nil
}

// order reads who waits behind a place.
func order(c *conn, after store.Place, limit int) (line []waiter, err error) {
	line = make([]waiter, 0, limit)
	take := collectWaiters(&line)
	if after.Set {
		err = c.query(pendingBehind, take, int64(^after.Priority), after.CreateDateTime, after.ID, int64(limit))
	} else {
		err = c.query(pendingHead, take, int64(limit))
	}
	return line, err
}

// collectWaiters takes rows of number, rank, creation and id.
func collectWaiters(to *[]waiter) func(row []driver.Value) error {
	return func(row []driver.Value) error {
		c := cells(row)
		*to = append(*to, waiter{n: c.int(), at: store.Place{Set: true, Priority: int(^c.int()), CreateDateTime: c.int(), ID: c.text()}})
		return nil
	}
}

// waits says whether one does wait, as far as is known. Those that were taken before the row was read wait only if it is known that they do
// again.
func (w *waiter) waits(taken map[string]struct{}) bool {
	if w.kept == nil {
		_, was := taken[w.at.ID]
		return !was
	}
	return w.kept.is.LifecycleStatus == task.Created && w.kept.is.NotBefore == 0
}

// waiting gives the first of all that do wait, and says how many were looked at for it.
func waiting(all []waiter, taken map[string]struct{}, limit int) (line []waiter, seen int) {
	line = make([]waiter, 0, limit)
	for seen < len(all) && len(line) < limit {
		w := &all[seen]
		seen++
		if w.waits(taken) {
			line = append(line, *w)
		}
	}
	return line, seen
}

// readWaiters reads those tasks of a line that are not kept.
func readWaiters(c *conn, line []waiter) error {
	var unknown []int64
	at := make(map[int64]*waiter)
	for i := range line {
		if w := &line[i]; w.kept == nil || same(w.kept.is.Attachments, elsewhere) {
			at[w.n] = w
			unknown = append(unknown, w.n)
		}
	}
	return each(c, pendingRows, unknown, func(row []driver.Value) error {
		n, _ := row[0].(int64)
		t, err := decode(row[1:])
		at[n].is, at[n].bad = &t, err
		return nil
	})
}

// mark makes rows that do not decode failed tasks, so that they can be looked at and purged like any other.
func (s *Store) mark(ctx context.Context, op string, bad []waiter) error {
	now := time.Now().UnixMilli()
	return s.commit(ctx, op, s.calls, &call{rows: len(bad), do: func(t *tx) error {
		for i := range bad {
			n, err := t.exec(markBad, now, now, bad[i].bad.Error(), bad[i].n)
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
			c := cells(row)
			found = append(found, c.int())
			t.rows[c.text()] = nil
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
	err = s.readTasks(ctx, "read what is overdue", func(c *conn) (err error) {
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
