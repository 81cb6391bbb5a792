package events

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Quarantine is the value of task.quarantine: a record that could not be decoded, where it was, and why.
type Quarantine struct {
	Version   int    `json:"version"`
	Topic     string `json:"topic"`
	Partition int    `json:"partition"`
	Offset    int64  `json:"offset"`
	Reason    string `json:"reason"`
	At        int64  `json:"at"`    // epoch ms
	Size      int    `json:"size"`  // bytes of the record's value
	Key       []byte `json:"key"`   // base64; cut to 1 KiB
	Value     []byte `json:"value"` // base64; cut to 64 KiB
}

// What a quarantined record is cut to.
const (
	quarantineKey    = 1 << 10
	quarantineValue  = 64 << 10
	quarantineReason = 1 << 10
)

// EncodeQuarantine encodes q, cutting what is too long. The key is "topic/partition/offset".
func EncodeQuarantine(q Quarantine) (Encoded, error) {
	q.Version, q.Size = Version, len(q.Value)
	q.Key, q.Value = cut(q.Key, quarantineKey), cut(q.Value, quarantineValue)
	q.Reason = Clip(q.Reason, quarantineReason)
	value, err := marshal(&q)
	if err != nil {
		return Encoded{}, fmt.Errorf("%s: %w", TopicQuarantine, err)
	}
	return Encoded{Key: fmt.Appendf(nil, "%s/%d/%d", q.Topic, q.Partition, q.Offset), Value: value}, nil
}

func cut(b []byte, n int) []byte {
	if len(b) > n {
		return b[:n]
	}
	return b
}

// Clip cuts s to at most n bytes of valid UTF-8.
func Clip(s string, n int) string {
	if len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "?")
}
