package node_test

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/node/nodetest"
	"github.com/skalds-go/skalds/pkg/embedded"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/registry/redis"
)

func port(t *testing.T, addr string) int {
	t.Helper()
	_, p, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(p)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestOnTheWire: a node that knows nothing but its configuration, on Kafka's and Redis' protocols.
func TestOnTheWire(t *testing.T) {
	t.Parallel()
	broker, err := embedded.StartKafka(embedded.KafkaConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	server, err := embedded.StartRedis(embedded.RedisConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client, err := kafka.NewClient(kafka.Config{Brokers: []string{broker.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	reg, err := redis.Open(redis.Config{Addrs: []string{server.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := reg.Close(); err != nil {
			t.Error(err)
		}
	}()

	cfg := nodetest.Config("wired")
	cfg.Kafka.Port, cfg.Redis.Port = port(t, broker.Addr()), port(t, server.Addr())
	cfg.HeartbeatInterval = 50 * time.Millisecond
	n, err := node.New(cfg, node.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	node.Handle(n, "c", noop)
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { ended <- n.Run(ctx) }()

	var specs []kafka.TopicSpec
	for _, topic := range []string{events.TopicAssign, events.TopicControl, events.TopicStatus, events.TopicQuarantine} {
		specs = append(specs, kafka.TopicSpec{Name: topic, Partitions: 3, Replication: 1, Config: embedded.TopicConfig()})
	}
	if err := client.Ensure(ctx, specs); err != nil {
		t.Fatal(err)
	}
	statuses := client.Reader(events.TopicStatus, events.Partition("wired", 3), kafka.Earliest())
	next := func() events.Status {
		records, err := statuses.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		s, err := events.DecodeStatus(records[len(records)-1].Value)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := next(); s.Notice != events.NoticeJoined || s.Node != "wired" {
		t.Fatalf("the first word is %+v", s)
	}
	rn, ok, err := reg.Node(ctx, "wired")
	if err != nil || !ok || rn.State != registry.Online || rn.Capacity != 16 || rn.Memory == 0 || rn.Partition != events.Partition("wired", 3) {
		t.Fatalf("registered as %+v, %v", rn, err)
	}
	a := events.Assign{Tasks: []events.AssignedTask{{ID: "t", ClassName: "c", Attempt: 1, ClaimID: "claim"}}}
	a.SetSender("test", 1)
	a.SetRecipient(rn.ID, rn.Incarnation)
	e := one(t, a)
	if err := client.Publish(ctx, events.TopicAssign, rn.Partition, []kafka.Record{{Key: e.Key, Value: e.Value}}); err != nil {
		t.Fatal(err)
	}
	for {
		if s := next(); len(s.Reports) > 0 && s.Reports[len(s.Reports)-1].Kind.Final() {
			break
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	if _, ok, err := reg.Node(t.Context(), "wired"); ok || err != nil {
		t.Errorf("it is still registered: %v", err)
	}
}

func one(t *testing.T, a events.Assign) events.Encoded {
	t.Helper()
	list, err := events.EncodeAssign(a, events.DefaultMaxBytes)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d values, %v", len(list), err)
	}
	return list[0]
}
