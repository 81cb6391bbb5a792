package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/skalds-go/skalds/pkg/rawjson"
	"github.com/skalds-go/skalds/pkg/task"
)

// CheckBatch reports whether a call may carry n tasks, changes or ids.
func CheckBatch(n int) error {
	if n > MaxBatch {
		return fmt.Errorf("a batch of %d: at most %d in one call; split it", n, MaxBatch)
	}
	return nil
}

// CheckLimit reports whether a call may ask for at most n.
func CheckLimit(n int) error {
	if n < 1 || n > MaxBatch {
		return fmt.Errorf("limit %d: must be 1..%d", n, MaxBatch)
	}
	return nil
}

// CheckChanges reports whether a store can carry the changes out. One that applies in no status is no error; it changes
// nothing.
func CheckChanges(changes []task.Change) error {
	for i := range changes {
		if c := &changes[i]; c.From != 0 && task.Set(c.To) == 0 {
			return fmt.Errorf("change of task %q to status %q: must be one of %v", c.ID, c.To, task.All())
		}
	}
	return CheckBatch(len(changes))
}

// Permits are the permits that a task holds once c has been carried out on it, where c gives it any. A change whose
// permit another task holds does not apply.
func Permits(c *task.Change) (key, pool string) {
	if c.Assign == nil || c.Frees() {
		return "", ""
	}
	return c.Assign.KeyPermit, c.Assign.PoolPermit
}

// Check reports whether a store can answer f.
func (f *Filter) Check() error {
	if err := CheckLimit(f.Limit); err != nil {
		return err
	}
	if f.Skip < 0 {
		return fmt.Errorf("skip %d: must not be negative", f.Skip)
	}
	if f.Skip > 0 && f.Cursor != "" {
		return errors.New("skip and cursor: use one of them")
	}
	return nil
}

// CheckNew reports whether t can be stored as a new task by every store. It guards what would make a document that
// nobody finds or reads again; whether the task makes sense is for the API to say.
func CheckNew(t *task.Task) error {
	if t.ID == "" {
		return errors.New("id is empty: give the task one")
	}
	if err := CheckKnown(t); err != nil {
		return err
	}
	for k := range t.Labels {
		if strings.ContainsRune(k, 0) {
			return fmt.Errorf("label %q: a key cannot hold a NUL", k)
		}
	}
	if err := CheckJSON(t.Attachments); err != nil {
		return fmt.Errorf("attachments: %w", err)
	}
	if err := CheckJSON(t.Result); err != nil {
		return fmt.Errorf("result: %w", err)
	}
	return nil
}

// CheckKnown reports a status or a mode that this version does not know.
func CheckKnown(t *task.Task) error {
	if task.Set(t.LifecycleStatus) == 0 {
		return fmt.Errorf("lifecycleStatus is %q: must be one of %v", t.LifecycleStatus, task.All())
	}
	if t.Mode != task.ModePassive && t.Mode != task.ModeActive {
		return fmt.Errorf("mode is %q: must be %s or %s", t.Mode, task.ModePassive, task.ModeActive)
	}
	return nil
}

// CheckJSON reports why a store cannot hold raw: it is not JSON, not UTF-8, or a key contains a NUL. Empty JSON is
// fine.
func CheckJSON(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	if err := rawjson.Check(raw); err != nil {
		return fmt.Errorf("%w: %s", err, head(raw))
	}
	return rawjson.CheckKeys(raw)
}

// head is the beginning of a text, for errors.
func head(raw json.RawMessage) string {
	const limit = 40
	if len(raw) > limit {
		return fmt.Sprintf("%q...", raw[:limit])
	}
	return fmt.Sprintf("%q", raw)
}
