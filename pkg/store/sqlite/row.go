package sqlite

import (
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/skalds-go/skalds/pkg/task"
)

// inlineBytes is the size up to which attachments stand in the task's own row.
const inlineBytes = 1 << 10

// large stands in the row in place of attachments that do not.
const large = int64(1)

// spec is what is given with a task, never changes, and is seldom there. The names are those of the task's own JSON, as
// which it is read.
type spec struct {
	Source           string            `json:"source,omitempty"`
	Name             string            `json:"name,omitempty"`
	Description      string            `json:"description,omitempty"`
	Dependencies     []string          `json:"dependencies,omitempty"`
	MaxAttempts      *int              `json:"maxAttempts,omitempty"`
	MaxCrashes       *int              `json:"maxCrashes,omitempty"`
	Backoff          *task.Backoff     `json:"backoff,omitempty"`
	TimeoutMs        int64             `json:"timeoutMs,omitempty"`
	Labels           map[string]string `json:"labels,omitempty"`
	Selector         string            `json:"selector,omitempty"`
	Strategy         string            `json:"strategy,omitempty"`
	StickyKey        string            `json:"stickyKey,omitempty"`
	AntiAffinityKey  string            `json:"antiAffinityKey,omitempty"`
	Slots            int               `json:"slots,omitempty"`
	ConcurrencyKey   string            `json:"concurrencyKey,omitempty"`
	ConcurrencyLimit int               `json:"concurrencyLimit,omitempty"`
	Pool             string            `json:"pool,omitempty"`
	Namespace        string            `json:"namespace,omitempty"`
}

// run is what changes with a task's runs and is seldom there, under the same names.
type run struct {
	Failures int            `json:"failures,omitempty"`
	Crashes  int            `json:"crashes,omitempty"`
	Progress *task.Progress `json:"progress,omitempty"`
	Attempts []task.Run     `json:"attempts,omitempty"`
}

func specOf(t *task.Task) spec {
	return spec{
		Source: t.Source, Name: t.Name, Description: t.Description, Dependencies: t.Dependencies, MaxAttempts: t.MaxAttempts, MaxCrashes: t.MaxCrashes,
		Backoff: t.Backoff, TimeoutMs: t.TimeoutMs, Labels: t.Labels, Selector: t.Selector, Strategy: t.Strategy, StickyKey: t.StickyKey,
		AntiAffinityKey: t.AntiAffinityKey, Slots: t.Slots, ConcurrencyKey: t.ConcurrencyKey, ConcurrencyLimit: t.ConcurrencyLimit, Pool: t.Pool,
		Namespace: t.Namespace,
	}
}

func runOf(t *task.Task) run {
	return run{Failures: t.Failures, Crashes: t.Crashes, Progress: t.Progress, Attempts: t.Attempts}
}

// pack writes v as JSON; nothing for one in which nothing is set.
func pack(v any) (driver.Value, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names the task
	}
	if string(text) == "{}" {
		return nil, nil
	}
	return string(text), nil
}

// packRun is pack for what nearly every change writes.
func packRun(r *run) (driver.Value, error) {
	if r.Failures == 0 && r.Crashes == 0 && r.Progress == nil && len(r.Attempts) == 0 {
		return nil, nil
	}
	return pack(r)
}

// attach returns what stands in the row for attachments, and themselves if they stand apart.
func attach(raw json.RawMessage) (row driver.Value, body []byte) {
	if len(raw) > inlineBytes {
		return large, raw
	}
	return blob(raw), nil
}

// unpack reads what pack wrote.
func unpack(column string, from driver.Value, v any) error {
	text, ok := from.(string)
	if !ok {
		return nil
	}
	if err := json.Unmarshal([]byte(text), v); err != nil {
		return fmt.Errorf("column %s does not decode: %w", column, err)
	}
	return nil
}

// text is NULL where there is none.
func text[S ~string](s S) driver.Value {
	if s == "" {
		return nil
	}
	return string(s)
}

// blob is NULL where there is none.
func blob(raw json.RawMessage) driver.Value {
	if len(raw) == 0 {
		return nil
	}
	return []byte(raw)
}

func flag(yes bool) driver.Value {
	if yes {
		return int64(1)
	}
	return int64(0)
}

var statuses = task.All()

// number is the status as a number. CheckNew and CheckChanges let only known ones pass.
func number(s task.Status) int64 {
	for i, known := range statuses {
		if s == known {
			return int64(i)
		}
	}
	panic("sqlite store: a task of the unknown status " + string(s) + " came in")
}

// status is the status of a number.
func status(n int64) (task.Status, error) {
	if n < 0 || n >= int64(len(statuses)) {
		return "", fmt.Errorf("status is %d: must be 0 to %d", n, len(statuses)-1)
	}
	return statuses[n], nil
}

// The columns of a task but its row number and its queue, in the order of values and decode: those that are given with
// it, those that its runs set, and those that may be large.
const (
	givenColumns = "id, status, mode, priority, created, updated, not_before, deadline, persistent, class, key, spec"
	runColumns   = "executor, attempt, claim, desired, incarnation, assigned, started, finished, error, version, key_permit, pool_permit, run"

	// whole selects a task with all that belongs to it; light selects it without attachments and result.
	whole = light + ", CASE typeof(attachments) WHEN 'integer' THEN " +
		"coalesce((SELECT body FROM bodies WHERE bodies.n = tasks.n), 'lost') ELSE attachments END, result"
	light = givenColumns + ", " + runColumns
)

// insertNew stores a task that never ran where nothing is in its way, insertTask any.
var (
	insertNew  = insert(givenColumns + ", queue, attachments")
	insertTask = insert(givenColumns + ", queue, attachments, " + runColumns + ", result")
)

func insert(columns string) string {
	return "INSERT INTO tasks (" + columns + ") VALUES (?" + strings.Repeat(", ?", strings.Count(columns, ",")) + ") ON CONFLICT DO NOTHING"
}

// values are what insertTask takes, and the attachments if they stand apart. Of a task that never ran they are what
// insertNew takes.
func values(t *task.Task) (row []driver.Value, body []byte, err error) {
	r, s := runOf(t), specOf(t)
	packedRun, runErr := packRun(&r)
	packedSpec, specErr := pack(&s)
	if err := errors.Join(runErr, specErr); err != nil {
		return nil, nil, fmt.Errorf("task %q: %w", t.ID, err)
	}
	attachments, body := attach(t.Attachments)
	row = []driver.Value{
		t.ID, number(t.LifecycleStatus), flag(t.Mode == task.ModeActive), int64(t.Priority), t.CreateDateTime, t.UpdateDateTime,
		t.NotBefore, t.DeadlineDateTime, flag(t.IsPersistent), t.ClassName, text(t.IdempotencyKey), packedSpec, t.Queue(), attachments,
	}
	ran := []driver.Value{
		text(t.Executor), t.Attempt, text(t.ClaimID), text(t.Desired), text(t.Incarnation), t.AssignedDateTime, t.StartDateTime,
		t.FinishDateTime, text(t.Error), t.AttachmentsVersion, text(t.KeyPermit), text(t.PoolPermit), packedRun, blob(t.Result),
	}
	if slices.ContainsFunc(ran, func(v driver.Value) bool { return v != nil && v != int64(0) }) {
		row = append(row, ran...)
	}
	return row, body, nil
}

// cells reads the values of a row one after the other. A value that is not there, or of another type, reads as nothing.
type cells []driver.Value

func (c *cells) next() driver.Value {
	v := (*c)[0]
	*c = (*c)[1:]
	return v
}

func (c *cells) int() int64    { n, _ := c.next().(int64); return n }
func (c *cells) text() string  { s, _ := c.next().(string); return s }
func (c *cells) is(n int) bool { return len(*c) >= n }

// document is the JSON of a column.
func document(column string, from driver.Value) (json.RawMessage, error) {
	raw, ok := from.([]byte)
	if from != nil && (!ok || !json.Valid(raw)) {
		return nil, fmt.Errorf("column %s is not JSON", column)
	}
	return raw, nil
}

// decode reads a row of whole, or of light. A task that cannot be read as a whole comes as far as it can be, with an
// error that says what is wrong with it.
func decode(row []driver.Value) (t task.Task, err error) {
	c := cells(row)
	t.ID = c.text()
	var errs []error
	var bad error
	if t.LifecycleStatus, bad = status(c.int()); bad != nil {
		errs = append(errs, bad)
	}
	t.Mode = task.ModePassive
	if c.int() != 0 {
		t.Mode = task.ModeActive
	}
	t.Priority = int(c.int())
	t.CreateDateTime, t.UpdateDateTime, t.NotBefore, t.DeadlineDateTime, t.IsPersistent = c.int(), c.int(), c.int(), c.int(), c.int() != 0
	t.ClassName, t.IdempotencyKey = c.text(), c.text()
	errs = append(errs, unpack("spec", c.next(), &t))
	t.Executor, t.Attempt, t.ClaimID, t.Desired = c.text(), c.int(), c.text(), task.Desired(c.text())
	t.Incarnation, t.AssignedDateTime, t.StartDateTime, t.FinishDateTime, t.Error, t.AttachmentsVersion = c.text(), c.int(), c.int(), c.int(), c.text(), c.int()
	t.KeyPermit, t.PoolPermit = c.text(), c.text()
	errs = append(errs, unpack("run", c.next(), &t))
	if c.is(2) {
		if t.Attachments, bad = document("attachments", c.next()); bad != nil {
			errs = append(errs, bad)
		}
		if t.Result, bad = document("result", c.next()); bad != nil {
			errs = append(errs, bad)
		}
	}
	return t, errors.Join(errs...)
}
