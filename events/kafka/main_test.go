package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/goleak"

	"github.com/skalds-go/skalds/events/kafka"
)

const topic = "task.assign"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newCluster(t testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(1, topic)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func newClient(t testing.TB, cfg kafka.Config) *kafka.Client {
	t.Helper()
	c, err := kafka.NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func connect(t testing.TB, cluster *kfake.Cluster) *kafka.Client {
	t.Helper()
	return newClient(t, kafka.Config{Brokers: cluster.ListenAddrs()})
}

// within bounds what a test waits for.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func values(vs ...string) []kafka.Record {
	records := make([]kafka.Record, len(vs))
	for i, v := range vs {
		records[i] = kafka.Record{Key: []byte("k"), Value: []byte(v)}
	}
	return records
}

func publish(t testing.TB, c *kafka.Client, vs ...string) {
	t.Helper()
	if err := c.Publish(within(t, 10*time.Second), topic, 0, values(vs...)); err != nil {
		t.Fatal(err)
	}
}

// read returns the values of the next n records.
func read(t testing.TB, r *kafka.Reader, n int) []string {
	t.Helper()
	ctx := within(t, 10*time.Second)
	var got []string
	for len(got) < n {
		records, err := r.Next(ctx)
		if err != nil {
			t.Fatalf("after %q: %v", got, err)
		}
		for _, r := range records {
			got = append(got, string(r.Value))
		}
	}
	return got
}

func wantValues(t testing.TB, got []string, want ...string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("read %q, want %q", got, want)
	}
}

func wantErr(t testing.TB, err error, want ...error) {
	t.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Errorf("error %v is not %v", err, w)
		}
	}
}

// logged collects what was logged, and signals each line but those for debugging.
type logged struct {
	mu    sync.Mutex
	lines []slog.Record
	line  chan slog.Record
}

func newLogged() *logged { return &logged{line: make(chan slog.Record, 100)} }

func (l *logged) Enabled(context.Context, slog.Level) bool { return true }
func (l *logged) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logged) WithGroup(string) slog.Handler            { return l }
func (l *logged) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	l.lines = append(l.lines, r)
	l.mu.Unlock()
	if r.Level > slog.LevelDebug {
		l.line <- r
	}
	return nil
}

func (l *logged) count(level slog.Level) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, r := range l.lines {
		if r.Level == level {
			n++
		}
	}
	return n
}

// failures returns how often a reader could not read, and restarts how often one lost its place.
func (l *logged) failures() int { return l.lineCount("kafka reader cannot read") }
func (l *logged) restarts() int { return l.lineCount("kafka reader lost its place") }

func (l *logged) lineCount(prefix string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, r := range l.lines {
		if strings.HasPrefix(r.Message, prefix) {
			n++
		}
	}
	return n
}

// connectLogged is connect, with what the client logs.
func connectLogged(t testing.TB, brokers ...string) (*kafka.Client, *logged) {
	t.Helper()
	log := newLogged()
	return newClient(t, kafka.Config{Brokers: brokers, Logger: slog.New(log)}), log
}
