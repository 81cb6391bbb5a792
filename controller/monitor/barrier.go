package monitor

import (
	"context"
	"fmt"
	"time"

	"github.com/skalds-go/skalds/events/kafka"
)

// barrier is how far ingest must have come.
type barrier struct {
	ends   map[int]kafka.Range
	readAt time.Duration // when the ends were last read
}

// reread is how long a barrier stands before the ends are read again: ingest never reaches the end of a log that has
// lost its tail.
const reread = time.Second

// barrier returns a barrier at the present ends of task.status.
func (m *Monitor) barrier(ctx context.Context) (*barrier, error) {
	ends, err := m.ends.StatusEnds(ctx)
	if err != nil {
		return nil, err
	}
	return &barrier{ends, m.clock.Boot()}, nil
}

// reached reports whether ingest has come to a barrier. One that stands for long moves back to the present ends where
// those are lower.
func (m *Monitor) reached(ctx context.Context, b *barrier) (bool, error) {
	if m.progress.Reached(b.ends) {
		return true, nil
	}
	if m.clock.Boot()-b.readAt < reread {
		return false, nil
	}
	ends, err := m.ends.StatusEnds(ctx)
	if err != nil {
		return false, fmt.Errorf("learn whether %d partitions still end where they did: %w", len(b.ends), err)
	}
	b.readAt = m.clock.Boot()
	for p, r := range b.ends {
		r.End = min(r.End, ends[p].End)
		b.ends[p] = r
	}
	return m.progress.Reached(b.ends), nil
}
