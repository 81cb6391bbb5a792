package kafka

import (
	"context"
	"fmt"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/listoffsets"
)

// Range is what a partition holds: the offset of its first record, and the offset that its next record will get.
type Range struct {
	First int64
	End   int64
}

// offsetTries is how often Offsets asks when a leader has moved or is moving.
const offsetTries = 4

// Offsets returns the present ranges of the partitions, as their leaders know them. All of them or an error.
func (c *Client) Offsets(ctx context.Context, topic string, partitions []int) (map[int]Range, error) {
	if c.life.Err() != nil {
		return nil, ErrClosed
	}
	ctx, cancel := c.withTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	for n := 1; ; n++ {
		ranges, err := c.offsets(ctx, topic, partitions)
		if err == nil {
			return ranges, nil
		}
		for _, p := range partitions {
			c.forget(topic, p)
		}
		if n == offsetTries || c.pause(ctx, backoff(n)) != nil {
			return nil, c.whyEnded(fmt.Errorf("read the offsets of topic %q: %w", topic, err))
		}
	}
}

func (c *Client) offsets(ctx context.Context, topic string, partitions []int) (map[int]Range, error) {
	byLeader := make(map[string][]int)
	for _, p := range partitions {
		addr, err := c.leader(ctx, topic, p)
		if err != nil {
			return nil, err
		}
		byLeader[addr] = append(byLeader[addr], p)
	}
	ranges := make(map[int]Range, len(partitions))
	for addr, led := range byLeader {
		// One request may ask only once for a partition, so that both ends take two.
		first, err := c.listOffsets(ctx, addr, topic, led, kafkago.FirstOffset)
		if err != nil {
			return nil, err
		}
		end, err := c.listOffsets(ctx, addr, topic, led, kafkago.LastOffset)
		if err != nil {
			return nil, err
		}
		for _, p := range led {
			ranges[p] = Range{First: first[p], End: end[p]}
		}
	}
	return ranges, nil
}

func (c *Client) listOffsets(ctx context.Context, addr, topic string, partitions []int, which int64) (map[int]int64, error) {
	request := &listoffsets.Request{ReplicaID: -1, Topics: []listoffsets.RequestTopic{{Topic: topic}}}
	for _, p := range partitions {
		request.Topics[0].Partitions = append(request.Topics[0].Partitions, listoffsets.RequestPartition{
			Partition: int32(p), CurrentLeaderEpoch: -1, Timestamp: which,
		})
	}
	response, _, err := c.call(ctx, addr, request)
	if err != nil {
		return nil, err
	}
	found := make(map[int]int64, len(partitions))
	for _, t := range response.(*listoffsets.Response).Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				return nil, fmt.Errorf("partition %d: %w", p.Partition, kafkago.Error(p.ErrorCode))
			}
			found[int(p.Partition)] = p.Offset
		}
	}
	for _, p := range partitions {
		if _, ok := found[p]; !ok {
			return nil, fmt.Errorf("partition %d: the broker did not answer for it", p)
		}
	}
	return found, nil
}
