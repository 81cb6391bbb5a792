package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

var (
	queueHead   = "SELECT n, created, id" + inQueue + " AND queue = ? ORDER BY created, id LIMIT ?"
	queueBehind = "SELECT n, created, id" + inQueue + " AND queue = ? AND (created, id) > (?, ?) ORDER BY created, id LIMIT ?"

	pendingRows = "SELECT n, " + whole + " FROM tasks WHERE n IN "
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

// leastPart is how much of an order is read at a time, at least: many of the first may be taken.
const leastPart = 64

// Waiting implements store.Queues. It reads the order of the tasks from the file, and of the tasks only those that are
// not kept.
func (s *Store) Waiting(ctx context.Context, queue string, after store.Place, limit int) (store.PendingPage, error) {
	if err := store.CheckLimit(limit); err != nil {
		return store.PendingPage{}, fmt.Errorf("sqlite: waiting: %w", err)
	}
	const op = "read what waits"
	taken := s.recent.taken() // which the file, or what will be read of it, may not say yet
	part := max(limit, leastPart)
	line := make([]waiter, 0, limit)
	page := store.PendingPage{More: true}
	err := s.snapshot(ctx, op, func(c *conn) error {
		for page.More && len(line) < limit {
			all, err := order(c, queue, after, part)
			if err != nil {
				return err
			}
			s.recent.find(all)
			some, seen := waiting(all, taken, limit-len(line))
			line = append(line, some...)
			if seen > 0 {
				after = all[seen-1].at
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

// order reads the order of a queue behind a place.
func order(c *conn, queue string, after store.Place, limit int) (line []waiter, err error) {
	line = make([]waiter, 0, limit)
	take := func(row []driver.Value) error {
		c := cells(row)
		line = append(line, waiter{n: c.int(), at: store.Place{Set: true, CreateDateTime: c.int(), ID: c.text()}})
		return nil
	}
	if after.Set {
		err = c.query(queueBehind, take, queue, after.CreateDateTime, after.ID, int64(limit))
	} else {
		err = c.query(queueHead, take, queue, int64(limit))
	}
	return line, err
}

// waits reports whether the task still waits, as far as is known. A task that was claimed before its row was read waits
// only if it is known to wait again.
func (w *waiter) waits(taken map[string]struct{}) bool {
	if w.kept == nil {
		_, was := taken[w.at.ID]
		return !was
	}
	return w.kept.is.LifecycleStatus == task.Created && w.kept.is.NotBefore == 0
}

// waiting returns the first tasks that still wait, and how many were looked at for them.
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

// mark fails the tasks whose rows do not decode, so that they can be looked at and purged like any other.
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
