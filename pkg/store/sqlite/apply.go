package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// guarded are the columns that decide whether a change applies, and what it adds to.
const guarded = "SELECT n, id, status, attempt, claim, desired, version, run FROM tasks WHERE id IN "

// maxList is the largest number of values in a list of a statement; what is more takes several.
const maxList = 256

// listOf is the size of the list for n values: the next power of two, so that there are few statements to prepare.
func listOf(n int) int {
	size := 1
	for size < n && size < maxList {
		size *= 2
	}
	return size
}

// inList is a statement that ends with a list of values.
func inList(sql string, size int) string { return sql + "(?" + strings.Repeat(", ?", size-1) + ")" }

// each runs a statement that ends with a list, for all values.
func each[V any](c *conn, sql string, all []V, yield func([]driver.Value) error) error {
	for len(all) > 0 {
		size := listOf(len(all))
		list := make([]driver.Value, size) // where there are fewer values, NULL, which nothing equals
		n := min(size, len(all))
		for i, v := range all[:n] {
			list[i] = v
		}
		if err := c.query(inList(sql, size), yield, list...); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

// held is a task while changes are made to it.
type held struct {
	n       int64
	status  int64
	is      task.Task
	applied int // changes
}

// Apply implements store.Tasks.
//
// Changes are made to the rows as they are, by task.Change.Apply, inside the one transaction that writes: so each is a compare-and-set, and
// means what the task package says.
func (s *Store) Apply(ctx context.Context, changes []task.Change) (int, error) {
	if err := store.CheckChanges(changes); err != nil {
		return 0, fmt.Errorf("sqlite: apply: %w", err)
	}
	// The writing goroutine may still be at work on them when the caller has stopped waiting.
	mine := make([]task.Change, len(changes))
	bytes := 0
	for i := range changes {
		mine[i] = own(&changes[i])
		bytes += len(changes[i].Result)
		if u := changes[i].Update; u != nil {
			bytes += len(u.Attachments)
		}
	}
	applied := 0
	var refused error
	err := s.commit(ctx, "apply", s.calls, &call{rows: len(changes), bytes: bytes, do: func(t *tx) (err error) {
		applied, refused, err = t.apply(mine)
		return err
	}})
	if err != nil {
		return 0, err
	}
	if refused != nil {
		return applied, s.fail("apply", refused)
	}
	return applied, nil
}

// own is a copy of a change that shares nothing that is ever written.
func own(c *task.Change) task.Change {
	mine := *c
	mine.Assign, mine.Progress, mine.Counts, mine.Run, mine.Update = copied(c.Assign), copied(c.Progress), copied(c.Counts), copied(c.Run), copied(c.Update)
	return mine
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}

// apply carries changes out and says how many applied, and which can never be.
func (t *tx) apply(changes []task.Change) (applied int, refused, err error) {
	ids := make([]string, 0, len(changes))
	tasks := make(map[string]*held, len(changes))
	for i := range changes {
		if _, seen := tasks[changes[i].ID]; !seen && changes[i].From != 0 {
			tasks[changes[i].ID] = nil
			ids = append(ids, changes[i].ID)
		}
	}
	rows := make([]held, 0, len(ids))
	err = each(t.conn, guarded, ids, func(row []driver.Value) error {
		rows = append(rows, hold(row))
		tasks[rows[len(rows)-1].is.ID] = &rows[len(rows)-1]
		return nil
	})
	if err != nil {
		return 0, nil, err
	}
	for i := range changes {
		if h := tasks[changes[i].ID]; h != nil && changes[i].Apply(&h.is) {
			h.applied++
		}
	}
	for i := range rows {
		h := &rows[i]
		if h.applied == 0 {
			continue
		}
		err := t.update(h)
		switch never := (refusal{}); {
		case err == nil:
			applied += h.applied
		case errors.As(err, &never):
			refused = errors.Join(refused, fmt.Errorf("task %q: %w", h.is.ID, err))
		default:
			return 0, nil, fmt.Errorf("task %q: %w", h.is.ID, err)
		}
	}
	return applied, refused, nil
}

// What stands in a held task for a value that was not read: no change sets these, so what is something else after it is to be written.
var (
	keptText = "\x00kept"
	keptTime = int64(math.MinInt64)
	keptJSON = json.RawMessage("kept")
)

// hold reads a row of guarded.
func hold(row []driver.Value) held {
	c := cells(row)
	h := held{n: c.int(), is: task.Task{
		Executor: keptText, Incarnation: keptText, Error: keptText, Attachments: keptJSON, Result: keptJSON,
		NotBefore: keptTime, AssignedDateTime: keptTime, StartDateTime: keptTime, FinishDateTime: keptTime,
	}}
	t := &h.is
	t.ID, h.status = c.text(), c.int()
	t.LifecycleStatus, _ = status(h.status) // one that is none matches no change
	t.Attempt, t.ClaimID, t.Desired, t.AttachmentsVersion = c.int(), c.text(), task.Desired(c.text()), c.int()
	var r run
	if unpack("run", c.next(), &r) == nil { // what cannot be read is begun anew
		r.give(t)
	}
	return h
}

// setter is a column that changes set.
type setter struct {
	column string
	value  func(*task.Task) (v driver.Value, touched bool)
}

func setText(column string, of func(*task.Task) string) setter {
	return setter{column, func(t *task.Task) (driver.Value, bool) { s := of(t); return text(s), s != keptText }}
}

func setTime(column string, of func(*task.Task) int64) setter {
	return setter{column, func(t *task.Task) (driver.Value, bool) { n := of(t); return n, n != keptTime }}
}

// setters are the columns that are written only if a change has touched them: each costs time, and one with an index more of it. What is
// cheap, or mostly touched, is always written.
var setters = []setter{
	{"attempt", func(t *task.Task) (driver.Value, bool) { return t.Attempt, t.Executor != keptText }},
	{"claim", func(t *task.Task) (driver.Value, bool) { return text(t.ClaimID), t.Executor != keptText }},
	setText("executor", func(t *task.Task) string { return t.Executor }),
	setText("incarnation", func(t *task.Task) string { return t.Incarnation }),
	setText("error", func(t *task.Task) string { return t.Error }),
	setTime("not_before", func(t *task.Task) int64 { return t.NotBefore }),
	setTime("assigned", func(t *task.Task) int64 { return t.AssignedDateTime }),
	setTime("started", func(t *task.Task) int64 { return t.StartDateTime }),
	setTime("finished", func(t *task.Task) int64 { return t.FinishDateTime }),
	{"result", func(t *task.Task) (driver.Value, bool) { return blob(t.Result), !isKept(t.Result) }},
	{"version", func(t *task.Task) (driver.Value, bool) { return t.AttachmentsVersion, !isKept(t.Attachments) }},
	{"attachments", func(t *task.Task) (driver.Value, bool) {
		v, _ := attach(t.Attachments)
		return v, !isKept(t.Attachments)
	}},
}

func isKept(raw json.RawMessage) bool { return len(raw) > 0 && &raw[0] == &keptJSON[0] }

const (
	deleteBody = "DELETE FROM bodies WHERE n = ?"
	addBody    = "INSERT INTO bodies (n, body) VALUES (?, ?)"
)

// update writes a changed row.
func (t *tx) update(h *held) error {
	r := runOf(&h.is)
	packed, err := packRun(&r)
	if err != nil {
		return refusal{err}
	}
	to := number(h.is.LifecycleStatus)
	values := t.values[:0]
	values = append(values, to, h.is.UpdateDateTime, text(h.is.Desired), packed)
	which := 0
	for i, s := range setters {
		if v, touched := s.value(&h.is); touched {
			which |= 1 << i
			values = append(values, v)
		}
	}
	values = append(values, h.n)
	t.values = values
	if _, err := t.exec(t.updating(which), values...); err != nil {
		return refusable(err)
	}
	if !isKept(h.is.Attachments) {
		if _, err := t.exec(deleteBody, h.n); err != nil {
			return err
		}
		if _, body := attach(h.is.Attachments); body != nil {
			if _, err := t.exec(addBody, h.n, body); err != nil {
				return refusable(err)
			}
		}
	}
	t.counts[h.status]--
	t.counts[to]++
	return nil
}

// updating is the statement that writes these of the setters. There are few that changes lead to.
func (t *tx) updating(which int) string {
	sql, ok := t.updates[which]
	if !ok {
		sql = "UPDATE tasks SET status = ?, updated = ?, desired = ?, run = ?"
		var sqlSb256 strings.Builder
		for i, s := range setters {
			if which&(1<<i) != 0 {
				sqlSb256.WriteString(", " + s.column + " = ?")
			}
		}
		sql += sqlSb256.String()
		sql += " WHERE n = ?"
		t.updates[which] = sql
	}
	return sql
}
