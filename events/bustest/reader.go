package bustest

import (
	"context"
	"fmt"
	"sync"

	"github.com/skalds-go/skalds/events/kafka"
)

// maxNext bounds what one Next returns.
const maxNext = 500

// Reader reads one partition in order. Next must not be called twice at the same time.
type Reader struct {
	bus       *Bus
	topic     string
	partition int

	mu   sync.Mutex
	from kafka.Position
}

// Reader returns a reader that begins at from. The topic need not exist yet.
func (b *Bus) Reader(topic string, partition int, from kafka.Position) *Reader {
	return &Reader{bus: b, topic: topic, partition: partition, from: from}
}

// Position returns the place after the last record that Next returned.
func (r *Reader) Position() kafka.Position {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.from
}

// Next returns the records that follow, at least one. It waits for them, and for the topic, until ctx ends. If its
// place is beyond the end, as after the topic was replaced, it continues at the earliest record.
func (r *Reader) Next(ctx context.Context) ([]kafka.Record, error) {
	for {
		records, wait := r.look()
		if len(records) > 0 {
			return records, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("read topic %q: %w", r.topic, ctx.Err())
		case <-wait:
		}
	}
}

// TryNext returns the records that follow, none if there are none.
func (r *Reader) TryNext() []kafka.Record {
	records, _ := r.look()
	return records
}

func (r *Reader) look() ([]kafka.Record, <-chan struct{}) {
	r.bus.mu.Lock()
	defer r.bus.mu.Unlock()
	p, err := r.bus.partition(r.topic, r.partition)
	if err != nil {
		return nil, r.bus.appended
	}
	end := int64(len(p.records))
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.from == kafka.Latest():
		r.from.Offset = end
	case r.from == kafka.Earliest(), r.from.Offset > end:
		r.from.Offset = 0
	}
	from := r.from.Offset
	r.from.Offset = min(end, from+maxNext)
	return append([]kafka.Record(nil), p.records[from:r.from.Offset]...), r.bus.appended
}
