package redis

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

// fields are those of the hash that are read, in the order in which decodeNode expects them.
var fields = []string{
	"incarnation", "counter", "mode", "state", "classes", "labels", "capacity", "prefetch", "running", "queued", "received",
	"finished", "partition", "protocol", "address", "version", "cpu", "memory", "startedAt", "tasks",
}

// appendNode appends names and values of the hash's fields, without those that beat.lua sets itself (incarnation, counter, list, tasks).
func appendNode(to []any, n *registry.Node) []any {
	classes, _ := json.Marshal(n.Classes) // strings always encode
	labels, _ := json.Marshal(n.Labels)
	return append(to,
		"mode", n.Mode, "state", string(n.State), "classes", classes, "labels", labels,
		"capacity", number(n.Capacity), "prefetch", number(n.Prefetch), "running", number(n.Running), "queued", number(n.Queued),
		"received", number(n.Received), "finished", number(n.Finished), "partition", number(n.Partition), "protocol", number(n.Protocol),
		"address", n.Address, "version", n.Version, "cpu", strconv.FormatFloat(n.CPU, 'g', 6, 64), "memory", number(n.Memory),
		"startedAt", number(n.StartedAt))
}

// decodeNode reads the values of fields. It reports false if there is no such hash. tasks is the length of the node's task list.
// A field that is missing has its zero value, except incarnation and counter, which make it a node.
func decodeNode(id string, values []any) (n registry.Node, tasks int, found bool, err error) {
	d := decoder{values: values}
	n = registry.Node{
		ID: id, Incarnation: d.text(), Counter: d.integer(), Mode: d.text(), State: registry.State(d.text()),
	}
	d.json(&n.Classes)
	d.json(&n.Labels)
	n.Capacity, n.Prefetch, n.Running, n.Queued = int(d.integer()), int(d.integer()), int(d.integer()), int(d.integer())
	n.Received, n.Finished = d.integer(), d.integer()
	n.Partition, n.Protocol = int(d.integer()), int(d.integer())
	n.Address, n.Version = d.text(), d.text()
	n.CPU = d.float()
	n.Memory, n.StartedAt = d.integer(), d.integer()
	tasks = int(d.integer())
	switch {
	case d.present == 0 && d.err == nil:
		return registry.Node{}, 0, false, nil
	case d.err == nil && (n.Incarnation == "" || values[1] == nil):
		d.err = fmt.Errorf("incarnation or counter is missing")
	}
	if d.err != nil {
		return registry.Node{}, 0, true, d.err
	}
	return n, tasks, true, nil
}

// decoder takes one value of fields after the other and keeps the first error.
type decoder struct {
	values  []any
	at      int
	present int
	size    int
	err     error
}

func (d *decoder) fail(why string) {
	if d.err == nil {
		d.err = fmt.Errorf("field %s %s", fields[d.at-1], why)
	}
}

// text gives the next value; a missing one is empty.
func (d *decoder) text() string {
	at := d.at
	d.at++
	if at >= len(d.values) || d.values[at] == nil {
		return ""
	}
	d.present++
	s, ok := d.values[at].(string)
	if !ok {
		d.fail("is not a text")
		return ""
	}
	// Twice the limit of writing, since JSON may double what it holds, and a later version may write more.
	if d.size += len(s); d.size > 2*registry.MaxNodeBytes {
		d.fail(fmt.Sprintf("ends more than %d bytes", 2*registry.MaxNodeBytes))
		return ""
	}
	return s
}

func (d *decoder) integer() int64 {
	s := d.text()
	if s == "" {
		return 0
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		d.fail(fmt.Sprintf("holds %.40q, not an integer", s))
	}
	return v
}

// float takes what is no number to be 0, so that it never reaches JSON.
func (d *decoder) float() float64 {
	s := d.text()
	if s == "" {
		return 0
	}
	v, err := strconv.ParseFloat(s, 64)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return 0
	case err != nil:
		d.fail(fmt.Sprintf("holds %.40q, not a number", s))
	}
	return v
}

func (d *decoder) json(into any) {
	s := d.text()
	if s == "" {
		return
	}
	if err := json.Unmarshal([]byte(s), into); err != nil {
		d.fail(fmt.Sprintf("holds %.40q: %v", s, err))
	}
}

// held is the value of a task in the list; its field is the task's id.
type held struct {
	Attempt int64     `json:"attempt"`
	ClaimID string    `json:"claimId"`
	State   task.Kind `json:"state"`
}

func appendTasks(to []any, tasks []registry.HeldTask) []any {
	for _, t := range tasks {
		value, _ := json.Marshal(held{t.Attempt, t.ClaimID, t.State}) // always encodes
		to = append(to, t.ID, value)
	}
	return to
}

func decodeTasks(list map[string]string) ([]registry.HeldTask, error) {
	tasks := make([]registry.HeldTask, 0, len(list))
	for id, value := range list {
		var h held
		if err := json.Unmarshal([]byte(value), &h); err != nil {
			return nil, fmt.Errorf("task %.40q holds %.80q: %w", id, value, err)
		}
		tasks = append(tasks, registry.HeldTask{ID: id, Attempt: h.Attempt, ClaimID: h.ClaimID, State: h.State})
	}
	return registry.Newest(tasks), nil
}

// listDigest names the content of a list, whatever its order.
func listDigest(tasks []registry.HeldTask) string {
	var sum uint64
	var buf [256]byte
	for _, t := range tasks {
		b := append(buf[:0], t.ID...)
		b = append(b, 0)
		b = strconv.AppendInt(b, t.Attempt, 10)
		b = append(b, 0)
		b = append(b, t.ClaimID...)
		b = append(b, 0)
		b = append(b, t.State...)
		sum += xxhash.Sum64(b)
	}
	return strconv.FormatUint(sum, 16) + "." + strconv.Itoa(len(tasks))
}
