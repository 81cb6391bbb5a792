package ingest

import (
	"sync"

	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/loop"
)

// The bounds of one round. Its last read may exceed them.
const (
	maxRecords = 4000
	maxBytes   = 16 << 20
)

// read is the result of one read of a partition.
type read struct {
	partition int
	records   []kafka.Record
	after     kafka.Position
	taken     loop.Wake // fires when a round takes the read
}

// batch is what one round takes in: the records of some reads, and the positions after them.
type batch struct {
	records []kafka.Record
	after   map[int]kafka.Position
}

func (b *batch) empty() bool { return b.after == nil }

// inbox holds the reads that no round has taken yet: at most one of each partition, since a reader waits until its read
// is taken.
type inbox struct {
	filled loop.Wake

	mu    sync.Mutex
	reads []read
}

func newInbox() *inbox { return &inbox{filled: loop.NewWake()} }

func (i *inbox) put(r read) {
	i.mu.Lock()
	i.reads = append(i.reads, r)
	i.mu.Unlock()
	i.filled.Signal()
}

// nextBatch removes and returns as many reads as one round may take in, the oldest first. The batch is empty if there
// are none.
func (i *inbox) nextBatch() batch {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.reads) == 0 {
		return batch{}
	}
	b := batch{records: i.reads[0].records, after: make(map[int]kafka.Position, len(i.reads))}
	n, bytes := 0, 0
	for ; n < len(i.reads) && (n == 0 || len(b.records) < maxRecords && bytes < maxBytes); n++ {
		r := &i.reads[n]
		if n > 0 {
			b.records = append(b.records, r.records...)
		}
		bytes += sizeOf(r.records)
		b.after[r.partition] = r.after
		r.taken.Signal()
	}
	i.reads = append(i.reads[:0:0], i.reads[n:]...)
	if len(i.reads) > 0 {
		i.filled.Signal()
	}
	return b
}

func sizeOf(records []kafka.Record) int {
	n := 0
	for i := range records {
		n += len(records[i].Value)
	}
	return n
}
