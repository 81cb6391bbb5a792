package monitor

import (
	"context"
	"fmt"
	"time"

	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/clock"
)

// barriers makes barriers and compares ingest with them.
type barriers struct {
	ends     Ends
	progress Progress
	clock    clock.Clock
}

// barrier is how far ingest must have come.
type barrier struct {
	ends   map[int]kafka.Range
	readAt time.Duration // when the ends were last read
}

// reread is how long a barrier stands before the ends are read again: ingest never reaches the end of a log that has
// lost its tail.
const reread = time.Second

// next returns a barrier at the present ends of task.status.
func (b *barriers) next(ctx context.Context) (*barrier, error) {
	ends, err := b.ends.StatusEnds(ctx)
	if err != nil {
		return nil, err
	}
	return &barrier{ends, b.clock.Boot()}, nil
}

// reached reports whether ingest has come to a barrier. One that stands for long moves back to the present ends if
// those are lower.
func (b *barriers) reached(ctx context.Context, at *barrier) (bool, error) {
	if b.progress.Reached(at.ends) {
		return true, nil
	}
	if b.clock.Boot()-at.readAt < reread {
		return false, nil
	}
	ends, err := b.ends.StatusEnds(ctx)
	if err != nil {
		return false, fmt.Errorf("learn whether %d partitions still end where they did: %w", len(at.ends), err)
	}
	at.readAt = b.clock.Boot()
	for p, r := range at.ends {
		r.End = min(r.End, ends[p].End)
		at.ends[p] = r
	}
	return b.progress.Reached(at.ends), nil
}
