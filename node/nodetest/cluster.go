// Package nodetest runs nodes without Kafka, Redis and controller: on topics and a registry in memory, with a caller
// that plays the leader. It is for tests of handlers from end to end.
//
// Invariants: everything ends with the context or with Close; time is Go's own, so that it works in a testing/synctest
// bubble.
package nodetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/bustest"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/node/session"
	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/config"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/registry/memory"
	"github.com/skalds-go/skalds/pkg/task"
)

// partitions is how many each topic has.
const partitions = 4

// Clock is Go's time as a clock.Clock: Boot goes by the monotonic clock.
type Clock struct{ began time.Time }

var _ clock.Clock = Clock{}

// NewClock makes a clock whose Boot is one hour now.
func NewClock() Clock { return Clock{time.Now().Add(-time.Hour)} }

// Now is time.Now.
func (Clock) Now() time.Time { return time.Now() }

// Boot is the time since the clock was made, and one hour.
func (c Clock) Boot() time.Duration { return time.Since(c.began) }

// NewTimer makes a timer of package time.
func (Clock) NewTimer(d time.Duration) clock.Timer { return clock.System{}.NewTimer(d) }

// Cluster is all that nodes need. It is safe for concurrent use.
type Cluster struct {
	Bus      *bustest.Bus
	Registry *memory.Registry
	Clock    Clock

	term            atomic.Int64
	roundRobinCount atomic.Int64
	claims          atomic.Int64

	mu       sync.Mutex
	stops    []func()
	readers  []*bustest.Reader // of task.status, one for each partition
	statuses []events.Status   // that they have read
}

// New makes an empty cluster.
func New() *Cluster {
	c := NewClock()
	cl := &Cluster{Bus: bustest.Skalds(partitions), Registry: memory.New(c), Clock: c}
	cl.term.Store(1)
	return cl
}

// Config returns a valid configuration of a node with this id, with the default of every variable.
func Config(id string) node.Config {
	return node.Config{Node: config.Node{
		Log: config.Log{Level: config.LogInfo}, ID: id, Mode: config.NodeModeNode, Capacity: 16, Prefetch: 16,
		Kafka: config.Kafka{Host: "127.0.0.1", Port: 9092, TopicPartitions: partitions, ReplicationFactor: 1, EventMaxBytes: events.DefaultMaxBytes},
		Redis: config.Redis{Host: "127.0.0.1", Port: 6379},
		Liveness: config.Liveness{
			HeartbeatInterval: time.Second, LostAfter: 8 * time.Second, StopMargin: time.Second,
		},
		ResultMaxBytes: 256 << 10, DrainSoft: 30 * time.Second, DrainHard: 10 * time.Second, CancelGrace: 10 * time.Second,
	}}
}

// Options returns options by which a node uses the cluster.
func (c *Cluster) Options() []node.Option {
	return []node.Option{node.WithSeams(session.Seams{Bus: session.BusOf(c.Bus), Registry: c.Registry, Clock: c.Clock})}
}

// Start runs n and returns once it is registered. The function that it returns stops it and gives what Run returned;
// Close calls it too.
func (c *Cluster) Start(ctx context.Context, n *node.Node) (stop func() error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	if _, err := c.Await(ctx, n.ID()); err != nil {
		return nil, fmt.Errorf("%w: %w", err, stop())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stops = append(c.stops, func() { _ = stop() })
	return stop, nil
}

// Close stops every node that was started.
func (c *Cluster) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, stop := range c.stops {
		stop()
	}
	c.stops = nil
}

// Await waits until the node with this id has registered and said so.
func (c *Cluster) Await(ctx context.Context, id string) (registry.Node, error) {
	for {
		changed := c.Bus.Changed()
		n, ok, err := c.Registry.Node(ctx, id)
		if err != nil {
			return registry.Node{}, fmt.Errorf("await node %s: %w", id, err)
		}
		if ok && c.joined(n.Incarnation) {
			return n, nil
		}
		select {
		case <-ctx.Done():
			return registry.Node{}, fmt.Errorf("await node %s: %w", id, ctx.Err())
		case <-changed:
		}
	}
}

func (c *Cluster) joined(incarnation string) bool {
	for _, s := range c.Statuses() {
		if s.Incarnation == incarnation && s.Notice == events.NoticeJoined {
			return true
		}
	}
	return false
}

// Statuses returns all values of task.status so far, those of one node in their order.
func (c *Cluster) Statuses() []events.Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.readers == nil {
		for i := range partitions {
			c.readers = append(c.readers, c.Bus.Reader(events.TopicStatus, i, kafka.Earliest()))
		}
	}
	for _, r := range c.readers {
		for records := r.TryNext(); len(records) > 0; records = r.TryNext() {
			for i := range records {
				if s, err := events.DecodeStatus(records[i].Value); err == nil {
					c.statuses = append(c.statuses, s)
				}
			}
		}
	}
	return slices.Clone(c.statuses)
}

// Reports returns all reports of a claim, in their order.
func (c *Cluster) Reports(claimID string) []task.Report {
	var list []task.Report
	for _, s := range c.Statuses() {
		for _, r := range s.Reports {
			if r.ClaimID == claimID {
				list = append(list, r)
			}
		}
	}
	return list
}

// Task makes the next claim of a new task of the class. The attachments are encoded as JSON; nil is none.
func (c *Cluster) Task(class string, attachments any) (events.AssignedTask, error) {
	n := c.claims.Add(1)
	t := events.AssignedTask{ID: fmt.Sprintf("task-%d", n), ClassName: class, Attempt: 1, ClaimID: fmt.Sprintf("claim-%d", n), CreateDateTime: 1}
	if attachments != nil {
		b, err := json.Marshal(attachments)
		if err != nil {
			return events.AssignedTask{}, fmt.Errorf("attachments: %w", err)
		}
		t.Attachments = b
	}
	return t, nil
}

// Assign publishes claims to the present incarnation of a node, as the leader does.
func (c *Cluster) Assign(ctx context.Context, nodeID string, tasks ...events.AssignedTask) error {
	return c.publish(ctx, nodeID, events.Assign{Tasks: tasks, RoundRobinCount: c.roundRobinCount.Load()})
}

// Acknowledge acknowledges the final reports of claims.
func (c *Cluster) Acknowledge(ctx context.Context, nodeID string, claimIDs ...string) error {
	return c.publish(ctx, nodeID, events.Assign{Acknowledged: claimIDs})
}

func (c *Cluster) publish(ctx context.Context, nodeID string, a events.Assign) error {
	n, err := c.node(ctx, nodeID)
	if err != nil {
		return err
	}
	a.SetSender("nodetest", c.term.Load())
	a.SetRecipient(n.ID, n.Incarnation)
	values, err := events.EncodeAssign(a, events.DefaultMaxBytes)
	if err != nil {
		return fmt.Errorf("assign: %w", err)
	}
	return c.send(ctx, events.TopicAssign, n, values)
}

// Cancel publishes a command to cancel claims.
func (c *Cluster) Cancel(ctx context.Context, nodeID string, tasks ...events.AssignedTask) error {
	return c.Command(ctx, nodeID, events.CommandCancel, tasks...)
}

// Command publishes a command for claims; an update brings their attachments.
func (c *Cluster) Command(ctx context.Context, nodeID string, kind events.CommandKind, tasks ...events.AssignedTask) error {
	var e events.Control
	for _, t := range tasks {
		cmd := events.Command{Kind: kind, ID: t.ID, Attempt: t.Attempt, ClaimID: t.ClaimID}
		if kind == events.CommandUpdate {
			cmd.Attachments, cmd.AttachmentsVersion = t.Attachments, t.AttachmentsVersion
		}
		e.Commands = append(e.Commands, cmd)
	}
	return c.control(ctx, nodeID, e)
}

// Drain tells a node to drain, or to take work again.
func (c *Cluster) Drain(ctx context.Context, nodeID string, drain bool) error {
	return c.control(ctx, nodeID, events.Control{Drain: &drain})
}

func (c *Cluster) control(ctx context.Context, nodeID string, e events.Control) error {
	n, err := c.node(ctx, nodeID)
	if err != nil {
		return err
	}
	e.Term, e.Initiator, e.Recipient, e.Incarnation = c.term.Load(), "nodetest", n.ID, n.Incarnation
	values, err := events.EncodeControl(e, events.DefaultMaxBytes)
	if err != nil {
		return fmt.Errorf("control: %w", err)
	}
	return c.send(ctx, events.TopicControl, n, values)
}

// Confirm confirms heartbeats that the present incarnation of a node sent over task.status.
func (c *Cluster) Confirm(ctx context.Context, nodeID string, counters ...int64) error {
	n, err := c.node(ctx, nodeID)
	if err != nil {
		return err
	}
	var a events.Assign
	for _, counter := range counters {
		a.Heartbeats = append(a.Heartbeats, events.ConfirmedHeartbeat{Incarnation: n.Incarnation, Counter: counter})
	}
	a.SetSender("nodetest", c.term.Load())
	values, err := events.EncodeAssign(a, events.DefaultMaxBytes)
	if err != nil {
		return fmt.Errorf("confirm: %w", err)
	}
	return c.send(ctx, events.TopicAssign, registry.Node{Partition: n.Partition}, values)
}

// Fence tells the present incarnation of a node that its work is reassigned.
func (c *Cluster) Fence(ctx context.Context, nodeID string) error {
	return c.control(ctx, nodeID, events.Control{Fence: true})
}

// Term sets the leader's term; it is 1 at first.
func (c *Cluster) Term(term int64) { c.term.Store(term) }

// RoundRobinCount sets what assignments say that ROUND_ROBIN counts for their node; they say nothing at first.
func (c *Cluster) RoundRobinCount(n int64) { c.roundRobinCount.Store(n) }

func (c *Cluster) node(ctx context.Context, id string) (registry.Node, error) {
	n, ok, err := c.Registry.Node(ctx, id)
	if err == nil && !ok {
		err = fmt.Errorf("no node %s is registered", id)
	}
	return n, err
}

func (c *Cluster) send(ctx context.Context, topic string, n registry.Node, values []events.Encoded) error {
	var headers []kafka.Header // none for what is meant for every node of the partition
	if n.ID != "" {
		headers = []kafka.Header{
			{Key: events.HeaderNode, Value: []byte(n.ID)}, {Key: events.HeaderIncarnation, Value: []byte(n.Incarnation)},
		}
	}
	for _, v := range values {
		if err := c.Bus.Publish(ctx, topic, n.Partition, []kafka.Record{{Key: v.Key, Value: v.Value, Headers: headers}}); err != nil {
			return fmt.Errorf("send: %w", err)
		}
	}
	return nil
}

// AwaitReport waits for a report of the claim for which ok holds.
func (c *Cluster) AwaitReport(ctx context.Context, claimID string, ok func(task.Report) bool) (task.Report, error) {
	for {
		changed := c.Bus.Changed()
		for _, r := range c.Reports(claimID) {
			if ok(r) {
				return r, nil
			}
		}
		select {
		case <-ctx.Done():
			return task.Report{}, fmt.Errorf("await a report of %s: %w", claimID, ctx.Err())
		case <-changed:
		}
	}
}

// Do has a node run a new task, waits for its final report and acknowledges it.
func (c *Cluster) Do(ctx context.Context, nodeID, class string, attachments any) (task.Report, error) {
	t, err := c.Task(class, attachments)
	if err != nil {
		return task.Report{}, err
	}
	if err := c.Assign(ctx, nodeID, t); err != nil {
		return task.Report{}, err
	}
	r, err := c.AwaitReport(ctx, t.ClaimID, func(r task.Report) bool { return r.Kind.Final() })
	if err != nil {
		return task.Report{}, err
	}
	return r, c.Acknowledge(ctx, nodeID, t.ClaimID)
}
