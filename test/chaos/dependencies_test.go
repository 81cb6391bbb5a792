package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/task"
)

// TestChaosDependencies takes away what everything stands on, in every way: nothing fails or moves for it, the API says
// what is missing, and everything goes on by itself within goesOn of the return.
func TestChaosDependencies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i, services := range [][]string{{toRedis}, {toKafka}, {toStore}, {toRedis, toStore}} {
		for _, how := range []what{cut, delay, stall} {
			w.sub(fmt.Sprintf("%s %s", strings.Join(services, " and "), how), func() {
				w.outage(fmt.Sprintf("outage-%d-%s", i, how), services, how)
			})
		}
	}
	w.sub("redis and kafka are gone", w.bothGone)
	w.sub("kafka comes back empty", w.kafkaEmpty)
	if chaosDuration() > 0 { // a start of the broker takes its time
		w.sub("redis and kafka come back empty", w.bothEmpty)
	}
	w.sub("topics are deleted", w.topicsDeleted)
}

// goesOn is how soon everything is to go on once what was missing is back, where tasks took so long before. CI does
// other things meanwhile.
func goesOn(usual time.Duration) time.Duration {
	if chaosDuration() > 0 {
		return 3*time.Second + 2*usual
	}
	return 15*time.Second + 2*usual
}

// brokerServes waits until a broker that was started does its work for somebody who has nothing to do with us, and
// gives the time: its process is there long before.
func (w *world) brokerServes() time.Time {
	w.T.Helper()
	const topic = "somebody-else"
	broker := &kafkago.Client{Addr: kafkago.TCP(w.Kafka.Addr()), Timeout: recoverLimit}
	config := kafkago.TopicConfig{Topic: topic, NumPartitions: 1, ReplicationFactor: 1}
	w.Eventually(recoverLimit, "the broker serves", func(ctx context.Context) (bool, string) {
		made, err := broker.CreateTopics(ctx, &kafkago.CreateTopicsRequest{Topics: []kafkago.TopicConfig{config}})
		if err == nil && (made.Errors[topic] == nil || errors.Is(made.Errors[topic], kafkago.TopicAlreadyExists)) {
			_, err = broker.Produce(ctx, &kafkago.ProduceRequest{
				Topic: topic, RequiredAcks: kafkago.RequireAll, Records: kafkago.NewRecordReader(kafkago.Record{Value: kafkago.NewBytes([]byte("x"))}),
			})
			return err == nil, fmt.Sprint(err)
		}
		return false, fmt.Sprint(made, err)
	})
	return time.Now()
}

// usual is how long new tasks take while all is well.
func (w *world) usual(prefix string) time.Duration {
	w.T.Helper()
	began := time.Now()
	w.submit(3*nodes, prefix, quick, 1)
	w.ended(recoverLimit, prefix)
	return time.Since(began)
}

// wentOn measures from the return of what was missing until new tasks have ended.
func (w *world) wentOn(prefix string, back time.Time, usual time.Duration) {
	w.T.Helper()
	w.usual(prefix + "-after")
	took := time.Since(back)
	w.T.Logf("new tasks had ended %s after the return; before they took %s", took.Round(time.Millisecond), usual.Round(time.Millisecond))
	if limit := goesOn(usual); took > limit {
		w.T.Errorf("new tasks had ended %s after the return, want %s at most", took, limit)
	}
}

// held has tasks run that go on for long.
func (w *world) held(prefix string, ms int) {
	w.T.Helper()
	w.submitAgain(2*nodes, prefix, slow, ms, 10)
	w.Eventually(recoverLimit, "all of "+prefix+" run", func(ctx context.Context) (bool, string) {
		n, err := w.count(ctx, prefix, task.Running)
		return n == 2*nodes, fmt.Sprint(n, err)
	})
}

// unmoved checks that tasks are still in their first attempt.
func (w *world) unmoved(prefix string) {
	w.T.Helper()
	for id, t := range w.stored(prefix) {
		if t.Attempt != 1 || t.Failures != 0 || t.Crashes != 0 {
			w.moved(id, &t)
		}
	}
}

// outage has services not answer for a while.
func (w *world) outage(prefix string, services []string, how what) {
	lasts := max(rules.LostAfter+time.Second, chaosDuration()/10) // a minute in the long run
	usual := w.usual(prefix + "-before")
	w.park(prefix + "-parked")
	w.held(prefix+"-held", int((lasts+2*time.Second)/time.Millisecond))
	began := time.Now()
	var faults []*fault
	for _, s := range services {
		f := &fault{what: how, target: "*/" + s, delay: 200 * time.Millisecond}
		faults = append(faults, f)
		w.breakOne(f)
	}
	w.asked(prefix, services, how)
	w.hold(lasts - time.Since(began))
	for _, f := range faults {
		w.mend(f)
	}
	w.wentOn(prefix, time.Now(), usual)
	w.cancel(w.T.Context(), prefix+"-parked")
	w.check(recoverLimit, prefix)
	w.unmoved(prefix + "-held")
}

// park stores a task that does not run, for people to do things to.
func (w *world) park(id string) {
	w.T.Helper()
	t := newTask(id, quick, 1)
	t.NotBefore = time.Now().Add(time.Hour).UnixMilli()
	ctx, cancel := context.WithTimeout(w.T.Context(), recoverLimit)
	defer cancel()
	if err := w.offer(ctx, []client.NewTask{t}); err != nil {
		w.T.Fatal(err)
	}
}

// interrupted checks that tasks ran again, and that this cost them nothing.
func (w *world) interrupted(prefix string) {
	w.T.Helper()
	for id, t := range w.check(recoverLimit, prefix) {
		if t.Attempt < 2 || t.Failures != 0 || t.Crashes != 0 {
			w.T.Errorf("task %s is %s in attempt %d with %d failures and %d crashes, %+v", id, t.LifecycleStatus, t.Attempt, t.Failures, t.Crashes, t.Attempts)
		}
	}
}

// bothGone leaves nodes without any confirmation: they stop, and their tasks run again.
func (w *world) bothGone() {
	usual := w.usual("gone-before")
	w.held("gone-held", 120_000)
	for _, s := range []string{toRedis, toKafka} {
		w.breakOne(&fault{what: cut, target: "*/" + s})
	}
	w.hold(rules.LostAfter + time.Second)
	for _, s := range []string{toRedis, toKafka} {
		w.mend(&fault{what: cut, target: "*/" + s})
	}
	w.wentOn("gone", time.Now(), usual)
	w.interrupted("gone-held")
}

// kafkaEmpty restarts the broker without its data. Redis goes on confirming the nodes.
func (w *world) kafkaEmpty() {
	usual := w.usual("kafka-before")
	w.held("kafka-held", 120_000)
	w.Kafka.Kill(w.T)
	w.Kafka.Empty(w.T)
	w.Kafka.Start(w.T)
	w.wentOn("kafka", w.brokerServes(), usual)
	w.unmoved("kafka-held")
	for id := range w.stored("kafka-held") {
		w.cancel(w.T.Context(), id)
	}
	w.check(recoverLimit, "kafka")
}

func (w *world) bothEmpty() {
	usual := w.usual("empty-before")
	w.held("empty-held", 120_000)
	w.Redis.Kill(w.T)
	w.Kafka.Kill(w.T)
	w.Kafka.Empty(w.T)
	w.hold(rules.LostAfter + time.Second)
	w.Kafka.Start(w.T)
	w.brokerServes()
	w.Redis.Start(w.T) // last: it alone would have kept the nodes
	w.wentOn("empty", time.Now(), usual)
	w.interrupted("empty-held")
}

// topicsDeleted removes the topics under load: at first nobody makes them anew but the controllers, then somebody does
// at once.
func (w *world) topicsDeleted() {
	w.held("topics-held", 120_000)
	for _, again := range []bool{false, true} {
		for _, topic := range []string{events.TopicAssign, events.TopicControl, events.TopicStatus} {
			prefix := fmt.Sprintf("topics-%s-%v", topic, again)
			usual := w.usual(prefix + "-before")
			w.submit(40, prefix, quick, 20)
			w.deleteTopic(topic, again)
			w.wentOn(prefix, time.Now(), usual)
		}
	}
	w.unmoved("topics-held")
	for id := range w.stored("topics-held") {
		w.cancel(w.T.Context(), id)
	}
	w.check(recoverLimit, "topics")
}

// deleteTopic removes a topic as an operator would, and makes it anew if asked to.
func (w *world) deleteTopic(topic string, again bool) {
	w.T.Helper()
	admin := &kafkago.Client{Addr: kafkago.TCP(w.Kafka.Addr()), Timeout: recoverLimit}
	partitions := 0
	w.Eventually(recoverLimit, "topic "+topic+" is there", func(ctx context.Context) (bool, string) { // the client's picture may be a second old
		meta, err := admin.Metadata(ctx, &kafkago.MetadataRequest{Topics: []string{topic}})
		if err == nil && len(meta.Topics) == 1 && meta.Topics[0].Error == nil {
			partitions = len(meta.Topics[0].Partitions)
		}
		return partitions > 0, fmt.Sprintf("%+v, %v", meta, err)
	})
	gone, err := admin.DeleteTopics(w.T.Context(), &kafkago.DeleteTopicsRequest{Topics: []string{topic}})
	if err != nil || gone.Errors[topic] != nil {
		w.T.Fatalf("delete topic %s: %+v, %v", topic, gone, err)
	}
	if !again {
		return
	}
	config := kafkago.TopicConfig{Topic: topic, NumPartitions: partitions, ReplicationFactor: 1}
	if _, err := admin.CreateTopics(w.T.Context(), &kafkago.CreateTopicsRequest{Topics: []kafkago.TopicConfig{config}}); err != nil {
		w.T.Fatalf("create topic %s: %v", topic, err)
	}
}
