package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

var (
	taskByKey = "SELECT " + whole + " FROM tasks WHERE key = ?"
	taskByID  = "SELECT " + whole + " FROM tasks WHERE id = ?"
)

const (
	knownIDs  = "SELECT id FROM tasks WHERE id IN "
	knownKeys = "SELECT key FROM tasks WHERE key IN "
)

// newRow is a task on its way in.
type newRow struct {
	place  int // in the outcomes
	id     string
	key    string
	values []driver.Value
	body   []byte
	row    *kept
}

// Create implements store.Tasks.
func (s *Store) Create(ctx context.Context, tasks []task.Task) ([]store.CreateOutcome, error) {
	if err := store.CheckBatch(len(tasks)); err != nil {
		return nil, fmt.Errorf("sqlite: create: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, s.fail("create", err)
	}
	out := make([]store.CreateOutcome, len(tasks))
	rows := make([]newRow, 0, len(tasks))
	bytes := 0
	for i := range tasks {
		t := &tasks[i]
		r := newRow{place: i, id: t.ID, key: t.IdempotencyKey}
		err := store.CheckNew(t)
		if err == nil {
			r.values, r.body, err = values(t)
		}
		if err != nil {
			out[i] = store.CreateOutcome{Status: store.CreateFailed, Err: fmt.Errorf("task %q: %w", t.ID, err)}
			continue
		}
		r.row = &kept{is: t.Clone()}
		if r.body != nil {
			r.row.is.Attachments = elsewhere
		}
		bytes += len(t.Attachments) + len(t.Result)
		rows = append(rows, r)
	}
	for part := range slices.Chunk(rows, partRows) {
		var found []store.CreateOutcome
		err := s.commit(ctx, "create", s.calls, &call{rows: len(part), bytes: bytes * len(part) / len(rows), do: func(t *tx) error {
			found = make([]store.CreateOutcome, len(part))
			for i := range part {
				if err := t.create(&part[i], &found[i]); err != nil {
					return err
				}
			}
			return nil
		}})
		if err != nil {
			return nil, err
		}
		for i := range part {
			out[part[i].place] = found[i]
		}
	}
	return out, nil
}

// partRows is how many tasks of a Create share a transaction, so that many new tasks do not hold up for long those that
// run.
const partRows = 200

func (t *tx) create(r *newRow, out *store.CreateOutcome) error {
	sql := insertNew
	if len(r.values) > newValues {
		sql = insertTask
	}
	n, at, err := t.insert(sql, r.values...)
	switch never := (refusal{}); {
	case errors.As(refusable(err), &never):
		*out = store.CreateOutcome{Status: store.CreateFailed, Err: fmt.Errorf("task %q: %w", r.id, err)}
		return nil
	case err != nil:
		return fmt.Errorf("task %q: %w", r.id, err)
	case n == 0:
		*out, err = t.obstacle(r)
		return err
	}
	t.counts[number(r.row.is.LifecycleStatus)]++
	if r.body != nil {
		if _, err := t.exec(addBody, at, r.body); err != nil {
			return fmt.Errorf("attachments of task %q: %w", r.id, err)
		}
	}
	r.row.n = at
	t.remember(r.row)
	return nil
}

// obstacle returns the outcome for a new task that something stood in the way of.
func (t *tx) obstacle(r *newRow) (store.CreateOutcome, error) {
	if err := t.writeDeferred(); err != nil {
		return store.CreateOutcome{}, err
	}
	var found *task.Task
	take := func(row []driver.Value) error {
		old, _ := decode(row) // as far as it can be read
		found = &old
		return nil
	}
	for _, look := range []struct {
		status store.CreateStatus
		sql    string
		value  string
	}{{store.CreateSameKey, taskByKey, r.key}, {store.CreateExists, taskByID, r.id}} {
		if look.value == "" {
			continue
		}
		if err := t.query(look.sql, take, look.value); err != nil {
			return store.CreateOutcome{}, fmt.Errorf("task %q: %w", r.id, err)
		}
		if found != nil {
			return store.CreateOutcome{Status: look.status, Existing: found}, nil
		}
	}
	if r.row.is.KeyPermit != "" || r.row.is.PoolPermit != "" {
		return store.CreateOutcome{Status: store.CreateFailed, Err: fmt.Errorf("task %q: %w", r.id, errPermit)}, nil
	}
	return store.CreateOutcome{}, fmt.Errorf("task %q: %w", r.id, errNoObstacle)
}

// Known implements store.Tasks.
func (s *Store) Known(ctx context.Context, tasks []task.Task) ([]bool, error) {
	if err := store.CheckBatch(len(tasks)); err != nil {
		return nil, fmt.Errorf("sqlite: known: %w", err)
	}
	ids, keys := make([]string, len(tasks)), make([]string, 0, len(tasks))
	for i := range tasks {
		ids[i] = tasks[i].ID
		if key := tasks[i].IdempotencyKey; key != "" {
			keys = append(keys, key)
		}
	}
	there := make(map[string]struct{})
	note := func(kind string) func([]driver.Value) error {
		return func(row []driver.Value) error {
			c := cells(row)
			there[kind+c.text()] = struct{}{}
			return nil
		}
	}
	err := s.snapshotTasks(ctx, "look for known tasks", func(c *conn) error {
		return errors.Join(each(c, knownIDs, ids, note("id ")), each(c, knownKeys, keys, note("key ")))
	})
	if err != nil {
		return nil, err
	}
	known := make([]bool, len(tasks))
	for i := range tasks {
		_, byID := there["id "+tasks[i].ID]
		_, byKey := there["key "+tasks[i].IdempotencyKey]
		known[i] = byID || byKey
	}
	return known, nil
}

// newValues is how many values insertNew takes.
var newValues = strings.Count(insertNew, "?")

var errPermit = errors.New("another task holds its permit: create it without")

var errNoObstacle = errors.New("it was not stored, and nothing is in its way")
