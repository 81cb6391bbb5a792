package kafka

import (
	"encoding/binary"
	"math/bits"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/segmentio/kafka-go/protocol"
)

// Record is one message of a partition.
type Record struct {
	// Partition and Offset are the place of a record that was read. Publish ignores them.
	Partition int
	Offset    int64

	// Time has the precision of a millisecond. Publish uses the present time for the zero time.
	Time time.Time

	// Key and Value may be nil, which is not the same as empty.
	Key     []byte
	Value   []byte
	Headers []Header
}

// Header is one key and value beside a record. Keys may repeat.
type Header struct {
	Key   string
	Value []byte
}

// batchOverhead is the size of what a record batch has before its records.
const batchOverhead = 61

// batchSize returns how many bytes the records take as one encoded batch, which is what brokers limit.
func batchSize(records []Record, now time.Time) int {
	size := batchOverhead
	base := millis(records[0].Time, now)
	for i := range records {
		r := &records[i]
		n := 1 + varintSize(millis(r.Time, now)-base) + varintSize(int64(i)) +
			bytesSize(r.Key) + bytesSize(r.Value) + varintSize(int64(len(r.Headers)))
		for _, h := range r.Headers {
			n += varintSize(int64(len(h.Key))) + len(h.Key) + bytesSize(h.Value)
		}
		size += varintSize(int64(n)) + n
	}
	return size
}

func bytesSize(b []byte) int {
	if b == nil {
		return varintSize(-1)
	}
	return varintSize(int64(len(b))) + len(b)
}

// varintSize returns the length of a zigzag varint.
func varintSize(n int64) int {
	zigzag := uint64(n<<1) ^ uint64(n>>63)
	return (bits.Len64(zigzag|1) + 6) / 7
}

func millis(t, now time.Time) int64 {
	if t.IsZero() {
		t = now
	}
	return t.UnixMilli()
}

// recordSet returns the library's form of the records.
func recordSet(records []Record, now time.Time) protocol.RecordSet {
	out := make([]protocol.Record, len(records))
	for i := range records {
		r := &records[i]
		out[i] = protocol.Record{
			Time:  time.UnixMilli(millis(r.Time, now)),
			Key:   protocol.NewBytes(r.Key),
			Value: protocol.NewBytes(r.Value),
		}
		for _, h := range r.Headers {
			out[i].Headers = append(out[i].Headers, protocol.Header(h))
		}
	}
	return protocol.RecordSet{Records: protocol.NewRecordReader(out...)}
}

// check returns a hash of a record's content and time, which tells it from a record of another log at the same offset.
// It is never 0, which stands for "unknown".
func (r *Record) check() uint64 {
	h := xxhash.New()
	var n [8]byte
	number := func(v int64) {
		binary.BigEndian.PutUint64(n[:], uint64(v))
		_, _ = h.Write(n[:])
	}
	number(r.Time.UnixMilli())
	for _, b := range [][]byte{r.Key, r.Value} {
		if b == nil {
			number(-1)
			continue
		}
		number(int64(len(b)))
		_, _ = h.Write(b)
	}
	return max(h.Sum64(), 1)
}
