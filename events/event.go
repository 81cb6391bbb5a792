// Package events is what travels over Kafka: one Go type for each topic, its JSON, and the names of the topics.
//
//	task.assign      controller -> node   Assign      claims for one node, settled claims, the leader's term, confirmed heartbeats
//	task.control     controller -> node   Control     wishes for claims: cancel, pause, resume, update; drain; the fence
//	task.status      node -> controller   Status      what became of claims; a node that joined or left; heartbeats, if need be
//	task.quarantine  anybody              Quarantine  a record that did not decode
//
// Invariants:
//
//   - Every value carries its major version. A reader ignores fields it does not know and refuses a major version it does not know.
//   - Every event for a node names the incarnation it is meant for, and the term of the leader that wrote it.
//   - A record's key is never null and never empty, and a value is compact UTF-8 JSON.
//   - The value of task.assign is a superset of the Python Skalds' TaskEvent.
//   - No value is longer than the limit its encoder was given.
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

// Headers of the records for nodes, so that a node passes over what is meant for others without decoding it. A record without
// HeaderNode is for every node of the partition.
const (
	HeaderNode        = "skalds-node"
	HeaderIncarnation = "skalds-incarnation"
)

// DefaultMaxBytes is the default of EVENT_MAX_BYTES: below the 1 MiB that a broker takes by default.
const DefaultMaxBytes = 900 << 10

// Errors of the decoders.
var (
	// ErrVersion says that the event's major version is not one that this package reads.
	ErrVersion = errors.New("unknown event version")
	// ErrMalformed says that the value is no event of the topic.
	ErrMalformed = errors.New("malformed event")
	// ErrTooLarge says that one item alone is longer than the limit.
	ErrTooLarge = errors.New("event too large")
)

// Partition is the partition of the node topics and of task.status that belongs to a node.
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

// unmarshal reads a value of the topic into v and checks the version that it finds there.
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

// fits says that a value of n bytes that no split can make shorter is over the limit.
func fits(topic string, n, limit int) error {
	if n > limit {
		return fmt.Errorf("%s: %d bytes as encoded, %d at most: %w", topic, n, limit, ErrTooLarge)
	}
	return nil
}

// split cuts items of these sizes into runs that, with a comma for each item, fit into room, and calls emit with the bounds of each
// run: once with an empty run if there are no items.
func split(sizes []int, room int, emit func(from, to int) error) error {
	from, used := 0, 0
	for i, n := range sizes {
		if n > room {
			return fmt.Errorf("item %d has %d bytes as encoded, room for %d: %w", i, n, room, ErrTooLarge)
		}
		if used+n > room {
			if err := emit(from, i); err != nil {
				return err
			}
			from, used = i, 0
		}
		used += n + 1
	}
	if from < len(sizes) || len(sizes) == 0 {
		return emit(from, len(sizes))
	}
	return nil
}
