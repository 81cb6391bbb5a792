package registry

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/skalds-go/skalds/pkg/task"
)

// Limits of what a registry keeps, the same for every implementation.
const (
	// MaxIDBytes is the longest node id.
	MaxIDBytes = 255
	// MaxNodeBytes is the most that a heartbeat's texts, classes, capacities by class and labels hold together. The
	// task list and what is running by class, which change from one heartbeat to the next, do not count.
	MaxNodeBytes = 64 << 10
	// MaxTasks is the longest task list. A node with more is alive all the same, but its list reads as ErrIncomplete.
	MaxTasks = 10_000

	maxAhead   = 24 * time.Hour // of a node's clock
	maxKeyShow = 40
)

// CheckID returns why a node cannot have the id, or nil.
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

// Check returns why no registry can keep the heartbeat, or nil. An implementation refuses to write one that does not
// pass.
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
		return fmt.Errorf("node %s reports %d bytes, at most %d are allowed: it needs fewer or shorter classes (%d) and labels (%d)",
			n.ID, size, MaxNodeBytes, len(n.Classes), len(n.Labels))
	}
	return nil
}

// Validate returns, in words for people, what cannot be true in a heartbeat, or "". It includes what Check refuses; now
// is the reader's time in epoch ms. A node whose heartbeat is invalid is alive all the same, but must get no work:
// nothing else that it reports can be trusted either.
func Validate(n *Node, now int64) string {
	if problem := cmp.Or(invalidNumber(n, now), invalidClasses(n), invalidLabels(n.Labels)); problem != "" {
		return problem
	}
	if err := Check(n); err != nil {
		return err.Error()
	}
	return ""
}

// number is a field of Node that holds a number.
type number struct {
	index   int
	name    string
	highest int64
}

var numbers = func() (list []number) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Node]()) {
		switch f.Type.Kind() {
		case reflect.Int, reflect.Int64, reflect.Float64:
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			list = append(list, number{f.Index[0], name, highest(name)})
		default:
		}
	}
	return list
}()

func invalidNumber(n *Node, now int64) string {
	fields := reflect.ValueOf(n).Elem()
	for _, number := range numbers {
		switch v := fields.Field(number.index); {
		case v.CanFloat():
			if x := v.Float(); !(x >= 0 && x <= float64(number.highest)) { // or not a number
				return fmt.Sprintf("its %s is %v, which must be from 0 to %d", number.name, x, number.highest)
			}
		case v.Int() < 0:
			return fmt.Sprintf("its %s is %d, which cannot be below 0", number.name, v.Int())
		case v.Int() > number.highest:
			return fmt.Sprintf("its %s is %d, which cannot be above %d", number.name, v.Int(), number.highest)
		}
	}
	if n.StartedAt-now > maxAhead.Milliseconds() {
		return fmt.Sprintf("its startedAt is %s, more than %s ahead of the clock here", time.UnixMilli(n.StartedAt).UTC().Format(time.RFC3339), maxAhead)
	}
	return ""
}

func invalidClasses(n *Node) string {
	if len(n.Classes) > MaxClasses {
		return fmt.Sprintf("it has %d classes, at most %d are allowed", len(n.Classes), MaxClasses)
	}
	for _, class := range n.Classes {
		if class == "" || len(class) > task.MaxClassBytes {
			return fmt.Sprintf("one of its classes is %.*q with %d bytes, 1 to %d are allowed", maxKeyShow, class, len(class), task.MaxClassBytes)
		}
	}
	for _, by := range [...]struct {
		name   string
		counts map[string]int
		most   int
	}{{"capacityByClass", n.CapacityByClass, MaxCapacity}, {"runningByClass", n.RunningByClass, maxHeld}} {
		if len(by.counts) > MaxClasses {
			return fmt.Sprintf("its %s has %d classes, at most %d are allowed", by.name, len(by.counts), MaxClasses)
		}
		for _, class := range slices.Sorted(maps.Keys(by.counts)) {
			switch slots := by.counts[class]; {
			case len(class) > task.MaxClassBytes:
				return fmt.Sprintf("its %s has the class %.*q with %d bytes, at most %d are allowed",
					by.name, maxKeyShow, class, len(class), task.MaxClassBytes)
			case slots < 0 || slots > by.most:
				return fmt.Sprintf("its %s of %.*q is %d, which must be from 0 to %d", by.name, maxKeyShow, class, slots, by.most)
			}
		}
	}
	return ""
}

func invalidLabels(labels map[string]string) string {
	if len(labels) > task.MaxLabels {
		return fmt.Sprintf("it has %d labels, at most %d are allowed", len(labels), task.MaxLabels)
	}
	const most = task.MaxPrefixBytes + len("/") + task.MaxLabelBytes
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		switch value := labels[key]; {
		case len(key) > most:
			return fmt.Sprintf("it has a label whose key, %.*q, has %d bytes, at most %d are allowed", maxKeyShow, key, len(key), most)
		case len(value) > task.MaxLabelBytes:
			return fmt.Sprintf("its label %.*q has a value of %d bytes, at most %d are allowed", maxKeyShow, key, len(value), task.MaxLabelBytes)
		}
	}
	return ""
}
