package registry

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of what a node may say of itself, the same for every implementation.
const (
	// MaxIDBytes is the longest node id.
	MaxIDBytes = 255
	// MaxNodeBytes is the most that a heartbeat's texts, classes, capacities by class and labels hold together, without what changes from
	// one to the next: the task list, and what is running by class.
	MaxNodeBytes = 64 << 10
	// MaxTasks is the longest task list. A node with more is alive all the same, but its list reads as ErrIncomplete.
	MaxTasks = 10_000
)

// ErrStale says that a newer heartbeat of the same incarnation was written before; the older one changed nothing.
var ErrStale = errors.New("a newer heartbeat was already written")

// ErrIncomplete says that a node's task list cannot be read as a whole now, so that a task's absence from it means nothing.
var ErrIncomplete = errors.New("task list is incomplete")

// CheckID says why a node cannot have the id, or nil.
func CheckID(id string) error {
	switch {
	case id == "":
		return errors.New("node id is empty")
	case len(id) > MaxIDBytes:
		return fmt.Errorf("node id has %d bytes, at most %d are allowed: %.40q", len(id), MaxIDBytes, id)
	case strings.ContainsAny(id, "{}"): // they would move the hash tag of the keys
		return fmt.Errorf("node id %q holds a brace", id)
	case !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl):
		return fmt.Errorf("node id %q holds control characters or is not UTF-8", id)
	}
	return nil
}

// Check says what is wrong with a heartbeat, or nil. An implementation refuses to write one that does not pass.
func Check(n *Node) error {
	if err := CheckID(n.ID); err != nil {
		return err
	}
	if n.Incarnation == "" {
		return fmt.Errorf("node %s has no incarnation", n.ID)
	}
	if n.Replaces == n.Incarnation {
		return fmt.Errorf("node %s: incarnation %s cannot replace itself", n.ID, n.Incarnation)
	}
	size := len(n.Incarnation) + len(n.Replaces) + len(n.Mode) + len(n.State) + len(n.Address) + len(n.Version)
	for _, class := range n.Classes {
		size += len(class)
	}
	for class := range n.CapacityByClass {
		size += len(class)
	}
	for k, v := range n.Labels {
		size += len(k) + len(v)
	}
	if size > MaxNodeBytes {
		return fmt.Errorf("node %s says %d bytes of itself, at most %d are allowed: it needs fewer or shorter classes (%d) and labels (%d)",
			n.ID, size, MaxNodeBytes, len(n.Classes), len(n.Labels))
	}
	return nil
}

// Newest gives the list as it is kept: by task id, with only the highest attempt of each task. A node can hold an old claim of a
// task whose end is not settled beside the present one; only the present one means anything. The argument is not changed.
func Newest(tasks []HeldTask) []HeldTask {
	list := slices.Clone(tasks)
	slices.SortFunc(list, func(a, b HeldTask) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(b.Attempt, a.Attempt))
	})
	return slices.CompactFunc(list, func(a, b HeldTask) bool { return a.ID == b.ID })
}
