package ingest

import (
	"maps"
	"sync"

	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/store"
)

// Progress is how far ingest has come. It is safe for concurrent use.
type Progress struct {
	mu   sync.Mutex
	done map[int]kafka.Position
}

// Reached reports whether ingest has taken in everything before the given ends.
func (p *Progress) Reached(ends map[int]kafka.Range) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for partition, r := range ends {
		if r.First < r.End && p.done[partition].Offset < r.End {
			return false
		}
	}
	return true
}

func (p *Progress) set(partition int, at kafka.Position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done[partition] = at
}

func (p *Progress) all() map[int]store.Position {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make(map[int]store.Position, len(p.done))
	for partition, at := range p.done {
		if at.Offset >= 0 {
			out[partition] = store.Position(at)
		}
	}
	return out
}

// starts returns the position at which to start reading each partition.
func (p *Progress) starts() map[int]kafka.Position {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.done)
}
