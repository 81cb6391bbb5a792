package task

import (
	"maps"
	"slices"
)

// Clone is a copy that shares nothing that is ever written with t. The JSON texts (attachments, result) are shared:
// nobody writes into them, they are only replaced.
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
