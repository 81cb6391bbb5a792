package kafka_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/skalds-go/skalds/events/kafka"
)

func TestEnsure(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		spec []kafka.TopicSpec
		want []string // in the error; none = success
	}{
		{name: "nothing"},
		{name: "new", spec: []kafka.TopicSpec{{Name: "new", Partitions: 12, Replication: 3}}},
		{name: "exists as asked", spec: []kafka.TopicSpec{{Name: topic, Partitions: 4, Replication: 1}}},
		{name: "exists with more", spec: []kafka.TopicSpec{{Name: topic, Partitions: 2, Replication: 1}}},
		{name: "exists with fewer", spec: []kafka.TopicSpec{{Name: topic, Partitions: 6, Replication: 1}, {Name: "new", Partitions: 1, Replication: 4}},
			want: []string{`"task.assign" has 4 partitions, 6 are wanted`, "--alter --topic task.assign --partitions 6", "at most 4",
				`"new": replication factor 4 needs as many brokers, the cluster has 3`}},
		{name: "unusable", spec: []kafka.TopicSpec{{Name: "", Partitions: 1, Replication: 1}, {Name: "a", Partitions: 0, Replication: 1},
			{Name: "b", Partitions: 1, Replication: 0}, {Name: "a", Partitions: 1, Replication: 1}},
			want: []string{"no name", `"a": 0 partitions`, `"b": 1 partitions and replication factor 0`, `"a" is asked for twice`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			client := connect(t, newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(4, topic)))
			err := client.Ensure(within(t, 10*time.Second), tt.spec)
			if (err == nil) != (len(tt.want) == 0) {
				t.Fatalf("error %v", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error does not say %q: %v", want, err)
				}
			}
			for _, s := range tt.spec {
				if err != nil {
					break
				}
				if n, err := client.Partitions(t.Context(), s.Name); err != nil || n < s.Partitions {
					t.Errorf("topic %s has %d partitions, %v", s.Name, n, err)
				}
				if err := client.Publish(t.Context(), s.Name, s.Partitions-1, values("x")); err != nil {
					t.Errorf("the new topic cannot be used at once: %v", err)
				}
			}
		})
	}
}

func TestEnsureSetsTheConfiguration(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	client := connect(t, cluster)
	spec := kafka.TopicSpec{Name: "new", Partitions: 1, Replication: 1, Config: map[string]string{"retention.ms": "1234", "cleanup.policy": "delete"}}
	if err := client.Ensure(t.Context(), []kafka.TopicSpec{spec}); err != nil {
		t.Fatal(err)
	}
	got := cluster.TopicInfo("new").Configs
	for k, want := range spec.Config {
		if v := got[k]; v == nil || *v != want {
			t.Errorf("%s is %v, want %q", k, v, want)
		}
	}
}

func TestEnsureReportsARefusal(t *testing.T) {
	t.Parallel()
	for _, code := range []*kerr.Error{kerr.InvalidConfig, kerr.PolicyViolation, kerr.InvalidTopicException, kerr.TopicAuthorizationFailed, kerr.InvalidReplicationFactor} {
		t.Run(code.Message, func(t *testing.T) {
			t.Parallel()
			cluster := newCluster(t)
			fault := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.CreateTopics}, Err: code, Count: -1})
			err := connect(t, cluster).Ensure(within(t, 10*time.Second), []kafka.TopicSpec{{Name: "new", Partitions: 2, Replication: 1}})
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("[%d]", code.Code)) || !strings.Contains(err.Error(), `"new"`) {
				t.Errorf("error does not name code %d and the topic: %v", code.Code, err)
			}
			if n := fault.Hits(); n != 1 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

func TestEnsureGoesOnAfterPassingErrors(t *testing.T) {
	t.Parallel()
	for _, code := range []*kerr.Error{kerr.NotController, kerr.RequestTimedOut, kerr.TopicAlreadyExists} {
		t.Run(code.Message, func(t *testing.T) {
			t.Parallel()
			cluster := newCluster(t)
			cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.CreateTopics}, Err: code, Count: 2})
			client := connect(t, cluster)
			if err := client.Ensure(within(t, 10*time.Second), []kafka.TopicSpec{{Name: "new", Partitions: 2, Replication: 1}}); err != nil {
				t.Fatal(err)
			}
			if n, err := client.Partitions(t.Context(), "new"); n != 2 || err != nil {
				t.Errorf("%d partitions, %v", n, err)
			}
		})
	}
}

// TestEnsureWaitsForTheLeaders: a real broker may name itself as the leader in its metadata a moment before it is one.
func TestEnsureWaitsForTheLeaders(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	asked := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Err: kerr.NotLeaderForPartition, Count: 3})
	if err := connect(t, cluster).Ensure(within(t, 10*time.Second), []kafka.TopicSpec{{Name: "new", Partitions: 2, Replication: 1}}); err != nil {
		t.Fatal(err)
	}
	if n := asked.Hits(); n != 3 {
		t.Errorf("returned after %d refusals of 3", n)
	}
}

func TestEnsureAtTheSameTime(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t, kfake.NumBrokers(3))
	var wg sync.WaitGroup
	for i := range 8 {
		client := connect(t, cluster)
		wg.Go(func() {
			var specs []kafka.TopicSpec
			for n := range 4 {
				specs = append(specs, kafka.TopicSpec{Name: fmt.Sprint("topic", (i+n)%5), Partitions: 3, Replication: 3})
			}
			if err := client.Ensure(within(t, 10*time.Second), specs); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestPartitionsAreCurrent(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	client := connect(t, cluster)
	_, err := client.Partitions(t.Context(), "new")
	wantErr(t, err, kafka.ErrUnknownTopic)
	for range 3 {
		if err := cluster.CreateTopic("new", 5, nil); err != nil {
			t.Fatal(err)
		}
		if n, err := client.Partitions(t.Context(), "new"); n != 5 || err != nil {
			t.Errorf("%d partitions, %v", n, err)
		}
		if err := cluster.DeleteTopic("new"); err != nil {
			t.Fatal(err)
		}
		_, err := client.Partitions(t.Context(), "new")
		wantErr(t, err, kafka.ErrUnknownTopic)
	}
}

func TestOffsets(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(6, topic))
	client := connect(t, cluster)
	for p := range 6 {
		for range p {
			if err := client.Publish(t.Context(), topic, p, values("x", "y")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cluster.DeleteRecords(topic, 5, 4); err != nil {
		t.Fatal(err)
	}
	for p := range 6 { // what is remembered about the leaders is wrong now
		if err := cluster.MoveTopicPartition(topic, int32(p), int32(p%3)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := client.Offsets(t.Context(), topic, []int{0, 1, 3, 5})
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]kafka.Range{0: {}, 1: {End: 2}, 3: {End: 6}, 5: {First: 4, End: 10}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("offsets %v, want %v", got, want)
	}
	if got, err := client.Offsets(t.Context(), topic, nil); len(got) != 0 || err != nil {
		t.Errorf("offsets of no partition: %v, %v", got, err)
	}
	_, err = client.Offsets(t.Context(), topic, []int{0, 6})
	wantErr(t, err, kafka.ErrUnknownTopic)
}
