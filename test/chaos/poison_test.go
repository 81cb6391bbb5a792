package chaos_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/task"
)

// TestChaosPoison gives a cluster what nobody should: handlers that end their process, eat its memory or panic, cancels
// of tasks that do not exist, documents and events that make no sense. Everything else goes on, and nothing is left to
// grow.
func TestChaosPoison(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	states := t.TempDir()
	for _, n := range w.nodes() { // so that the crashes of their processes are proven
		n.terminate()
		n.awaitEnd()
		n.env["SKALD_STATE_DIR"] = states
		n.start()
	}
	w.submit(500, "base", quick, 10)
	w.check(recoverLimit, "base")
	base, nodesBase, topics := w.needs(), w.resident(), w.topics()
	w.sub("C79 handlers that end their process, eat its memory, or panic", func() { w.killers("c79") })
	w.sub("cancels of unknown tasks", func() { w.cancelUnknown("unknown", times(2000, 10_000)) })
	w.sub("bad documents", func() { w.badDocuments("document") })
	w.sub("bad events", func() { w.badEvents("event", times(500, 2000)) })
	w.sub("nothing has grown", func() {
		w.back(base)
		got := w.topics() // one that another test has deleted may still go
		for name, partitions := range got {
			if partitions > topics[name] {
				w.T.Errorf("topics %v, before %v", got, topics)
			}
		}
		w.Eventually(recoverLimit, "memory of the nodes is back", func(context.Context) (bool, string) {
			now := w.resident()
			return now <= nodesBase+moreBytes, fmt.Sprintf("%.0f MiB, before %.0f", now/(1<<20), nodesBase/(1<<20))
		})
	})
}

// killers submits tasks that harm their node among others that do not, and starts nodes again as a supervisor does.
func (w *world) killers(prefix string) {
	bad := map[string]string{"exit": "maxCrashes", "hog": "maxCrashes", "panic": "panic"} // by class: what the end says
	limit := 3
	var list []client.NewTask
	for class := range bad {
		t := newTask(prefix+"-bad-"+class, class, 50)
		t.MaxAttempts, t.MaxCrashes, t.Backoff = &limit, &limit, &client.NewBackoff{BaseMs: 10, Factor: 1, MaxMs: 20}
		list = append(list, t)
	}
	ctx, cancel := context.WithTimeout(w.T.Context(), recoverLimit)
	defer cancel()
	if err := w.offer(ctx, append(list, batch(150, prefix+"-good", quick, 100)...)); err != nil {
		w.T.Fatal(err)
	}
	deaths := 0
	w.Eventually(2*recoverLimit, "all have ended", func(ctx context.Context) (bool, string) {
		for _, n := range w.nodes() {
			if !n.proc.Running() {
				deaths++
				n.kill() // notes its end
				n.start()
			}
		}
		left, err := w.count(ctx, prefix, task.Created, task.Assigning, task.Running, task.Paused)
		return err == nil && left == 0, fmt.Sprint(left, " have not; ", err)
	})
	for id, t := range w.stored(prefix + "-bad") {
		if want := bad[t.ClassName]; t.LifecycleStatus != task.Failed || !strings.Contains(t.Error, want) {
			w.T.Errorf("task %s is %s with %q, want it failed for %q", id, t.LifecycleStatus, t.Error, want)
		}
		// An attempt that another task cut off, by killing the node of both, does not count.
		if t.ClassName == "panic" && t.Failures != limit {
			w.T.Errorf("task %s failed %d times in %d attempts, want %d", id, t.Failures, t.Attempt, limit)
		}
	}
	w.T.Logf("nodes died %d times", deaths)
	if most := 2*limit + 2; deaths > most { // and two that the machine may have had a hand in
		w.T.Errorf("nodes died %d times, want %d at most", deaths, most)
	}
	w.check(recoverLimit, prefix+"-good")
}

// cancelUnknown cancels tasks that do not exist.
func (w *world) cancelUnknown(prefix string, n int) {
	began := time.Now()
	var callers sync.WaitGroup
	for caller := range 8 {
		api := w.controllers()[caller%controllers].api
		callers.Go(func() {
			for i := caller; i < n; i += 8 {
				if _, err := api.Cancel(w.T.Context(), fmt.Sprintf("%s-%06d", prefix, i)); !client.IsStatus(err, http.StatusNotFound) {
					w.T.Errorf("cancel of a task that does not exist: %v", err)
					return
				}
			}
		})
	}
	callers.Wait()
	w.T.Logf("%d cancels of unknown tasks were answered in %s", n, time.Since(began).Round(time.Millisecond))
	if stored := len(w.stored(prefix)); stored != 0 {
		w.T.Errorf("%d tasks were stored for them", stored)
	}
	w.works(prefix + "-after")
}

// works checks that tasks still run.
func (w *world) works(prefix string) {
	w.T.Helper()
	w.submit(60, prefix, quick, 5)
	w.once(prefix)
}

// badDocuments inserts documents as a script does that knows nothing of Skalds.
func (w *world) badDocuments(prefix string) {
	now := time.Now().UnixMilli()
	changes := map[string]bson.M{
		"time":     {"createDateTime": "yesterday"},
		"priority": {"priority": "high"},
		"class":    {"className": nil},
		"number":   {"className": int32(7)},
		"large":    {"attachments": strings.Repeat("x", 300<<10)},
		"attempt":  {"attempt": bson.A{1, 2}},
		"runs":     {"attempts": "none"},
		"timeout":  {"timeoutMs": bson.M{"a": 1}},
		"desired":  {"desired": 3.5},
	}
	var docs []any
	for range 20 {
		for name, change := range changes {
			doc := bson.M{
				"id": fmt.Sprintf("%s-bad-%s-%04d", prefix, name, len(docs)), "className": quick, "mode": "Passive", "lifecycleStatus": "Created",
				"createDateTime": now, "updateDateTime": now, "priority": int32(0), "attachments": bson.M{"ms": 1},
			}
			maps.Copy(doc, change)
			docs = append(docs, doc)
		}
	}
	docs = append(docs, bson.M{"lifecycleStatus": "Created"}, bson.M{"id": 7, "lifecycleStatus": "Created", "mode": "Passive"})
	tasks := w.Database().Collection("tasks")
	if _, err := tasks.InsertMany(w.T.Context(), docs); err != nil {
		w.T.Fatal(err)
	}
	w.works(prefix + "-good")
	all := bson.M{"id": bson.M{"$regex": "^" + prefix + "-bad-"}}
	w.Eventually(recoverLimit, "every bad document is failed with a reason", func(ctx context.Context) (bool, string) {
		open := maps.Clone(all)
		open["$or"] = bson.A{bson.M{"lifecycleStatus": bson.M{"$ne": "Failed"}}, bson.M{"error": bson.M{"$in": bson.A{nil, ""}}}}
		n, err := tasks.CountDocuments(ctx, open)
		return err == nil && n == 0, fmt.Sprint(n, " are not; ", err)
	})
	w.works(prefix + "-good-again")
}

// badEvents writes events that make no sense into every partition of every topic.
func (w *world) badEvents(prefix string, n int) {
	values := [][]byte{
		[]byte("{garbage"), nil, []byte("null"), []byte("[]"), []byte(`"text"`), []byte(`{"version":99}`), []byte(`{"version":1}`),
		[]byte(`{"version":1,"term":9223372036854775807,"tasks":"none"}`), []byte(`{"reports":[{"id":1}]}`), bytes.Repeat([]byte("["), 200_000),
		[]byte(`{"version":1,"node":"nobody","incarnation":"none","reports":[{"id":"none","attempt":7,"claimId":"none","kind":"finished"}]}`),
	}
	writer := &kafkago.Writer{Addr: kafkago.TCP(w.Kafka.Addr()), RequiredAcks: kafkago.RequireAll, BatchTimeout: time.Millisecond, Balancer: &kafkago.RoundRobin{}}
	defer func() { _ = writer.Close() }()
	for topic := range w.topics() {
		for from := 0; from < n; from += 100 {
			var records []kafkago.Message
			for i := range 100 {
				records = append(records, kafkago.Message{Topic: topic, Key: []byte(strconv.Itoa(from + i)), Value: values[(from+i)%len(values)]})
			}
			if err := writer.WriteMessages(w.T.Context(), records...); err != nil {
				w.T.Fatal(err)
			}
		}
	}
	w.works(prefix)
}

// topics says how many partitions each topic has.
func (w *world) topics() map[string]int {
	w.T.Helper()
	meta, err := (&kafkago.Client{Addr: kafkago.TCP(w.Kafka.Addr()), Timeout: recoverLimit}).Metadata(w.T.Context(), &kafkago.MetadataRequest{})
	if err != nil {
		w.T.Fatal(err)
	}
	found := map[string]int{}
	for _, t := range meta.Topics {
		found[t.Name] = len(t.Partitions)
	}
	names := slices.Sorted(maps.Keys(found))
	if !slices.Contains(names, events.TopicQuarantine) {
		w.T.Fatalf("topics %v", names)
	}
	return found
}

// resident is how much memory the largest node process holds, in bytes.
func (w *world) resident() float64 {
	w.T.Helper()
	most := 0
	for _, n := range w.nodes() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", n.proc.PID()))
		fields := strings.Fields(string(text))
		if err != nil || len(fields) < 2 {
			w.T.Fatalf("memory of %s: %q, %v", n.name, text, err)
		}
		pages, err := strconv.Atoi(fields[1])
		if err != nil {
			w.T.Fatal(err)
		}
		most = max(most, pages*os.Getpagesize())
	}
	return float64(most)
}
