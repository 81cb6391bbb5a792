package redis

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
	goredis "github.com/redis/go-redis/v9"

	"github.com/skalds-go/skalds/pkg/registry"
)

// encode returns the JSON of values of texts and integers, which always have one.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return b
}

// field is one field of [registry.Node] in the node's hash. It has the same name there as in JSON.
type field struct {
	index int
	name  string
	old   string // the name by which older nodes write it, or ""
}

// fields are the fields of the hash, without those that the script adds. The node's id is in the key, its task list in
// a key of its own.
var fields = func() (list []field) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[registry.Node]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "id" && name != "tasks" {
			list = append(list, field{f.Index[0], name, f.Tag.Get("was")})
		}
	}
	return list
}()

// columns are the names to read, in the order of decoder.node: an old name follows the present one, and the length of
// the task list is last. They are made once, since a snapshot sends them 10,000 times.
var columns = func() (list []any) {
	for _, f := range fields {
		if list = append(list, f.name); f.old != "" {
			list = append(list, f.old)
		}
	}
	return append(list, "tasks")
}()

// maxReadBytes bounds what is read from a hash. It is larger than the limit for writing: JSON escapes make texts up to
// six times longer, the classes may be there again with what each runs, and a later version may write more.
const maxReadBytes = 16 * registry.MaxNodeBytes

// appendNode appends names and values of the hash's fields, without those that heartbeat.lua sets itself (list, tasks).
func appendNode(to []any, n *registry.Node) []any {
	values := reflect.ValueOf(n).Elem()
	for _, f := range fields {
		to = append(to, f.name, encodeField(values.Field(f.index).Interface()))
	}
	return to
}

func encodeField(value any) any {
	switch v := value.(type) {
	case []string, map[string]string, map[string]int:
		return encode(v)
	case float64:
		return strconv.FormatFloat(v, 'g', 6, 64)
	default:
		return fmt.Sprint(v)
	}
}

// readNode returns the command that reads the fields of a node's hash. A missing field reads as an empty text.
func readNode(ctx context.Context, id string) *goredis.StringSliceCmd {
	args := make([]any, 0, 2+len(columns))
	return goredis.NewStringSliceCmd(ctx, append(append(args, "hmget", nodeKey(id)), columns...)...)
}

// decoder decodes the answers to readNode of one snapshot. It remembers the classes, labels and counts that it has
// decoded, since most nodes have the same ones. It is not safe for concurrent use.
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
	return &decoder{
		classes: make(map[string][]string), labels: make(map[string]map[string]string), counts: make(map[string]map[string]int),
	}
}

// node decodes a node into n and returns the length of its task list. It reports false if there is no such hash.
// Missing fields have their zero value, but incarnation and counter are required. After an error the content of n is
// undefined.
func (d *decoder) node(n *registry.Node, id string, values []string) (tasks int, found bool, err error) {
	*n = registry.Node{ID: id}
	if !slices.ContainsFunc(values, func(v string) bool { return v != "" }) {
		return 0, false, nil
	}
	d.values, d.at, d.size, d.err = values, 0, 0, nil
	if len(values) != len(columns) || values[0] == "" || values[1] == "" {
		return 0, true, errors.New("incarnation or counter is missing")
	}
	target := reflect.ValueOf(n).Elem()
	for _, f := range fields {
		if f.old != "" {
			values[d.at+1] = cmp.Or(values[d.at], values[d.at+1])
			d.at++
		}
		d.field(target.Field(f.index).Addr().Interface())
	}
	tasks = int(d.integer())
	return tasks, true, d.err
}

// field decodes the next value into a field of the node.
func (d *decoder) field(to any) {
	switch to := to.(type) {
	case *string:
		*to = d.text()
	case *registry.State:
		*to = registry.State(d.text())
	case *int:
		*to = int(d.integer())
	case *int64:
		*to = d.integer()
	case *float64:
		*to = d.float()
	case *bool:
		*to = d.text() == "true"
	case *[]string:
		*to = slices.Clone(decodeJSON(d, d.classes))
	case *map[string]string:
		*to = maps.Clone(decodeJSON(d, d.labels))
	case *map[string]int:
		*to = maps.Clone(decodeJSON(d, d.counts))
	default:
		panic(fmt.Sprintf("a heartbeat has a field of type %T, which the codec for Redis does not know", to))
	}
}

// fail records an error of the value that was read last, unless there was one before.
func (d *decoder) fail(why string) {
	if d.err == nil {
		d.err = fmt.Errorf("field %s %s", columns[d.at-1], why)
	}
}

// text returns the next value.
func (d *decoder) text() string {
	s := d.values[d.at]
	d.at++
	if d.size += len(s); d.size > maxReadBytes {
		d.fail(fmt.Sprintf("is beyond the first %d bytes of the hash, which are the most that are read", maxReadBytes))
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

// float decodes NaN and infinities as 0, so that they never reach JSON.
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

// decodeJSON decodes the next value, which is JSON. The caller must copy the result, which is shared.
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

// appendTasks appends the fields of the list's hash: each task's id and, as its value, the rest.
func appendTasks(to []any, tasks []registry.HeldTask) []any {
	for _, t := range tasks {
		id := t.ID
		t.ID = ""
		to = append(to, id, encode(t))
	}
	return to
}

func decodeTasks(list map[string]string) ([]registry.HeldTask, error) {
	tasks := make([]registry.HeldTask, 0, len(list))
	for id, value := range list {
		var t registry.HeldTask
		if err := json.Unmarshal([]byte(value), &t); err != nil {
			return nil, fmt.Errorf("task %.40q holds %.80q: %w", id, value, err)
		}
		t.ID = id
		tasks = append(tasks, t)
	}
	return registry.Newest(tasks), nil
}

// listDigest returns a digest of a list that does not depend on its order.
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
