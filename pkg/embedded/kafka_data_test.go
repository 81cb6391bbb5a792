package embedded_test

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/embedded"
)

// asBroker has the test binary run a broker on the directory that it names, until it is killed.
const asBroker = "SKALDS_TEST_BROKER"

func runBroker(dir string) {
	broker, err := embedded.StartKafka(embedded.KafkaConfig{DataDir: dir})
	if err != nil {
		panic(err)
	}
	if _, err := os.Stdout.WriteString(broker.Addr() + "\n"); err != nil {
		panic(err)
	}
	select {}
}

// records are those of partition 0 of a topic from its beginning to its end.
func records(t *testing.T, client *kafka.Client, topic string) []string {
	t.Helper()
	ends, err := client.Offsets(t.Context(), topic, []int{0})
	if err != nil {
		t.Fatal(err)
	}
	reader := client.Reader(topic, 0, kafka.Earliest())
	var all []string
	for int64(len(all)) < ends[0].End-ends[0].First {
		some, err := reader.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range some {
			all = append(all, string(r.Value))
		}
	}
	return all
}

func connect(t *testing.T, addr string) *kafka.Client {
	t.Helper()
	client, err := kafka.NewClient(kafka.Config{Brokers: []string{addr}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func publish(t *testing.T, client *kafka.Client, topic string, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if err := client.Publish(t.Context(), topic, 0, []kafka.Record{{Value: []byte(strconv.Itoa(i))}}); err != nil {
			t.Fatal(err)
		}
	}
}

func wantNumbers(t *testing.T, got []string, n int) {
	t.Helper()
	want := make([]string, n)
	for i := range want {
		want[i] = strconv.Itoa(i)
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%d records: %v; want %d", len(got), got, n)
	}
}

// TestKafkaKeepsItsDataOverAKill: a broker on the directory of one that was killed has the topics and all that was
// acknowledged, and goes on.
func TestKafkaKeepsItsDataOverAKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const rounds, each = 3, 50
	for round := range rounds {
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{asBroker + "=" + dir}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, 64)
		n, err := out.Read(line)
		if err != nil {
			t.Fatal(err)
		}
		client := connect(t, strings.TrimSpace(string(line[:n])))
		spec := kafka.TopicSpec{Name: "kept", Partitions: 2, Replication: 1, Config: embedded.TopicConfig()}
		if err := client.Ensure(t.Context(), []kafka.TopicSpec{spec}); err != nil {
			t.Fatal(err)
		}
		wantNumbers(t, records(t, client, "kept"), round*each)
		publish(t, client, "kept", round*each, (round+1)*each)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
	}
	broker, err := embedded.StartKafka(embedded.KafkaConfig{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	client := connect(t, broker.Addr())
	wantNumbers(t, records(t, client, "kept"), rounds*each)
	broker.Close()
}

// TestKafkaKeepsItsOffsetsOverAStop, also of a log that has lost its beginning.
func TestKafkaKeepsItsOffsetsOverAStop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start := func() (*embedded.Kafka, *kafka.Client) {
		broker, err := embedded.StartKafka(embedded.KafkaConfig{DataDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(broker.Close)
		return broker, connect(t, broker.Addr())
	}
	broker, client := start()
	config := broker.TopicConfig()
	if err := client.Ensure(t.Context(), []kafka.TopicSpec{{Name: "busy", Partitions: 1, Replication: 1, Config: config}}); err != nil {
		t.Fatal(err)
	}
	const batches, size = 16, 512 << 10 // 8 MiB
	for range batches {
		if err := client.Publish(t.Context(), "busy", 0, []kafka.Record{{Value: make([]byte, size)}}); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, func(ctx context.Context) bool {
		ranges, err := client.Offsets(ctx, "busy", []int{0})
		return err == nil && ranges[0].First > 0
	})
	broker.Close()

	_, client = start()
	after, err := client.Offsets(t.Context(), "busy", []int{0})
	if err != nil || after[0].End != batches || after[0].First == 0 {
		t.Errorf("offsets %+v, error %v", after, err)
	}
	if config["retention.ms"] != "-1" || embedded.TopicConfig()["retention.ms"] == "-1" {
		t.Errorf("retention.ms %s", config["retention.ms"])
	}
}
