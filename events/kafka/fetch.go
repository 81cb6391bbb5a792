package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/fetch"
)

// fetched is what one fetch request brought.
type fetched struct {
	records []Record // at or after the offset asked for
	next    int64    // the offset after all that was brought, marks of transactions included
	end     int64    // the partition's end, as far as it may be read
}

// fetch asks a partition's leader once for records from the offset on. The broker answers as soon as there is one, or
// after wait. It sends at least one batch whatever its size, and otherwise no more than maxBytes.
func (c *Client) fetch(ctx context.Context, topic string, partition int, offset int64, maxBytes int32, wait time.Duration) (fetched, error) {
	addr, err := c.leader(ctx, topic, partition)
	if err != nil {
		return fetched{}, err
	}
	response, _, err := c.call(ctx, addr, &fetch.Request{
		ReplicaID:    -1,
		MaxWaitTime:  int32(wait.Milliseconds()),
		MinBytes:     1,
		MaxBytes:     maxBytes,
		SessionEpoch: -1, // no session: each request is complete
		Topics: []fetch.RequestTopic{{
			Topic: topic,
			Partitions: []fetch.RequestPartition{{
				Partition:          int32(partition),
				CurrentLeaderEpoch: -1,
				FetchOffset:        offset,
				LogStartOffset:     -1,
				PartitionMaxBytes:  maxBytes,
			}},
		}},
	})
	if err != nil {
		return fetched{}, err
	}
	return decodeFetch(response.(*fetch.Response), partition, offset)
}

func decodeFetch(response *fetch.Response, partition int, offset int64) (fetched, error) {
	if response.ErrorCode != 0 {
		return fetched{}, kafkago.Error(response.ErrorCode)
	}
	if len(response.Topics) != 1 || len(response.Topics[0].Partitions) != 1 {
		return fetched{}, errors.New("the broker answered for other partitions than the one asked")
	}
	p := response.Topics[0].Partitions[0]
	if p.ErrorCode != 0 {
		return fetched{}, kafkago.Error(p.ErrorCode)
	}
	f := fetched{next: offset, end: p.HighWatermark}
	stream, ok := p.RecordSet.Records.(*protocol.RecordStream)
	if !ok {
		return f, nil // nothing there
	}
	for _, batch := range stream.Records {
		if err := f.add(batch, partition, offset); err != nil {
			return fetched{}, err
		}
	}
	return f, nil
}

// add takes the records of one batch. A batch may begin before the offset that was asked for.
func (f *fetched) add(batch protocol.RecordReader, partition int, offset int64) error {
	_, control := batch.(*protocol.ControlBatch)
	for {
		raw, err := batch.ReadRecord()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("decode the record after offset %d: %w", f.next-1, err)
		}
		r, err := copyRecord(raw, partition)
		if err != nil {
			return fmt.Errorf("decode the record at offset %d: %w", raw.Offset, err)
		}
		if r.Offset < offset {
			continue
		}
		f.next = r.Offset + 1
		if !control {
			f.records = append(f.records, r)
		}
	}
}

// copyRecord takes a record out of the library's shared pages.
func copyRecord(raw *protocol.Record, partition int) (Record, error) {
	r := Record{Partition: partition, Offset: raw.Offset, Time: raw.Time}
	for _, part := range []struct {
		from protocol.Bytes
		to   *[]byte
	}{{raw.Key, &r.Key}, {raw.Value, &r.Value}} {
		if part.from == nil {
			continue
		}
		b, err := protocol.ReadAll(part.from)
		if err == nil {
			err = part.from.Close()
		}
		if err != nil {
			return Record{}, err
		}
		*part.to = b
	}
	for _, h := range raw.Headers {
		r.Headers = append(r.Headers, Header(h))
	}
	return r, nil
}
