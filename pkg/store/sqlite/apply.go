package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// guarded is a row but for what may be large: of a result it says only whether there is one, and of attachments that
// stand apart, too.
const guarded = "SELECT n, " + light + ", attachments, result IS NOT NULL FROM tasks WHERE id IN "

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
	before  *kept
	now     *kept
	applied int          // changes
	last    *task.Change // of those
	listed  bool         // to be written
}

// Apply implements store.Tasks.
//
// Changes are made to the rows as they are, by task.Change.Apply, inside the one transaction that writes: so each is a
// compare-and-set, and means what the task package says.
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

// own returns a copy of a change that shares no memory that is ever written.
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
	tasks, err := t.hold(changes)
	if err != nil {
		return 0, nil, err
	}
	holders := newHolders(t.conn)
	for i := range changes {
		h := tasks[changes[i].ID]
		if h == nil || !changes[i].Matches(&h.now.is) {
			continue
		}
		if taken, err := holders.taken(&changes[i]); err != nil {
			return 0, nil, err
		} else if taken {
			continue
		}
		holders.lose(&h.now.is)
		changes[i].Write(&h.now.is)
		holders.hold(&h.now.is)
		h.applied++
		h.last = &changes[i]
	}
	for _, h := range inWritingOrder(changes, tasks) {
		var err error
		if !t.postpone(h) {
			err = t.update(h)
		}
		switch never := (refusal{}); {
		case err == nil:
			applied += h.applied
		case errors.As(err, &never):
			refused = errors.Join(refused, fmt.Errorf("task %q: %w", h.now.is.ID, err))
		default:
			return 0, nil, fmt.Errorf("task %q: %w", h.now.is.ID, err)
		}
	}
	return applied, refused, nil
}

// inWritingOrder returns the changed tasks, first those that have given up a permit, which another may get.
func inWritingOrder(changes []task.Change, tasks map[string]*held) []*held {
	var first, rest []*held
	for i := range changes {
		h := tasks[changes[i].ID]
		switch {
		case h == nil || h.applied == 0 || h.listed:
			continue
		case gaveUp(h.before.is.KeyPermit, h.now.is.KeyPermit), gaveUp(h.before.is.PoolPermit, h.now.is.PoolPermit):
			first = append(first, h)
		default:
			rest = append(rest, h)
		}
		h.listed = true
	}
	return append(first, rest...)
}

// gaveUp reports whether a permit has been given up.
func gaveUp(before, now string) bool { return before != "" && before != now }

// hold returns the tasks that the changes are about, as the transaction sees them.
func (t *tx) hold(changes []task.Change) (map[string]*held, error) {
	tasks := make(map[string]*held, len(changes))
	all := make([]held, 0, len(changes))
	add := func(k *kept) {
		all = append(all, held{before: k, now: &kept{n: k.n, is: k.is, bad: k.bad}})
		tasks[k.is.ID] = &all[len(all)-1]
	}
	var unknown []string
	for i := range changes {
		id := changes[i].ID
		if _, seen := tasks[id]; seen || changes[i].From == 0 {
			continue
		}
		if k := t.recall(id); k != nil {
			add(k)
		} else {
			tasks[id] = nil
			unknown = append(unknown, id)
		}
	}
	err := each(t.conn, guarded, unknown, func(row []driver.Value) error {
		add(read(row))
		return nil
	})
	return tasks, err
}

// read reads a row of guarded, as far as it can be read: a history that cannot be is begun anew.
func read(row []driver.Value) *kept {
	n, _ := row[0].(int64)
	last := len(row) - 2
	t, err := decode(row[1:last])
	k := &kept{n: n, is: t}
	if _, apart := row[last].(int64); apart {
		k.is.Attachments = elsewhere
	} else if raw, bad := document("attachments", row[last]); bad == nil {
		k.is.Attachments = raw
	} else {
		k.is.Attachments, err = elsewhere, bad
	}
	k.bad = err != nil
	if there, _ := row[last+1].(int64); there != 0 {
		k.is.Result = elsewhere
	}
	return k
}

// setter is a column that changes set: its value, and whether that is another than before.
type setter struct {
	column string
	value  func(now, before *task.Task) (v driver.Value, set bool)
}

func setText[S ~string](column string, of func(*task.Task) S) setter {
	return setter{column, func(now, before *task.Task) (driver.Value, bool) { s := of(now); return text(s), s != of(before) }}
}

func setInt(column string, of func(*task.Task) int64) setter {
	return setter{column, func(now, before *task.Task) (driver.Value, bool) { n := of(now); return n, n != of(before) }}
}

// setters are the columns that are written only if a change has touched them: each costs time, and one with an index
// more of it. What is mostly touched is always written.
var setters = []setter{
	setInt("attempt", func(t *task.Task) int64 { return t.Attempt }),
	setText("claim", func(t *task.Task) string { return t.ClaimID }),
	setText("desired", func(t *task.Task) task.Desired { return t.Desired }),
	setText("executor", func(t *task.Task) string { return t.Executor }),
	setText("incarnation", func(t *task.Task) string { return t.Incarnation }),
	setText("error", func(t *task.Task) string { return t.Error }),
	setInt("not_before", func(t *task.Task) int64 { return t.NotBefore }),
	setInt("assigned", func(t *task.Task) int64 { return t.AssignedDateTime }),
	setInt("started", func(t *task.Task) int64 { return t.StartDateTime }),
	setInt("finished", func(t *task.Task) int64 { return t.FinishDateTime }),
	setText("key_permit", func(t *task.Task) string { return t.KeyPermit }),
	setText("pool_permit", func(t *task.Task) string { return t.PoolPermit }),
	setInt("version", func(t *task.Task) int64 { return t.AttachmentsVersion }),
	{"result", func(now, before *task.Task) (driver.Value, bool) {
		return blob(now.Result), !same(now.Result, before.Result)
	}},
	{"attachments", func(now, before *task.Task) (driver.Value, bool) {
		v, _ := attach(now.Attachments)
		return v, !same(now.Attachments, before.Attachments)
	}},
}

const (
	deleteBody = "DELETE FROM bodies WHERE n = ?"
	addBody    = "INSERT INTO bodies (n, body) VALUES (?, ?)"
)

// update writes a changed row.
func (t *tx) update(h *held) error {
	was, is := h.before.filed(), &h.now.is
	r := runOf(is)
	packed, err := packRun(&r)
	if err != nil {
		return refusal{err}
	}
	values := t.values[:0]
	values = append(values, number(is.LifecycleStatus), is.UpdateDateTime, packed)
	which := 0
	for i := range setters {
		if v, set := setters[i].value(is, was); set {
			which |= 1 << i
			values = append(values, v)
		}
	}
	values = append(values, h.now.n)
	t.values = values
	if _, err := t.exec(t.updating(which), values...); err != nil {
		return refusable(err)
	}
	if !same(is.Attachments, was.Attachments) {
		if _, err := t.exec(deleteBody, h.now.n); err != nil {
			return err
		}
		if _, body := attach(is.Attachments); body != nil {
			if _, err := t.exec(addBody, h.now.n, body); err != nil {
				return refusable(err)
			}
			is.Attachments = elsewhere
		}
	}
	t.count(h)
	t.remember(h.now)
	return nil
}

// count counts a task that has another status now.
func (t *tx) count(h *held) {
	t.counts[number(h.before.is.LifecycleStatus)]--
	t.counts[number(h.now.is.LifecycleStatus)]++
}

// updating is the statement that writes these of the setters. There are few that changes lead to.
func (t *tx) updating(which int) string {
	sql, ok := t.updates[which]
	if !ok {
		var b strings.Builder
		b.WriteString("UPDATE tasks SET status = ?, updated = ?, run = ?")
		for i := range setters {
			if which&(1<<i) != 0 {
				b.WriteString(", " + setters[i].column + " = ?")
			}
		}
		b.WriteString(" WHERE n = ?")
		sql = b.String()
		t.updates[which] = sql
	}
	return sql
}
