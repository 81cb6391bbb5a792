package kafka

import (
	"bufio"
	"bytes"
	"testing"
	"time"

	"github.com/segmentio/kafka-go/compress"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/fetch"
	"pgregory.net/rapid"
)

func recordsGen() *rapid.Generator[[]Record] {
	maybeBytes := rapid.Custom(func(t *rapid.T) []byte {
		if rapid.Bool().Draw(t, "nil") {
			return nil
		}
		return rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "bytes")
	})
	header := rapid.Custom(func(t *rapid.T) Header {
		return Header{Key: rapid.String().Draw(t, "key"), Value: maybeBytes.Draw(t, "value")}
	})
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Record {
		return Record{
			Time:    time.UnixMilli(rapid.Int64Range(1, 1<<42).Draw(t, "time")),
			Key:     maybeBytes.Draw(t, "key"),
			Value:   maybeBytes.Draw(t, "value"),
			Headers: rapid.SliceOfN(header, 0, 3).Draw(t, "headers"),
		}
	}), 1, 200)
}

func TestBatchSizeIsWhatIsSent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		records, now := recordsGen().Draw(t, "records"), time.Now()
		set := recordSet(records, now)
		set.Version = 2
		var out bytes.Buffer
		if _, err := set.WriteTo(&out); err != nil {
			t.Fatal(err)
		}
		const lengthPrefix = 4
		if got, want := batchSize(records, now), out.Len()-lengthPrefix; got != want {
			t.Errorf("size %d, sent %d", got, want)
		}
	})
}

// TestFetchReadsWhatWasWritten, in every compression that others may use.
func TestFetchReadsWhatWasWritten(t *testing.T) {
	t.Parallel()
	for _, codec := range []compress.Compression{compress.None, compress.Gzip, compress.Snappy, compress.Lz4, compress.Zstd} {
		t.Run(codec.String(), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				records := recordsGen().Draw(t, "records")
				set := recordSet(records, time.Now())
				set.Version, set.Attributes = 2, protocol.Attributes(codec)
				var wire bytes.Buffer
				if _, err := set.WriteTo(&wire); err != nil {
					t.Fatal(err)
				}
				from := rapid.Int64Range(0, int64(len(records))).Draw(t, "from")
				f, err := decodeWire(wire.Bytes(), from)
				if err != nil {
					t.Fatal(err)
				}
				want := records[from:]
				if len(f.records) != len(want) || f.next != int64(len(records)) {
					t.Fatalf("%d records and next %d, want %d and %d", len(f.records), f.next, len(want), len(records))
				}
				for i := range want {
					got := f.records[i]
					if got.Offset != from+int64(i) || got.check() != want[i].check() || len(got.Headers) != len(want[i].Headers) {
						t.Errorf("record %d reads %+v, want %+v", i, got, want[i])
					}
				}
			})
		})
	}
}

func decodeWire(wire []byte, from int64) (fetched, error) {
	var set protocol.RecordSet
	err := guard(func() error {
		_, err := set.ReadFrom(bufio.NewReader(bytes.NewReader(wire)))
		return err
	})
	if err != nil {
		return fetched{}, err
	}
	return decodeFetch(&fetch.Response{Topics: []fetch.ResponseTopic{{Partitions: []fetch.ResponsePartition{{RecordSet: set}}}}}, 0, from)
}

func TestFetchStepsOverTransactionMarks(t *testing.T) {
	t.Parallel()
	data := protocol.NewRecordReader(protocol.Record{Offset: 0, Value: protocol.NewBytes([]byte("x"))})
	mark := protocol.NewControlBatch(protocol.ControlRecord{Offset: 1})
	f, err := decodeFetch(&fetch.Response{Topics: []fetch.ResponseTopic{{Partitions: []fetch.ResponsePartition{{
		RecordSet: protocol.RecordSet{Records: &protocol.RecordStream{Records: []protocol.RecordReader{data, mark}}},
	}}}}}, 0, 0)
	if err != nil || len(f.records) != 1 || f.next != 2 {
		t.Errorf("%d records, next %d, %v; want the one record, and the mark behind", len(f.records), f.next, err)
	}
}

func TestCheckTellsRecordsApart(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_700_000_000_000)
	seen := make(map[uint64]int)
	for i, r := range []Record{
		{Time: at, Key: []byte("k"), Value: []byte("v")},
		{Time: at.Add(time.Millisecond), Key: []byte("k"), Value: []byte("v")},
		{Time: at, Key: []byte("kv"), Value: []byte("")},
		{Time: at, Key: []byte("kv"), Value: nil},
		{Time: at, Key: nil, Value: []byte("kv")},
		{Time: at, Key: []byte(""), Value: []byte("kv")},
	} {
		if j, ok := seen[r.check()]; ok || r.check() == 0 {
			t.Errorf("records %d and %d have the same check %d", i, j, r.check())
		}
		seen[r.check()] = i
	}
	same := Record{Partition: 3, Offset: 9, Time: at.Add(time.Microsecond), Key: []byte("k"), Value: []byte("v"), Headers: []Header{{Key: "h"}}}
	if _, ok := seen[same.check()]; !ok {
		t.Error("the check depends on more than time in milliseconds, key and value")
	}
	// Positions are stored, so the value must not change from version to version.
	golden := Record{Time: at, Key: []byte("k"), Value: []byte("v")}
	if got, want := golden.check(), uint64(0xd0501e14cdbd41c8); got != want {
		t.Errorf("check %#x, want %#x", got, want)
	}
}

func TestBackoffIsBounded(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]time.Duration{0: 5, 1: 5, 2: 10, 3: 20, 7: 320, 8: 500, 9: 500, 1 << 40: 500} {
		want *= time.Millisecond
		seen := make(map[time.Duration]bool)
		for range 100 {
			d := backoff(n)
			if d < want/2 || d > want {
				t.Errorf("backoff(%d) = %v, want %v to %v", n, d, want/2, want)
			}
			seen[d] = true
		}
		if len(seen) < 10 {
			t.Errorf("backoff(%d) has only %d values: no jitter", n, len(seen))
		}
	}
}

// TestNoBusyLoop: a broker that answers at once with nothing is asked less and less often.
func TestNoBusyLoop(t *testing.T) {
	t.Parallel()
	r := &Reader{}
	var last time.Duration
	for range 10 {
		if last = r.empty(fetched{}, 0); last <= 0 {
			t.Fatal("asks again without a pause")
		}
	}
	if last < maxBackoff/2 {
		t.Errorf("still asks again after %v", last)
	}
	if d := r.empty(fetched{}, fetchWait); d != 0 {
		t.Errorf("pauses %v after a broker that has waited", d)
	}
}

func TestPanicOfTheDecoderIsAnError(t *testing.T) {
	t.Parallel()
	if err := guard(func() error { panic("index out of range") }); err == nil {
		t.Error("no error")
	}
	if err := guard(func() error { return nil }); err != nil {
		t.Errorf("error %v without a panic", err)
	}
}

func FuzzDecodeFetch(f *testing.F) {
	set := recordSet([]Record{{Key: []byte("k"), Value: []byte("v")}}, time.UnixMilli(1))
	for _, version := range []int8{1, 2} {
		set.Version = version
		var wire bytes.Buffer
		if _, err := set.WriteTo(&wire); err != nil {
			f.Fatal(err)
		}
		set = recordSet([]Record{{Value: []byte("w"), Headers: []Header{{Key: "h"}}}}, time.UnixMilli(2))
		f.Add(wire.Bytes())
	}
	f.Add([]byte("0000"))
	f.Fuzz(func(t *testing.T, wire []byte) {
		got, err := decodeWire(wire, 1)
		if err != nil {
			return
		}
		for _, r := range got.records {
			if r.Offset < 1 {
				t.Errorf("record at %d, asked for 1", r.Offset)
			}
		}
	})
}
