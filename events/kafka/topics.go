package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/createtopics"
	"github.com/segmentio/kafka-go/protocol/metadata"
)

// ensureTimeout bounds an Ensure whose context has no deadline. A cluster takes its time to create many partitions.
const ensureTimeout = 30 * time.Second

// TopicSpec describes a topic.
type TopicSpec struct {
	Name       string
	Partitions int

	// Replication is the number of copies of each partition. It is used only when the topic is created.
	Replication int

	// Config holds the topic's settings, such as retention.ms. It is used only when the topic is created.
	Config map[string]string
}

// Ensure creates the topics that are missing and returns when the leader of each of their partitions serves it. It
// leaves a topic that exists as it is; one with fewer partitions than asked for is an error that says so, and more are
// fine. All that is wrong comes in one error.
func (c *Client) Ensure(ctx context.Context, topics []TopicSpec) error {
	if len(topics) == 0 {
		return nil
	}
	if err := checkSpecs(topics); err != nil {
		return err
	}
	if c.life.Err() != nil {
		return ErrClosed
	}
	ctx, cancel := c.withTimeout(ctx, ensureTimeout)
	defer cancel()

	names := make([]string, len(topics))
	for i, t := range topics {
		names[i] = t.Name
	}
	var last error
	for n := 1; ; n++ {
		state, err := c.metadata(ctx, names...)
		if err != nil {
			return fmt.Errorf("create topics: %w", err)
		}
		pending, err := c.ensureOnce(ctx, state, topics)
		if err != nil {
			return fmt.Errorf("create topics: %w", err)
		}
		if pending == nil {
			pending = c.serving(ctx, topics)
		}
		if pending == nil {
			return nil
		}
		last = pending
		if err := c.pause(ctx, backoff(n)); err != nil {
			return fmt.Errorf("create topics: %w: %w", err, last)
		}
	}
}

func checkSpecs(topics []TopicSpec) error {
	var problems []error
	seen := make(map[string]bool, len(topics))
	for _, t := range topics {
		switch {
		case t.Name == "":
			problems = append(problems, errors.New("a topic has no name"))
		case seen[t.Name]:
			problems = append(problems, fmt.Errorf("topic %q is asked for twice", t.Name))
		case t.Partitions < 1 || t.Replication < 1:
			problems = append(problems, fmt.Errorf("topic %q: %d partitions and replication factor %d; both must be at least 1",
				t.Name, t.Partitions, t.Replication))
		}
		seen[t.Name] = true
	}
	if len(problems) > 0 {
		return fmt.Errorf("create topics: %w", errors.Join(problems...))
	}
	return nil
}

// ensureOnce compares the topics with the cluster's state and creates what is missing. pending is what the cluster
// still has to do, err what it will never do.
func (c *Client) ensureOnce(ctx context.Context, state cluster, topics []TopicSpec) (pending, err error) {
	var missing []TopicSpec
	var problems []error
	for _, t := range topics {
		partitions, err := state.partitions(t.Name)
		switch {
		case errors.Is(err, ErrUnknownTopic):
			missing = append(missing, t)
		case errors.Is(err, kafkago.LeaderNotAvailable):
			pending = err
		case err != nil:
			problems = append(problems, err)
		case len(partitions) < t.Partitions:
			problems = append(problems, tooFewPartitions(t, len(partitions)))
		default:
			pending = cmp.Or(pending, state.withoutLeader(t.Name, partitions))
		}
	}
	for _, t := range missing {
		if t.Replication > len(state.brokers) {
			problems = append(problems, tooFewBrokers(t, len(state.brokers)))
		}
	}
	if len(problems) > 0 || len(missing) == 0 {
		return pending, errors.Join(problems...)
	}
	return c.create(ctx, state, missing)
}

func tooFewPartitions(t TopicSpec, has int) error {
	return fmt.Errorf("topic %q has %d partitions, %d are wanted: raise it (kafka-topics.sh --alter --topic %s --partitions %d), "+
		"or ask for at most %d", t.Name, has, t.Partitions, t.Name, t.Partitions, has)
}

func tooFewBrokers(t TopicSpec, brokers int) error {
	return fmt.Errorf("topic %q: replication factor %d needs as many brokers, the cluster has %d: ask for at most %d, or start more brokers",
		t.Name, t.Replication, brokers, brokers)
}

// serving asks the leaders themselves: one that the metadata names may not know of it yet, and would refuse the first
// record with an error that leaves its outcome unknown.
func (c *Client) serving(ctx context.Context, topics []TopicSpec) error {
	for _, t := range topics {
		partitions := make([]int, t.Partitions)
		for i := range partitions {
			partitions[i] = i
		}
		if _, err := c.offsets(ctx, t.Name, partitions); err != nil {
			return fmt.Errorf("topic %q: %w", t.Name, err)
		}
	}
	return nil
}

func (s cluster) withoutLeader(topic string, partitions []metadata.ResponsePartition) error {
	for _, p := range partitions {
		if _, ok := s.brokers[p.LeaderID]; !ok {
			return fmt.Errorf("topic %q partition %d: %w", topic, p.PartitionIndex, kafkago.LeaderNotAvailable)
		}
	}
	return nil
}

func (c *Client) create(ctx context.Context, state cluster, topics []TopicSpec) (pending, err error) {
	if state.controller == "" {
		return errors.New("the cluster has no controller at the moment"), nil
	}
	request := &createtopics.Request{TimeoutMs: ackTimeout(ctx)}
	for _, t := range topics {
		topic := createtopics.RequestTopic{Name: t.Name, NumPartitions: int32(t.Partitions), ReplicationFactor: int16(t.Replication)}
		for _, key := range slices.Sorted(maps.Keys(t.Config)) {
			topic.Configs = append(topic.Configs, createtopics.RequestConfig{Name: key, Value: t.Config[key]})
		}
		request.Topics = append(request.Topics, topic)
	}
	response, _, err := c.call(ctx, state.controller, request)
	if err != nil {
		if c.life.Err() != nil || ctx.Err() != nil {
			return nil, err
		}
		return err, nil // whatever became of it, the next look will tell
	}

	pending = errors.New("the new topics are not visible yet")
	var problems []error
	for _, t := range response.(*createtopics.Response).Topics {
		switch code := kafkago.Error(t.ErrorCode); code {
		case 0, kafkago.TopicAlreadyExists:
		case kafkago.NotController, kafkago.RequestTimedOut, kafkago.LeaderNotAvailable, kafkago.NetworkException, kafkago.ThrottlingQuotaExceeded:
			pending = fmt.Errorf("topic %q: %w", t.Name, code)
		default:
			problems = append(problems, fmt.Errorf("topic %q: %w: %s", t.Name, code, t.ErrorMessage))
		}
	}
	return pending, errors.Join(problems...)
}

// Partitions returns how many partitions a topic has at this moment, or ErrUnknownTopic.
func (c *Client) Partitions(ctx context.Context, topic string) (int, error) {
	if c.life.Err() != nil {
		return 0, ErrClosed
	}
	ctx, cancel := c.withTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	state, err := c.metadata(ctx, topic)
	if err != nil {
		return 0, err
	}
	partitions, err := state.partitions(topic)
	return len(partitions), err
}

// Ping returns nil when some broker answers, within the context's deadline or Config.Timeout.
func (c *Client) Ping(ctx context.Context) error {
	if c.life.Err() != nil {
		return ErrClosed
	}
	ctx, cancel := c.withTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	_, err := c.metadata(ctx)
	return err
}
