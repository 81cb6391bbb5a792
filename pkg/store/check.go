package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/skalds-go/skalds/pkg/task"
)

// CheckBatch says whether a call may carry n tasks, changes or ids.
func CheckBatch(n int) error {
	if n > MaxBatch {
		return fmt.Errorf("a batch of %d: at most %d in one call; split it", n, MaxBatch)
	}
	return nil
}

// CheckLimit says whether a call may ask for at most n.
func CheckLimit(n int) error {
	if n < 1 || n > MaxBatch {
		return fmt.Errorf("limit %d: must be 1..%d", n, MaxBatch)
	}
	return nil
}

// CheckChanges says whether a store can carry the changes out. One that applies in no status is no error; it changes nothing.
func CheckChanges(changes []task.Change) error {
	for i := range changes {
		if c := &changes[i]; c.From != 0 && task.Set(c.To) == 0 {
			return fmt.Errorf("change of task %q to status %q: must be one of %v", c.ID, c.To, task.All())
		}
	}
	return CheckBatch(len(changes))
}

// Permits are the permits that a task holds once c has been carried out on it, where c gives it any. A change whose permit another task holds
// does not apply.
func Permits(c *task.Change) (key, pool string) {
	if c.Assign == nil || c.Frees() {
		return "", ""
	}
	return c.Assign.KeyPermit, c.Assign.PoolPermit
}

// Check says whether a store can answer f.
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

// CheckNew says whether t can be stored as a new task by every store. It guards what would make a document that nobody finds or reads
// again; whether the task makes sense is for the API to say.
func CheckNew(t *task.Task) error {
	if t.ID == "" {
		return errors.New("id is empty: give the task one")
	}
	if task.Set(t.LifecycleStatus) == 0 {
		return fmt.Errorf("lifecycleStatus %q: must be one of %v", t.LifecycleStatus, task.All())
	}
	if t.Mode != task.ModePassive && t.Mode != task.ModeActive {
		return fmt.Errorf("mode %q: must be %s or %s", t.Mode, task.ModePassive, task.ModeActive)
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

// CheckJSON says whether raw is JSON that every store takes: valid, in UTF-8, no key with a NUL. Nothing at all is fine.
func CheckJSON(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	if !json.Valid(raw) {
		return fmt.Errorf("not JSON: %s", head(raw))
	}
	if !utf8.Valid(raw) {
		return fmt.Errorf("not UTF-8: %s", head(raw))
	}
	if key, ok := nulKey(raw); ok {
		return fmt.Errorf("key %q: a key cannot hold a NUL", key)
	}
	return nil
}

// nulKey finds a key with a NUL in valid JSON.
func nulKey(raw json.RawMessage) (string, bool) {
	if !bytes.Contains(raw, []byte(`\u0000`)) {
		return "", false
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '"' {
			continue
		}
		end := i + 1
		for raw[end] != '"' {
			if raw[end] == '\\' {
				end++
			}
			end++
		}
		text := raw[i : end+1]
		i = end
		if !bytes.HasPrefix(bytes.TrimLeft(raw[end+1:], " \t\r\n"), []byte(":")) {
			continue // a value
		}
		var key string
		if json.Unmarshal(text, &key) == nil && strings.ContainsRune(key, 0) {
			return key, true
		}
	}
	return "", false
}

// head is the beginning of a text, for errors.
func head(raw json.RawMessage) string {
	const limit = 40
	if len(raw) > limit {
		return fmt.Sprintf("%q...", raw[:limit])
	}
	return fmt.Sprintf("%q", raw)
}
