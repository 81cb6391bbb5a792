package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/produce"
)

// acksAll asks the broker to answer only when all in-sync replicas have the records.
const acksAll = -1

// Publish writes the records to one partition as one batch, in order, all or none of them, and returns when all
// in-sync replicas have them. It makes one try, without waiting for more records, and takes no longer than the
// context's deadline, or Config.Timeout when there is none.
//
// After an error that is ErrNotSent the records are not in the log and never will be; the cause may be a broker that
// cannot be reached, a topic that does not exist, a refusal, or a batch over the limit (also ErrTooLarge). After any
// other error, the records may or may not have been written, or may be written in a moment.
//
// It does not keep the records. Calls that run at the same time are written in any order.
func (c *Client) Publish(ctx context.Context, topic string, partition int, records []Record) error {
	if len(records) == 0 {
		return nil
	}
	sent, err := c.publish(ctx, topic, partition, records)
	switch {
	case err == nil:
		return nil
	case sent:
		return fmt.Errorf("publish to topic %q partition %d: outcome unknown: %w", topic, partition, err)
	default:
		return fmt.Errorf("publish to topic %q partition %d: %w: %w", topic, partition, ErrNotSent, err)
	}
}

// publish reports, with its error, whether the records may have been written.
func (c *Client) publish(ctx context.Context, topic string, partition int, records []Record) (maybeWritten bool, err error) {
	if c.life.Err() != nil {
		return false, ErrClosed
	}
	now := time.Now()
	if size := batchSize(records, now); size > c.cfg.MaxMessageBytes {
		return false, fmt.Errorf("%w: %d records take %d bytes, the limit is %d", ErrTooLarge, len(records), size, c.cfg.MaxMessageBytes)
	}
	ctx, cancel := c.withTimeout(ctx, c.cfg.Timeout)
	defer cancel()

	addr, err := c.leader(ctx, topic, partition)
	if err != nil {
		return false, err
	}
	response, sent, err := c.call(ctx, addr, &produce.Request{
		Acks:    acksAll,
		Timeout: ackTimeout(ctx),
		Topics: []produce.RequestTopic{{
			Topic: topic,
			Partitions: []produce.RequestPartition{{
				Partition: int32(partition),
				RecordSet: recordSet(records, now),
			}},
		}},
	})
	if err == nil {
		sent, err = produceOutcome(response.(*produce.Response))
	}
	if err != nil {
		c.forget(topic, partition)
	}
	return sent, err
}

// ackTimeout is how many milliseconds the broker may wait for its followers: a little less than the caller waits, so
// that its answer arrives in time.
func ackTimeout(ctx context.Context) int32 {
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline) * 9 / 10
	return int32(max(1, min(left.Milliseconds(), time.Hour.Milliseconds())))
}

func produceOutcome(response *produce.Response) (maybeWritten bool, err error) {
	if len(response.Topics) != 1 || len(response.Topics[0].Partitions) != 1 {
		return true, errors.New("the broker answered for other partitions than the one asked")
	}
	p := response.Topics[0].Partitions[0]
	code := kafkago.Error(p.ErrorCode)
	if code == 0 {
		return true, nil
	}
	err = code
	if p.ErrorMessage != "" {
		err = fmt.Errorf("%w: %s", code, p.ErrorMessage)
	}
	if tooLarge(code) {
		err = fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	return !certainlyNotWritten(code), err
}
