package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/cespare/xxhash/v2"
	goredis "github.com/redis/go-redis/v9"

	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

// encode is for values of texts and integers, which always have a JSON form.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return b
}

// fields are those of the hash that are read, in the order in which decoder.node takes them.
var fields = []string{
	"incarnation", "counter", "mode", "state", "classes", "labels", "capacity", "prefetch", "running", "queued", "received",
	"finished", "partition", "protocol", "address", "version", "cpu", "memory", "startedAt", "replaces",
	"crashed", "term", "turn", "slotsRunning", "slotsQueued", "capacityByClass", "runningByClass", "cpus", "memoryTotal", "tasks",
}

// maxReadBytes bounds what a hash holds. It is more than the limit of writing, since JSON escapes make texts up to six times longer, the
// classes may stand there once more with what each is running, and a later version may write more.
const maxReadBytes = 16 * registry.MaxNodeBytes

// appendNode appends names and values of the hash's fields, without those that heartbeat.lua sets itself (incarnation, counter, list, tasks).
func appendNode(to []any, n *registry.Node) []any {
	classes, labels := encode(n.Classes), encode(n.Labels)
	return append(to,
		"mode", n.Mode, "state", string(n.State), "classes", classes, "labels", labels,
		"capacity", number(n.Capacity), "prefetch", number(n.Prefetch), "running", number(n.Running), "queued", number(n.Queued),
		"received", number(n.Received), "finished", number(n.Finished), "partition", number(n.Partition), "protocol", number(n.Protocol),
		"address", n.Address, "version", n.Version, "cpu", strconv.FormatFloat(n.CPU, 'g', 6, 64), "memory", number(n.Memory),
		"startedAt", number(n.StartedAt), "replaces", n.Replaces, "crashed", strconv.FormatBool(n.Crashed),
		"term", number(n.Term), "turn", number(n.RoundRobinCount), "slotsRunning", number(n.SlotsRunning), "slotsQueued", number(n.SlotsQueued),
		"capacityByClass", encode(n.CapacityByClass), "runningByClass", encode(n.RunningByClass),
		"cpus", number(n.CPUs), "memoryTotal", number(n.MemoryTotal))
}

// readNode makes the command that reads the fields of a node's hash; what is missing comes as an empty text.
func readNode(ctx context.Context, id string) *goredis.StringSliceCmd {
	args := make([]any, 0, 2+len(fields))
	return goredis.NewStringSliceCmd(ctx, append(append(args, "hmget", nodeKey(id)), fieldArgs...)...)
}

// fieldArgs are fields as arguments, made once: a snapshot sends them 10,000 times.
var fieldArgs = func() []any {
	args := make([]any, len(fields))
	for i, field := range fields {
		args[i] = field
	}
	return args
}()

// decoder reads what readNode brought. It remembers the classes, labels and counts it has decoded, since most nodes of a snapshot have
// the same; it lives for one snapshot. It is for one goroutine.
type decoder struct {
	classes map[string][]string
	labels  map[string]map[string]string
	counts  map[string]map[string]int // by class

	values []string
	at     int
	size   int
	err    error
}

func newDecoder() *decoder {
	return &decoder{classes: make(map[string][]string), labels: make(map[string]map[string]string), counts: make(map[string]map[string]int)}
}

// node reports false if there is no such hash. tasks is the length of the node's task list. A field that is missing has its zero
// value, except incarnation and counter, which make it a node.
func (d *decoder) node(id string, values []string) (n registry.Node, tasks int, found bool, err error) {
	if !slices.ContainsFunc(values, func(v string) bool { return v != "" }) {
		return registry.Node{}, 0, false, nil
	}
	d.values, d.at, d.size, d.err = values, 0, 0, nil
	if len(values) != len(fields) || values[0] == "" || values[1] == "" {
		return registry.Node{}, 0, true, errors.New("incarnation or counter is missing")
	}
	n = registry.Node{
		ID: id, Incarnation: d.text(), Counter: d.integer(), Mode: d.text(), State: registry.State(d.text()),
		Classes: slices.Clone(decodeJSON(d, d.classes)), Labels: maps.Clone(decodeJSON(d, d.labels)),
		Capacity: int(d.integer()), Prefetch: int(d.integer()), Running: int(d.integer()), Queued: int(d.integer()),
		Received: d.integer(), Finished: d.integer(), Partition: int(d.integer()), Protocol: int(d.integer()),
		Address: d.text(), Version: d.text(), CPU: d.float(), Memory: d.integer(), StartedAt: d.integer(), Replaces: d.text(), Crashed: d.text() == "true",
		Term: d.integer(), RoundRobinCount: d.integer(), SlotsRunning: int(d.integer()), SlotsQueued: int(d.integer()),
		CapacityByClass: maps.Clone(decodeJSON(d, d.counts)), RunningByClass: maps.Clone(decodeJSON(d, d.counts)),
		CPUs: int(d.integer()), MemoryTotal: d.integer(),
	}
	tasks = int(d.integer())
	if d.err != nil {
		return registry.Node{}, 0, true, d.err
	}
	return n, tasks, true, nil
}

// fail keeps the first error, of the value that was taken last.
func (d *decoder) fail(why string) {
	if d.err == nil {
		d.err = fmt.Errorf("field %s %s", fields[d.at-1], why)
	}
}

// text takes the next value.
func (d *decoder) text() string {
	s := d.values[d.at]
	d.at++
	if d.size += len(s); d.size > maxReadBytes {
		d.fail(fmt.Sprintf("ends more than %d bytes", maxReadBytes))
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

// decodeJSON takes the next value, which is JSON. The caller copies what it gets.
func decodeJSON[T any](d *decoder, known map[string]T) T {
	var v T
	s := d.text()
	if s == "" {
		return v
	}
	if v, ok := known[s]; ok {
		return v
	}
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		d.fail(fmt.Sprintf("holds %.40q: %v", s, err))
		return v
	}
	known[s] = v
	return v
}

// held is the value of a task in the list; its field is the task's id.
type held struct {
	Attempt int64     `json:"attempt"`
	ClaimID string    `json:"claimId"`
	State   task.Kind `json:"state"`
}

func appendTasks(to []any, tasks []registry.HeldTask) []any {
	for _, t := range tasks {
		to = append(to, t.ID, encode(held{t.Attempt, t.ClaimID, t.State}))
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
