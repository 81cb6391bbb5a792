package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/skalds-go/skalds/events/kafka"
)

// traffic publishes numbers, one after the other, and reads them at the same time.
type traffic struct {
	t      *testing.T
	acked  chan int      // each number that the cluster acknowledged
	cancel func()        // ends the publishing
	done   chan struct{} // it has ended
	client *kafka.Client

	mu   sync.Mutex
	sent []int // acknowledged
}

func startTraffic(t *testing.T, client *kafka.Client) *traffic {
	t.Helper()
	ctx, cancel := context.WithCancel(within(t, 60*time.Second))
	tr := &traffic{t: t, client: client, acked: make(chan int, 1), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(tr.done)
		for i := 0; ctx.Err() == nil; i++ {
			// A number whose outcome is unknown is not sent again: it may be in the log or not.
			if client.Publish(ctx, topic, 0, values(fmt.Sprint(i))) != nil {
				continue
			}
			tr.mu.Lock()
			tr.sent = append(tr.sent, i)
			tr.mu.Unlock()
			select {
			case tr.acked <- i:
			default:
			}
		}
	}()
	return tr
}

// flows waits until n more numbers were acknowledged.
func (tr *traffic) flows(n int) {
	tr.t.Helper()
	ctx := within(tr.t, 30*time.Second)
	for range n {
		select {
		case <-tr.acked:
		case <-ctx.Done():
			tr.t.Fatal("nothing can be published")
		}
	}
}

// verify ends the publishing and checks that a reader gets all that was acknowledged, in order.
func (tr *traffic) verify(reader *kafka.Reader) {
	tr.t.Helper()
	tr.cancel()
	<-tr.done
	want, last := tr.sent, -1
	ctx := within(tr.t, 30*time.Second)
	seen := make(map[int]int)
	for last < want[len(want)-1] {
		records, err := reader.Next(ctx)
		if err != nil {
			tr.t.Fatalf("after %d of %d: %v", last, want[len(want)-1], err)
		}
		for _, r := range records {
			var i int
			if _, err := fmt.Sscan(string(r.Value), &i); err != nil {
				tr.t.Fatal(err)
			}
			if i <= last {
				tr.t.Errorf("read %d after %d", i, last)
			}
			seen[i]++
			last = i
		}
	}
	for _, i := range want {
		if seen[i] != 1 {
			tr.t.Errorf("%d was acknowledged and read %d times", i, seen[i])
		}
	}
	tr.t.Logf("%d acknowledged, %d read", len(want), len(seen))
}

// follow reads in the background from the start, so that the reader meets the same outages as the publisher. caughtUp
// waits until it has read all there is, each offset once, and ends it. A test makes outages until the reader has
// failed.
func follow(t *testing.T, client *kafka.Client, log *logged) (caughtUp func()) {
	t.Helper()
	reader := client.Reader(topic, 0, kafka.Earliest())
	ctx, cancel := context.WithCancel(within(t, 60*time.Second))
	done := make(chan struct{})
	go func() {
		defer close(done)
		next := int64(0)
		for {
			records, err := reader.Next(ctx)
			if err != nil {
				if !errors.Is(err, context.Canceled) {
					t.Errorf("reader: %v", err)
				}
				return
			}
			for _, r := range records {
				if r.Offset != next {
					t.Errorf("read offset %d, want %d", r.Offset, next)
				}
				next = r.Offset + 1
			}
		}
	}()
	return func() {
		t.Helper()
		ranges, err := client.Offsets(t.Context(), topic, []int{0})
		if err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { return reader.Position().Offset == ranges[0].End })
		cancel()
		<-done
		if failures, restarts := log.failures(), log.restarts(); failures == 0 || restarts != 0 {
			t.Errorf("the follower failed %d times and lost its place %d times: want failures, and its place never lost", failures, restarts)
		}
	}
}

func TestBrokerRestarts(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	client, log := connectLogged(t, b.addr)
	if err := client.Ensure(t.Context(), []kafka.TopicSpec{{Name: topic, Partitions: 1, Replication: 1}}); err != nil {
		t.Fatal(err)
	}
	caughtUp := follow(t, client, log)
	tr := startTraffic(t, client)
	for i := 0; i < 20 || log.failures() == 0; i++ {
		tr.flows(20)
		b.restart()
	}
	tr.flows(20)
	tr.verify(client.Reader(topic, 0, kafka.Earliest()))
	caughtUp()
}

func TestLeaderMoves(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t, kfake.NumBrokers(3))
	client, log := connectLogged(t, cluster.ListenAddrs()[:1]...)
	caughtUp := follow(t, client, log)
	tr := startTraffic(t, client)
	for i := 0; i < 30 || log.failures() == 0; i++ {
		tr.flows(10)
		if err := cluster.MoveTopicPartition(topic, 0, int32(i%3)); err != nil {
			t.Fatal(err)
		}
	}
	tr.flows(10)
	tr.verify(client.Reader(topic, 0, kafka.Earliest()))
	caughtUp()
}

func TestBrokersComeAndGo(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t, kfake.NumBrokers(3))
	client, log := connectLogged(t, cluster.ListenAddrs()...)
	caughtUp := follow(t, client, log)
	tr := startTraffic(t, client)
	nodes := []int32{0, 1, 2}
	for i := 0; i < 10 || log.failures() == 0; i++ {
		tr.flows(10)
		if err := cluster.RemoveNode(nodes[0]); err != nil {
			t.Fatal(err)
		}
		tr.flows(10)
		added, _, err := cluster.AddNode(-1, 0) // at a port that no configuration names
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes[1:], added)
	}
	tr.flows(10)
	tr.verify(client.Reader(topic, 0, kafka.Earliest()))
	caughtUp()
}
