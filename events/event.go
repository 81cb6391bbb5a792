// Package events defines what travels over Kafka: one Go type for each topic, its JSON, and the names of the topics.
//
//	task.assign      controller -> node   Assign      claims, acknowledged reports, the leader's term, confirmed heartbeats
//	task.control     controller -> node   Control     cancel, pause, resume, recall or update a claim; drain; fence
//	task.status      node -> controller   Status      reports about claims; a node joined or left; heartbeats without Redis
//	task.quarantine  anybody              Quarantine  a record that could not be decoded
//
// Invariants:
//
//   - Every value carries its major version. A reader ignores unknown fields and refuses an unknown major version.
//   - Every event for a node names the incarnation that it is for, and the term of the leader that wrote it.
//   - A record's key is never null and never empty, and a value is compact UTF-8 JSON.
//   - The value of task.assign is a superset of the Python Skalds' TaskEvent.
//   - No value is longer than the limit that its encoder gets.
//
// Names that changed in 0.1 are read in both forms and written in the new one.
package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"unicode/utf8"
)

// Version is the major version that this package writes and reads.
const Version = 1

// Topics.
const (
	TopicAssign     = "task.assign"
	TopicControl    = "task.control"
	TopicStatus     = "task.status"
	TopicQuarantine = "task.quarantine"
)

// Headers of the records for nodes. With them a node skips what is for others without decoding it. A record without
// HeaderNode is for every node of the partition.
const (
	HeaderNode        = "skalds-node"
	HeaderIncarnation = "skalds-incarnation"
)

// DefaultMaxBytes is the default of EVENT_MAX_BYTES. It is below the 1 MiB that a broker accepts by default.
const DefaultMaxBytes = 900 << 10

// Errors of the decoders.
var (
	// ErrVersion means that this package does not read the event's major version.
	ErrVersion = errors.New("unknown event version")
	// ErrMalformed means that the value is not an event of the topic.
	ErrMalformed = errors.New("malformed event")
	// ErrTooLarge means that one item alone is longer than the limit.
	ErrTooLarge = errors.New("event too large")
)

// Partition returns the partition of a node in the topics for nodes and in task.status.
func Partition(nodeID string, partitions int) int {
	if partitions <= 1 {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(nodeID)) // a hash takes every byte
	return int(h.Sum32() % uint32(partitions))
}

// text is a string whose empty value is null in JSON, as the Python package writes it.
type text string

// MarshalJSON writes null for the empty text.
func (t text) MarshalJSON() ([]byte, error) {
	if t == "" {
		return []byte("null"), nil
	}
	return marshal(string(t))
}

// marshal writes compact JSON without escaping <, > and &.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	value := bytes.TrimRight(b.Bytes(), "\n")
	if !utf8.Valid(value) { // a raw message may hold bytes that the JSON package neither checks nor replaces
		value = bytes.ToValidUTF8(value, []byte("\uFFFD"))
	}
	return value, nil
}

// unmarshal decodes a value of the topic into v and checks the version.
func unmarshal(topic string, value []byte, v any, version *int) error {
	if err := json.Unmarshal(value, v); err != nil {
		// The version first: an event of a later major version need not fit the type.
		var head struct {
			Version int `json:"version"`
		}
		if json.Unmarshal(value, &head) == nil && head.Version > Version {
			return fmt.Errorf("%s: %w %d, this program reads version %d", topic, ErrVersion, head.Version, Version)
		}
		return fmt.Errorf("%s: %w: %w", topic, ErrMalformed, err)
	}
	if *version == 0 {
		return fmt.Errorf("%s: %w: it names none; this program reads version %d", topic, ErrVersion, Version)
	}
	if *version != Version {
		return fmt.Errorf("%s: %w %d, this program reads version %d", topic, ErrVersion, *version, Version)
	}
	return nil
}

// escapedLen is the most bytes that s takes inside a JSON string.
func escapedLen(s string) int {
	n := 0
	for i, r := range s {
		switch {
		case r < 0x20, r == '"', r == '\\', r == 0x7f, r == '\u2028', r == '\u2029':
			n += 6 // as in \u0001
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			n += 6 // a byte that is no UTF-8
		default:
			n += utf8.RuneLen(r)
		}
	}
	return n
}

// encodeEach encodes the items of an event one by one; id names an item's task, for errors.
func encodeEach[T any](topic string, items []T, id func(*T) string) (raw []json.RawMessage, sizes []int, err error) {
	raw, sizes = make([]json.RawMessage, len(items)), make([]int, len(items))
	for i := range items {
		if raw[i], err = marshal(&items[i]); err != nil {
			return nil, nil, fmt.Errorf("%s: task %s: %w", topic, id(&items[i]), err)
		}
		sizes[i] = len(raw[i])
	}
	return raw, sizes, nil
}

// encodeParts encodes an event as values of at most limit bytes, of which overhead bytes are not for items. It splits
// the items, which have these sizes, into runs that fit with a comma for each item. build returns the key and the value
// for each run. If there are no items, there is one empty run.
func encodeParts(topic string, sizes []int, overhead, limit int, build func(from, to int) (key string, value any)) ([]Encoded, error) {
	var out []Encoded
	emit := func(from, to int) error {
		key, part := build(from, to)
		value, err := marshal(part)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", topic, err)
		case len(value) > limit:
			return fmt.Errorf("%s: %d bytes as encoded, %d at most: %w", topic, len(value), limit, ErrTooLarge)
		}
		out = append(out, Encoded{Key: []byte(key), Value: value, From: from, To: to})
		return nil
	}
	from, used := 0, 0
	for i, n := range sizes {
		if n > limit-overhead {
			return nil, fmt.Errorf("%s: item %d has %d bytes as encoded, room for %d: %w", topic, i, n, limit-overhead, ErrTooLarge)
		}
		if used+n > limit-overhead {
			if err := emit(from, i); err != nil {
				return nil, err
			}
			from, used = i, 0
		}
		used += n + 1
	}
	if from < len(sizes) || len(sizes) == 0 {
		if err := emit(from, len(sizes)); err != nil {
			return nil, err
		}
	}
	return out, nil
}
