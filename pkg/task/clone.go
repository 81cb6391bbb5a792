package task

import (
	"maps"
	"slices"
)

// Clone returns a copy that shares no memory that is ever written. The JSON texts (attachments, result) are shared:
// they are replaced, never changed.
func (t *Task) Clone() Task {
	c := *t
	c.Dependencies = slices.Clone(t.Dependencies)
	c.Attempts = slices.Clone(t.Attempts)
	c.Labels = maps.Clone(t.Labels)
	if t.MaxAttempts != nil {
		c.MaxAttempts = new(*t.MaxAttempts)
	}
	if t.MaxCrashes != nil {
		c.MaxCrashes = new(*t.MaxCrashes)
	}
	if t.Backoff != nil {
		c.Backoff = new(*t.Backoff)
	}
	if t.Progress != nil {
		c.Progress = new(*t.Progress)
	}
	return c
}
