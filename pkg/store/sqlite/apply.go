package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// guarded are the columns that a change looks at or sets, but attachments and result, which it only replaces.
const guarded = "SELECT n, id, status, not_before, executor, attempt, claim, desired, incarnation, assigned, started, finished, error, version, run FROM tasks WHERE id IN "

// lot are the numbers of ids that one statement takes; what is too many for the largest takes several.
var lot = []int{1, 8, 64, 256}

// listOf is the size of the smallest list that takes n values, or the largest there is.
func listOf(n int) int {
	for _, size := range lot {
		if n <= size {
			return size
		}
	}
	return lot[len(lot)-1]
}

// inList is a statement that ends with a list of values.
func inList(sql string, size int) string { return sql + "(?" + strings.Repeat(", ?", size-1) + ")" }

// each runs a statement that ends with a list, for all values.
func each[V any](ctx context.Context, c *conn, sql string, all []V, yield func([]driver.Value) error) error {
	for len(all) > 0 {
		size := listOf(len(all))
		list := make([]driver.Value, size) // where there are fewer values, NULL, which nothing equals
		n := min(size, len(all))
		for i, v := range all[:n] {
			list[i] = v
		}
		if err := c.query(ctx, inList(sql, size), yield, list...); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

// kept stands for a text of the row that was not read.
var kept = json.RawMessage("kept")

func isKept(raw json.RawMessage) bool { return len(raw) > 0 && &raw[0] == &kept[0] }

// held is a task while changes are made to it.
type held struct {
	n       int64
	was, is task.Task
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
	err = each(context.Background(), t.conn, guarded, ids, func(row []driver.Value) error {
		rows = append(rows, hold(row))
		tasks[rows[len(rows)-1].was.ID] = &rows[len(rows)-1]
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
			refused = errors.Join(refused, fmt.Errorf("task %q: %w", h.was.ID, err))
		default:
			return 0, nil, fmt.Errorf("task %q: %w", h.was.ID, err)
		}
	}
	return applied, refused, nil
}

// hold reads a row of guarded.
func hold(row []driver.Value) held {
	c := cells(row)
	h := held{n: c.int()}
	t := &h.was
	t.ID = c.text()
	t.LifecycleStatus, _ = status(c.int()) // one that is none matches no change
	t.NotBefore, t.Executor, t.Attempt, t.ClaimID, t.Desired, t.Incarnation = c.int(), c.text(), c.int(), c.text(), task.Desired(c.text()), c.text()
	t.AssignedDateTime, t.StartDateTime, t.FinishDateTime, t.Error, t.AttachmentsVersion = c.int(), c.int(), c.int(), c.text(), c.int()
	var r run
	if unpack("run", c.next(), &r) == nil { // what cannot be read is begun anew
		r.give(t)
	}
	t.Attachments, t.Result = kept, kept
	h.is = h.was
	h.is.Attempts = slices.Clone(h.was.Attempts)
	return h
}

// What else a statement that writes a changed row sets. It stands apart since an index is written anew where one of its columns is set, also
// where the value stays, and so is what is large.
const (
	setExecutor = 1 << iota
	setResult
	setAttachments
)

// updates are the statements that write a changed row, by what else they set. What all of them set costs no index anything that the status
// does not cost it in any case.
var updates = func() (all [8]string) {
	for i := range all {
		sql := "UPDATE tasks SET status = ?, updated = ?, not_before = ?, attempt = ?, claim = ?, desired = ?, incarnation = ?, assigned = ?, started = ?, " +
			"finished = ?, error = ?, version = ?, run = ?"
		for k, column := range []string{"executor", "result", "attachments"} {
			if i&(1<<k) != 0 {
				sql += ", " + column + " = ?"
			}
		}
		all[i] = sql + " WHERE n = ?"
	}
	return all
}()

const (
	deleteBody = "DELETE FROM bodies WHERE n = ?"
	addBody    = "INSERT INTO bodies (n, body) VALUES (?, ?)"
)

// update writes a changed row.
func (t *tx) update(h *held) error {
	is := &h.is
	r := runOf(is)
	packed, err := packRun(&r)
	if err != nil {
		return refusal{err}
	}
	set := []driver.Value{
		number(is.LifecycleStatus), is.UpdateDateTime, is.NotBefore, is.Attempt, text(is.ClaimID), text(is.Desired), text(is.Incarnation),
		is.AssignedDateTime, is.StartDateTime, is.FinishDateTime, text(is.Error), is.AttachmentsVersion, packed,
	}
	which := 0
	if is.Executor != h.was.Executor {
		which |= setExecutor
		set = append(set, text(is.Executor))
	}
	if !isKept(is.Result) {
		which |= setResult
		set = append(set, blob(is.Result))
	}
	var body []byte
	if !isKept(is.Attachments) {
		which |= setAttachments
		var attachments driver.Value
		attachments, body = attach(is.Attachments)
		set = append(set, attachments)
	}
	if _, err := t.exec(updates[which], append(set, h.n)...); err != nil {
		return refusable(err)
	}
	if which&setAttachments != 0 {
		if _, err := t.exec(deleteBody, h.n); err != nil {
			return err
		}
	}
	if body != nil {
		if _, err := t.exec(addBody, h.n, body); err != nil {
			return refusable(err)
		}
	}
	t.counts[number(h.was.LifecycleStatus)]--
	t.counts[number(is.LifecycleStatus)]++
	return nil
}
