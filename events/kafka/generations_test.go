package kafka_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/skalds-go/skalds/events/kafka"
)

// There is no consumer group, so that nothing is rebalanced. What a rebalance does to readers of other clients, a
// partition that moves to another broker, or that is made anew, must not do to ours.

// generations publishes records that say which log of the partition they are of, and where in it they stand.
type generations struct {
	t       *testing.T
	cluster *kfake.Cluster
	client  *kafka.Client
	read    chan place // what a reader handed out
	acked   int

	mu sync.Mutex // keeps a record from getting into another log than it says
	at place      // of the next record
}

type place struct{ log, number int }

// publish appends one record. Where its outcome is unknown, its number is missing, or not.
func (g *generations) publish(ctx context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.publishLocked(ctx)
}

func (g *generations) publishLocked(ctx context.Context) {
	if g.client.Publish(ctx, topic, 0, values(fmt.Sprint(g.at.log, " ", g.at.number))) == nil {
		g.acked++
	}
	g.at.number++
}

// renew makes the topic anew, with one record, and waits for that: the log must not grow past the reader's place before
// it has looked. (docs/adr/0002 says what becomes of the rest.)
func (g *generations) renew(ctx context.Context) {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.cluster.DeleteTopic(topic); err != nil {
		g.t.Fatal(err)
	}
	if err := g.cluster.CreateTopic(topic, 1, nil); err != nil {
		g.t.Fatal(err)
	}
	g.at = place{g.at.log + 1, 0}
	for acked := g.acked; g.acked == acked && ctx.Err() == nil; {
		g.publishLocked(ctx)
	}
	g.reads(ctx, g.at.log, 1)
}

// reads waits until n more records of a log were handed out. None may be of an older log, or older than the one before.
func (g *generations) reads(ctx context.Context, log, n int) {
	g.t.Helper()
	for n > 0 {
		select {
		case p := <-g.read:
			if p.log == log {
				n--
			}
		case <-ctx.Done():
			g.t.Fatalf("%d records of log %d are not read", n, log)
		}
	}
}

// TestC31_NothingOfAnOlderLogIsHandedOut: 50 times the partition moves or is made anew, while records are published.
func TestC31_NothingOfAnOlderLogIsHandedOut(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t, kfake.NumBrokers(3))
	ctx, stop := context.WithCancel(within(t, 60*time.Second))
	g := &generations{t: t, cluster: cluster, client: connect(t, cluster), read: make(chan place)}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() {
		for ctx.Err() == nil {
			g.publish(ctx)
		}
	})
	wg.Go(func() {
		reader := g.client.Reader(topic, 0, kafka.Earliest())
		last := place{0, -1}
		for {
			records, err := reader.Next(ctx)
			if err != nil {
				return
			}
			for _, r := range records {
				var p place
				if _, err := fmt.Sscan(string(r.Value), &p.log, &p.number); err != nil {
					t.Error(err)
				}
				if p.log < last.log || p.log == last.log && p.number <= last.number {
					t.Errorf("record %d of log %d was handed out after %d of log %d", p.number, p.log, last.number, last.log)
				}
				last = p
				select {
				case g.read <- p:
				case <-ctx.Done():
					return
				}
			}
		}
	})
	for i := range 50 {
		g.reads(ctx, i/2, 5)
		if i%2 == 1 {
			g.renew(ctx)
			continue
		}
		if err := cluster.MoveTopicPartition(topic, 0, int32(i/2%3)); err != nil {
			t.Fatal(err)
		}
	}
	g.reads(ctx, 25, 5)
}

// TestC32_APlaceThatWasNotStoredLosesNothing: the partition moves between each fetch and the storing of its place,
// every other reader is killed in between, and nothing new is published.
func TestC32_APlaceThatWasNotStoredLosesNothing(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t, kfake.NumBrokers(3))
	client := connect(t, cluster)
	const n = 20
	for i := range n { // four fetches of about 4 MiB
		big := append([]byte(fmt.Sprint(i, " ")), make([]byte, 900<<10)...)
		if err := client.Publish(t.Context(), topic, 0, []kafka.Record{{Value: big}}); err != nil {
			t.Fatal(err)
		}
	}
	stored := kafka.Earliest()
	handled, fetched, killed := 0, 0, 0
	for i := 0; handled < n; i++ {
		reader := client.Reader(topic, 0, stored)
		records, err := reader.Next(within(t, 10*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		fetched += len(records)
		if err := cluster.MoveTopicPartition(topic, 0, int32(i%3)); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			killed++
			continue
		}
		for _, r := range records {
			var number int
			if _, err := fmt.Sscan(string(r.Value[:3]), &number); err != nil || number != handled {
				t.Fatalf("record %d comes where %d is next (%v)", number, handled, err)
			}
			handled++
		}
		stored = reader.Position()
	}
	if killed < 4 || fetched < 2*n-10 {
		t.Errorf("%d readers were killed; %d records were fetched for %d", killed, fetched, n)
	}
}

// TestC40_ANewReaderMissesNothing: what is published between the look at a partition's end, which makes a node ready,
// and its first fetch, is read; also when the partition has moved by then.
func TestC40_ANewReaderMissesNothing(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]int{"a new partition": 0, "one with records": 5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := newCluster(t, kfake.NumBrokers(3))
			client := connect(t, cluster)
			for range before {
				publish(t, client, "old")
			}
			ends, err := client.Offsets(t.Context(), topic, []int{0})
			if err != nil {
				t.Fatal(err)
			}
			reader := client.Reader(topic, 0, kafka.Position{Offset: ends[0].End})
			publish(t, client, "a")
			for broker := range int32(3) {
				if err := cluster.MoveTopicPartition(topic, 0, broker); err != nil {
					t.Fatal(err)
				}
			}
			publish(t, connect(t, cluster), "b", "c") // by one that knows where it is now
			wantValues(t, read(t, reader, 3), "a", "b", "c")
		})
	}
}
