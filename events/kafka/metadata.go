package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/metadata"
)

type topicPartition struct {
	topic     string
	partition int
}

// cluster is one metadata response, looked up by the names that the rest of the package uses.
type cluster struct {
	brokers    map[int32]string // id -> address
	controller string           // empty while there is none
	topics     map[string]metadata.ResponseTopic
}

// metadata asks the cluster for the present state of the topics, and remembers who leads their partitions.
func (c *Client) metadata(ctx context.Context, topics ...string) (cluster, error) {
	names := append([]string{}, topics...) // nil would mean all topics
	response, err := c.callAny(ctx, &metadata.Request{TopicNames: names})
	if errors.Is(err, io.ErrUnexpectedEOF) && c.sasl == nil {
		err = fmt.Errorf("%w (a port that wants SASL hangs up like this)", err)
	}
	if err != nil {
		return cluster{}, fmt.Errorf("read the cluster's metadata: %w", err)
	}
	m := response.(*metadata.Response)

	state := cluster{
		brokers: make(map[int32]string, len(m.Brokers)),
		topics:  make(map[string]metadata.ResponseTopic, len(m.Topics)),
	}
	known := make([]string, 0, len(m.Brokers))
	for _, b := range m.Brokers {
		addr := net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
		state.brokers[b.NodeID] = addr
		known = append(known, addr)
	}
	state.controller = state.brokers[m.ControllerID]

	c.mu.Lock()
	defer c.mu.Unlock()
	c.brokers = known
	for _, t := range m.Topics {
		state.topics[t.Name] = t
		for _, p := range t.Partitions {
			tp := topicPartition{t.Name, int(p.PartitionIndex)}
			if addr, ok := state.brokers[p.LeaderID]; ok {
				c.leaders[tp] = addr
			} else {
				delete(c.leaders, tp)
			}
		}
	}
	return state, nil
}

// leader returns the address of the broker that leads a partition, from memory or from the cluster.
func (c *Client) leader(ctx context.Context, topic string, partition int) (string, error) {
	tp := topicPartition{topic, partition}
	c.mu.Lock()
	addr, ok := c.leaders[tp]
	c.mu.Unlock()
	if ok {
		return addr, nil
	}
	state, err := c.metadata(ctx, topic)
	if err != nil {
		return "", err
	}
	return state.leader(topic, partition)
}

// forget drops what is known about a partition, because a request to its leader failed.
func (c *Client) forget(topic string, partition int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.leaders, topicPartition{topic, partition})
}

func (s cluster) partitions(topic string) ([]metadata.ResponsePartition, error) {
	t, ok := s.topics[topic]
	code := kafkago.Error(t.ErrorCode)
	switch {
	case !ok || code == kafkago.UnknownTopicOrPartition:
		return nil, fmt.Errorf("topic %q: %w", topic, ErrUnknownTopic)
	case code != 0:
		return nil, fmt.Errorf("topic %q: %w", topic, code)
	}
	return t.Partitions, nil
}

func (s cluster) leader(topic string, partition int) (string, error) {
	partitions, err := s.partitions(topic)
	if err != nil {
		return "", err
	}
	for _, p := range partitions {
		if int(p.PartitionIndex) != partition {
			continue
		}
		if addr, ok := s.brokers[p.LeaderID]; ok {
			return addr, nil
		}
		return "", fmt.Errorf("topic %q partition %d: %w", topic, partition, kafkago.LeaderNotAvailable)
	}
	return "", fmt.Errorf("topic %q partition %d of %d: %w", topic, partition, len(partitions), ErrUnknownTopic)
}

// callAny sends a request that any broker can answer, and that may be sent again, to one after the other until one
// does. The time left is divided among them, so that one that swallows packets does not take all of it.
func (c *Client) callAny(ctx context.Context, request protocol.Message) (protocol.Message, error) {
	var failures []error
	addrs := c.candidates()
	for i, addr := range addrs {
		response, err := c.callWithin(ctx, addr, len(addrs)-i, request)
		if err == nil {
			c.mu.Lock()
			c.preferred = addr
			c.mu.Unlock()
			return response, nil
		}
		failures = append(failures, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(failures...)
}

func (c *Client) callWithin(ctx context.Context, addr string, share int, request protocol.Message) (protocol.Message, error) {
	if deadline, ok := ctx.Deadline(); ok && share > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(share))
		defer cancel()
	}
	response, _, err := c.call(ctx, addr, request)
	return response, err
}

// candidates returns the brokers to ask: the one that answered last, the configured ones and those learned since.
func (c *Client) candidates() []string {
	configured := slices.Clone(c.cfg.Brokers)
	c.mu.Lock()
	learned := slices.Clone(c.brokers)
	preferred := c.preferred
	c.mu.Unlock()

	for _, s := range [][]string{configured, learned} {
		rand.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
	}
	var addrs []string
	if preferred != "" {
		addrs = append(addrs, preferred)
	}
	for _, addr := range append(configured, learned...) {
		if !slices.Contains(addrs, addr) {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}
