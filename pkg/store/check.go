package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/skalds-go/skalds/pkg/rawjson"
	"github.com/skalds-go/skalds/pkg/task"
)

// CheckBatch reports a call with more than MaxBatch tasks, changes or ids.
func CheckBatch(n int) error {
	if n > MaxBatch {
		return fmt.Errorf("a batch of %d: at most %d in one call; split it", n, MaxBatch)
	}
	return nil
}

// CheckLimit reports a limit that is not 1..MaxBatch.
func CheckLimit(n int) error {
	if n < 1 || n > MaxBatch {
		return fmt.Errorf("limit %d: must be 1..%d", n, MaxBatch)
	}
	return nil
}

// CheckChanges reports changes that no store can carry out. A change that applies in no status is no error: it changes
// nothing.
func CheckChanges(changes []task.Change) error {
	for i := range changes {
		if c := &changes[i]; c.From != 0 && task.Set(c.To) == 0 {
			return fmt.Errorf("change of task %q to status %q: must be one of %v", c.ID, c.To, task.All())
		}
	}
	return CheckBatch(len(changes))
}

// Permits returns the permits that c gives its task; empty if none. A change whose permit another task holds does not
// apply.
func Permits(c *task.Change) (key, pool string) {
	if c.Assign == nil || c.Frees() {
		return "", ""
	}
	return c.Assign.KeyPermit, c.Assign.PoolPermit
}

// Check reports a filter that no store can answer.
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

// CheckNew reports why t cannot be stored as a new task. It prevents documents that could not be found or read again.
// The rules of a submit are in [task.Task.CheckSubmit].
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

// head returns the beginning of a text, for errors.
func head(raw json.RawMessage) string {
	const limit = 40
	if len(raw) > limit {
		return fmt.Sprintf("%q...", raw[:limit])
	}
	return fmt.Sprintf("%q", raw)
}
