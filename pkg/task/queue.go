package task

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// MaxQueueBytes is the length of the longest queue name.
const MaxQueueBytes = 200

// Queue returns the name of the queue in which the task waits. Tasks of one queue have the same priority and ask for
// the same: namespace, class, slots, pool, concurrency key, anti-affinity key and labels. So what keeps one of them
// waiting keeps all of them waiting, except for the nodes that a task has crashed. The head of a queue is its first
// task by (createDateTime, id). A task's queue never changes.
//
// The name starts with priority, namespace and class, for people. A name longer than MaxQueueBytes ends in a hash.
func (t *Task) Queue() string {
	var b strings.Builder
	b.Grow(len(t.ClassName) + 8)
	b.WriteString(strconv.Itoa(t.Priority))
	b.WriteByte('|')
	escape(&b, t.Namespace)
	b.WriteByte('|')
	escape(&b, t.ClassName)
	part := func(name byte, value string) {
		if value != "" {
			b.WriteByte('|')
			b.WriteByte(name)
			escape(&b, value)
		}
	}
	if t.Width() > 1 {
		part('s', strconv.Itoa(t.Slots))
	}
	part('p', t.Pool)
	if t.ConcurrencyKey != "" {
		part('k', t.ConcurrencyKey)
		part('l', strconv.Itoa(t.KeyLimit()))
	}
	part('a', t.AntiAffinityKey)
	if t.Selector != "" || len(t.Labels) > 0 {
		if s, err := t.NodeSelector(); err == nil {
			part('n', s.String())
		} else {
			part('x', t.ID) // it can never run, and is to hide nothing
		}
	}
	if b.Len() <= MaxQueueBytes {
		return b.String()
	}
	name := b.String()
	sum := sha256.Sum256([]byte(name))
	const hash = 32
	return strings.ToValidUTF8(name[:MaxQueueBytes-hash-1], "") + "~" + hex.EncodeToString(sum[:hash/2])
}

// escape writes a value so that different parts never make the same name.
func escape(b *strings.Builder, value string) {
	for i := range len(value) {
		switch c := value[i]; c {
		case '|', '%', '~':
			b.WriteByte('%')
			b.WriteString(hex.EncodeToString([]byte{c}))
		default:
			b.WriteByte(c)
		}
	}
}
