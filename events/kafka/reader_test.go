package kafka_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/skalds-go/skalds/events/kafka"
)

func TestReaderPositions(t *testing.T) {
	t.Parallel()
	client := connect(t, newCluster(t))
	publish(t, client, "a", "b")
	publish(t, client, "c")

	earliest := client.Reader(topic, 0, kafka.Earliest())
	wantValues(t, read(t, earliest, 3), "a", "b", "c")
	stored := earliest.Position()
	if stored.Offset != 3 || stored.Check == 0 {
		t.Errorf("position %+v after three records", stored)
	}

	ranges, err := client.Offsets(t.Context(), topic, []int{0})
	if err != nil {
		t.Fatal(err)
	}
	end := client.Reader(topic, 0, kafka.Position{Offset: ranges[0].End})
	publish(t, client, "d")
	wantValues(t, read(t, end, 1), "d")
	wantValues(t, read(t, client.Reader(topic, 0, stored), 1), "d")
	wantValues(t, read(t, client.Reader(topic, 0, kafka.Position{Offset: 1}), 3), "b", "c", "d")
	wantValues(t, read(t, earliest, 1), "d")
	if got, want := earliest.Position(), end.Position(); got != want {
		t.Errorf("positions %+v and %+v after the same record", got, want)
	}
}

func TestReaderLatest(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	client := connect(t, cluster)
	publish(t, client, "old")
	fetches := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Observe: true, Count: -1})
	reader := client.Reader(topic, 0, kafka.Latest())
	ctx := within(t, 10*time.Second)
	got := make(chan []kafka.Record, 1)
	go func() {
		records, _ := reader.Next(ctx)
		got <- records
	}()
	if err := fetches.Wait(ctx, 2); err != nil { // the look at the record before, and the wait for the next one
		t.Fatal(err)
	}
	publish(t, client, "new")
	if records := <-got; len(records) != 1 || string(records[0].Value) != "new" || records[0].Offset != 1 {
		t.Errorf("read %v", records)
	}
}

func TestReaderWaitsForItsTopic(t *testing.T) {
	t.Parallel()
	client := connect(t, newCluster(t))
	reader := client.Reader("later", 0, kafka.Earliest())
	ctx := within(t, 10*time.Second)
	got := make(chan []kafka.Record, 1)
	go func() {
		records, _ := reader.Next(ctx)
		got <- records
	}()
	if err := client.Ensure(ctx, []kafka.TopicSpec{{Name: "later", Partitions: 1, Replication: 1}}); err != nil {
		t.Fatal(err)
	}
	if err := client.Publish(ctx, "later", 0, values("x")); err != nil {
		t.Fatal(err)
	}
	if records := <-got; len(records) != 1 {
		t.Errorf("read %v", records)
	}
}

func TestReaderEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for name, brokers := range map[string][]string{"idle": newCluster(t).ListenAddrs(), "no broker": {refusedAddr(t)}, "silent broker": {silentServer(t)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := newClient(t, kafka.Config{Brokers: brokers, Timeout: time.Hour})
			_, err := client.Reader(topic, 0, kafka.Earliest()).Next(within(t, 50*time.Millisecond))
			wantErr(t, err, context.DeadlineExceeded)
		})
	}
}

func TestReaderRefusesImpossiblePlaces(t *testing.T) {
	t.Parallel()
	client := newClient(t, kafka.Config{Brokers: []string{refusedAddr(t)}})
	for _, r := range []*kafka.Reader{client.Reader(topic, -1, kafka.Earliest()), client.Reader(topic, 0, kafka.Position{Offset: -3})} {
		if _, err := r.Next(t.Context()); err == nil {
			t.Error("no error")
		}
	}
}

// TestReaderGoesOnAfterErrors answers fetches with each of the errors of a cluster in motion.
func TestReaderGoesOnAfterErrors(t *testing.T) {
	t.Parallel()
	for _, code := range []*kerr.Error{
		kerr.NotLeaderForPartition, kerr.LeaderNotAvailable, kerr.UnknownTopicOrPartition, kerr.OffsetOutOfRange, kerr.FencedLeaderEpoch,
		kerr.UnknownLeaderEpoch, kerr.KafkaStorageError, kerr.OffsetNotAvailable, kerr.TopicAuthorizationFailed, kerr.UnknownServerError,
	} {
		for _, key := range []kmsg.Key{kmsg.Fetch, kmsg.ListOffsets} {
			t.Run(key.Name()+" "+code.Message, func(t *testing.T) {
				t.Parallel()
				cluster := newCluster(t)
				client, log := connectLogged(t, cluster.ListenAddrs()...)
				publish(t, client, "a")
				reader := client.Reader(topic, 0, kafka.Earliest())
				wantValues(t, read(t, reader, 1), "a")
				cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.NotLeaderForPartition}) // so that it looks where it is
				cluster.Fault(kfake.Fault{Keys: []kmsg.Key{key}, Err: code, Count: 2})
				publish(t, client, "b")
				wantValues(t, read(t, reader, 1), "b")
				if failures, restarts := log.failures(), log.restarts(); failures < 3 || restarts != 0 {
					t.Errorf("%d failures and %d restarts, want the failures and no restart", failures, restarts)
				}
			})
		}
	}
}

// TestReaderStartsAgain: the place is gone, in each of the ways in which that happens.
func TestReaderStartsAgain(t *testing.T) {
	t.Parallel()
	recreate := func(t *testing.T, c *kfake.Cluster, client *kafka.Client, vs ...string) {
		t.Helper()
		if err := c.DeleteTopic(topic); err != nil {
			t.Fatal(err)
		}
		if err := c.CreateTopic(topic, 1, nil); err != nil {
			t.Fatal(err)
		}
		for _, v := range vs {
			later := []kafka.Record{{Time: time.Now().Add(time.Hour), Key: []byte("k"), Value: []byte(v)}}
			if err := client.Publish(t.Context(), topic, 0, later); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tt := range []struct {
		name     string
		change   func(*testing.T, *kfake.Cluster, *kafka.Client)
		want     []string
		restarts int
	}{
		{name: "nothing happened", change: func(*testing.T, *kfake.Cluster, *kafka.Client) {}},
		{name: "recreated, shorter", restarts: 1, want: []string{"x"}, change: func(t *testing.T, c *kfake.Cluster, k *kafka.Client) {
			recreate(t, c, k, "x")
		}},
		{name: "recreated, as long", restarts: 1, want: []string{"x", "y", "z"}, change: func(t *testing.T, c *kfake.Cluster, k *kafka.Client) {
			recreate(t, c, k, "x", "y", "z")
		}},
		{name: "recreated, longer", restarts: 1, want: []string{"w", "x", "y", "z"}, change: func(t *testing.T, c *kfake.Cluster, k *kafka.Client) {
			recreate(t, c, k, "w", "x", "y", "z")
		}},
		{name: "same words at another time", restarts: 1, want: []string{"a", "b", "c"}, change: func(t *testing.T, c *kfake.Cluster, k *kafka.Client) {
			recreate(t, c, k, "a", "b", "c")
		}},
		{name: "removed up to the place", change: func(t *testing.T, c *kfake.Cluster, _ *kafka.Client) {
			if err := c.DeleteRecords(topic, 0, 3); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "removed beyond the place", restarts: 1, want: []string{"e"}, change: func(t *testing.T, c *kfake.Cluster, k *kafka.Client) {
			publish(t, k, "d")
			publish(t, k, "e")
			if err := c.DeleteRecords(topic, 0, 4); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		for _, running := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, running %v", tt.name, running), func(t *testing.T) {
				t.Parallel()
				cluster := newCluster(t)
				client, log := connectLogged(t, cluster.ListenAddrs()...)
				publish(t, client, "a")
				publish(t, client, "b")
				publish(t, client, "c")
				reader := client.Reader(topic, 0, kafka.Earliest())
				read(t, reader, 3)
				tt.change(t, cluster, client)
				if running {
					// A reader in the middle of a fetch would have got an error by the change.
					cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.NotLeaderForPartition})
				} else {
					reader = client.Reader(topic, 0, reader.Position())
				}
				publish(t, client, "last")
				wantValues(t, read(t, reader, len(tt.want)+1), append(tt.want, "last")...)
				if got := log.restarts(); got != tt.restarts {
					t.Errorf("%d restarts, want %d", got, tt.restarts)
				}
			})
		}
	}
}

// TestReaderSeesThatItsTopicIsNew: it is waiting in a fetch while the topic is deleted and made again.
func TestReaderSeesThatItsTopicIsNew(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	client := connect(t, cluster)
	publish(t, client, "a", "b", "c")
	reader := client.Reader(topic, 0, kafka.Earliest())
	read(t, reader, 3)
	fetches := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Observe: true, Count: -1})
	ctx := within(t, 10*time.Second)
	got := make(chan []kafka.Record, 1)
	go func() {
		records, _ := reader.Next(ctx)
		got <- records
	}()
	if err := fetches.Wait(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if err := cluster.DeleteTopic(topic); err != nil {
		t.Fatal(err)
	}
	if err := cluster.CreateTopic(topic, 1, nil); err != nil {
		t.Fatal(err)
	}
	publish(t, client, "x")
	if records := <-got; len(records) != 1 || records[0].Offset != 0 {
		t.Errorf("read %v, want the first record of the new topic", records)
	}
}

func TestReaderBoundsWhatItReturns(t *testing.T) {
	t.Parallel()
	client := connect(t, newCluster(t))
	const n, size = 12, 900 << 10
	for range n {
		if err := client.Publish(t.Context(), topic, 0, []kafka.Record{{Value: make([]byte, size)}}); err != nil {
			t.Fatal(err)
		}
	}
	reader := client.Reader(topic, 0, kafka.Earliest())
	for got := 0; got < n; {
		records, err := reader.Next(within(t, 10*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if len(records)*size > 4<<20 {
			t.Errorf("%d records of %d bytes at once", len(records), size)
		}
		got += len(records)
	}
}

// TestReaderLogsAnOutageOnce, however many tries it takes, and that it is over.
func TestReaderLogsAnOutageOnce(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	client, log := connectLogged(t, b.addr)
	if err := client.Ensure(t.Context(), []kafka.TopicSpec{{Name: topic, Partitions: 1, Replication: 1}}); err != nil {
		t.Fatal(err)
	}
	publish(t, client, "a")
	reader := client.Reader(topic, 0, kafka.Earliest())
	read(t, reader, 1)
	b.stop()

	ctx := within(t, 20*time.Second)
	got := make(chan []kafka.Record, 1)
	go func() {
		records, _ := reader.Next(ctx)
		got <- records
	}()
	if line := <-log.line; line.Level != slog.LevelWarn {
		t.Errorf("logged %v", line)
	}
	failures := log.failures()
	waitFor(t, func() bool { return log.failures() > failures+2 })
	b.start()
	publish(t, client, "b")
	if records := <-got; len(records) != 1 || string(records[0].Value) != "b" {
		t.Errorf("read %v", records)
	}
	if warned, informed := log.count(slog.LevelWarn), log.count(slog.LevelInfo); warned != 1 || informed != 1 {
		t.Errorf("logged %d warnings and %d notes, want one of each", warned, informed)
	}
}

func waitFor(t *testing.T, ready func() bool) {
	t.Helper()
	ctx := within(t, 10*time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("it did not come to pass")
		}
	}
}
