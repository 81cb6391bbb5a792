package connect_test

import (
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/config"
	"github.com/skalds-go/skalds/pkg/connect"
	"github.com/skalds-go/skalds/pkg/embedded"
)

var quiet = slog.New(slog.DiscardHandler)

func portOf(t *testing.T, addr string) int {
	t.Helper()
	_, text, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// TestTheLargestEventFits: what Kafka takes beside the event itself must not make the largest one too large.
func TestTheLargestEventFits(t *testing.T) {
	t.Parallel()
	broker, err := embedded.StartKafka(embedded.KafkaConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	c := config.DefaultNode().Kafka
	c.Port = portOf(t, broker.Addr())
	client, err := connect.Kafka(c, "test", quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Ensure(t.Context(), []kafka.TopicSpec{{Name: events.TopicStatus, Partitions: 1, Replication: 1}}); err != nil {
		t.Fatal(err)
	}
	if err := client.Publish(t.Context(), events.TopicStatus, 0, []kafka.Record{{Key: []byte("k"), Value: make([]byte, c.EventMaxBytes)}}); err != nil {
		t.Error(err)
	}
}

func TestRedis(t *testing.T) {
	t.Parallel()
	server, err := embedded.StartRedis(embedded.RedisConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	c := config.DefaultNode().Redis
	c.Port = portOf(t, server.Addr())
	r, err := connect.Redis(c, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Snapshot(t.Context()); err != nil {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestWhatIsWrongNamesItsPart(t *testing.T) {
	t.Parallel()
	k, r := config.DefaultNode().Kafka, config.DefaultNode().Redis
	k.TLS, k.TLSCAFile = true, "nowhere"
	r.TLS, r.TLSCAFile = true, "nowhere"
	if _, err := connect.Kafka(k, "test", quiet); !strings.HasPrefix(fmt.Sprint(err), "kafka: ") {
		t.Errorf("kafka: %v", err)
	}
	if _, err := connect.Redis(r, quiet); !strings.HasPrefix(fmt.Sprint(err), "redis: ") {
		t.Errorf("redis: %v", err)
	}
	k, r = config.DefaultNode().Kafka, config.DefaultNode().Redis
	k.SASLMechanism, k.Username = "unknown", "u"
	r.ClusterAddrs, r.DB = config.Addresses{"a:1"}, 3
	if _, err := connect.Kafka(k, "test", quiet); !strings.HasPrefix(fmt.Sprint(err), "kafka: ") {
		t.Errorf("kafka: %v", err)
	}
	if _, err := connect.Redis(r, quiet); !strings.HasPrefix(fmt.Sprint(err), "redis: ") {
		t.Errorf("redis: %v", err)
	}
}
