package integration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/task"
	"github.com/skalds-go/skalds/test/cluster"
	"github.com/skalds-go/skalds/test/services"
)

// The second proof: 10,000 tasks on a controller and two nodes, each finished exactly once, one node killed on
// the way.
func TestIntegrationTenThousandTasksThoughANodeIsKilled(t *testing.T) {
	for _, version := range services.KafkaVersions() {
		t.Run("kafka "+version, func(t *testing.T) {
			const n = 10_000
			c := cluster.New(t, version)
			c.Controller(nil)
			victim := c.Node("node-1", nil)
			c.Node("node-2", nil)
			slow := c.Submit(8, "slow", "demo.sleep", map[string]int{"ms": 3000})
			c.Submit(n, "quick", "demo.echo", map[string]string{"hello": "world"})
			c.Eventually(time.Minute, "the work is under way", func(ctx context.Context) (bool, string) {
				got, err := c.Total(ctx, "quick", task.Finished)
				return got > 500, fmt.Sprint(got, err)
			})
			victim.Kill()
			c.Finished(2*time.Minute, "quick", n)
			c.Finished(time.Minute, "slow", len(slow))
			quick := c.Tasks("quick")
			if len(quick) != n {
				t.Fatalf("%d tasks are listed, want %d", len(quick), n)
			}
			for id, got := range quick {
				if got.LifecycleStatus != task.Finished || string(got.Result) != `{"hello":"world"}` || got.FinishDateTime == 0 {
					t.Fatalf("%s: %s", id, mustJSON(t, got))
				}
			}
			if per := perNode(quick); len(per) != 2 {
				t.Errorf("executors %v, want both nodes", per)
			}
			// Nothing runs again later.
			before := received(c, "node-2")
			c.Submit(1, "last", "demo.echo", nil)
			c.Finished(time.Minute, "last", 1)
			c.Eventually(10*time.Second, "node-2 ran just one more", func(context.Context) (bool, string) {
				got := received(c, "node-2")
				return got == before+1, fmt.Sprint(got, " after ", before)
			})
		})
	}
}

// The third proof: a script's document, with only Skalds' own fields, is dispatched, and its end is in MongoDB.
func TestIntegrationADocumentOfAScriptIsDispatched(t *testing.T) {
	c := cluster.New(t, "4.4")
	c.Controller(map[string]string{"DISPATCHER_INTERVAL": "500ms"})
	c.Node("node-1", nil)
	now := time.Now().UnixMilli()
	tasks := c.Database().Collection("tasks")
	doc := func(id string, change bson.M) bson.M {
		m := bson.M{
			"id": id, "className": "demo.echo", "source": "Test", "name": nil, "description": nil, "executor": nil, "dependencies": nil, "mode": "Passive",
			"isPersistent": true, "createDateTime": now, "updateDateTime": now, "deadlineDateTime": int64(0), "lifecycleStatus": "Created",
			"priority": int32(0), "attachments": bson.D{{Key: "totalSeconds", Value: 3600.0}, {Key: "n", Value: int32(7)}},
		}
		maps.Copy(m, change)
		return m
	}
	_, err := tasks.InsertMany(t.Context(), []any{
		doc("script-1", nil),
		doc("script-2", bson.M{"_id": "an id of its own", "createDateTime": float64(now), "priority": 3.0}), // as a shell writes numbers
		doc("bad-1", bson.M{"createDateTime": "yesterday"}),
		doc("bad-2", bson.M{"priority": "high"}),
		doc("bad-3", bson.M{"className": nil}),
	})
	if err != nil {
		t.Fatal(err)
	}
	read := func(ctx context.Context, id string) (got struct {
		LifecycleStatus, Executor, Error string
		Attachments, Result              bson.D
		Attempt                          int64
	},
	) {
		var raw bson.M
		if err := tasks.FindOne(ctx, bson.M{"id": id}).Decode(&raw); err != nil {
			return got
		}
		got.LifecycleStatus, _ = raw["lifecycleStatus"].(string)
		got.Executor, _ = raw["executor"].(string)
		got.Error, _ = raw["error"].(string)
		got.Attachments, _ = raw["attachments"].(bson.D)
		got.Result, _ = raw["result"].(bson.D)
		return got
	}
	for _, id := range []string{"script-1", "script-2"} {
		c.Eventually(30*time.Second, id+" is finished", func(ctx context.Context) (bool, string) {
			got := read(ctx, id)
			return got.LifecycleStatus == "Finished", fmt.Sprintf("%+v", got)
		})
		got := read(t.Context(), id)
		if got.Executor != "node-1" || fmt.Sprint(got.Result) != fmt.Sprint(got.Attachments) {
			t.Errorf("%s: %+v, want the result to be the attachments", id, got)
		}
	}
	for _, id := range []string{"bad-1", "bad-2", "bad-3"} {
		c.Eventually(30*time.Second, id+" is failed with a reason", func(ctx context.Context) (bool, string) {
			got := read(ctx, id)
			return got.LifecycleStatus == "Failed" && got.Error != "", fmt.Sprintf("%+v", got)
		})
	}
}

// The fourth proof: DISPATCHER_STRATEGY changes the placement, and the strategy can be changed while it runs.
func TestIntegrationStrategies(t *testing.T) {
	c := cluster.New(t, "4.4")
	c.Controller(map[string]string{"DISPATCHER_STRATEGY": "round_robin"})
	c.Node("node-1", map[string]string{"NODE_CAPACITY": "100"})
	c.Node("node-2", map[string]string{"NODE_CAPACITY": "300"})
	c.Eventually(time.Minute, "the leader sees both nodes", func(ctx context.Context) (bool, string) {
		d, err := c.Client.Dispatcher(ctx)
		return err == nil && d.Nodes == 2, fmt.Sprint(d.Nodes, err)
	})
	c.Submit(80, "rr", "demo.sleep", map[string]int{"ms": 1})
	c.Finished(time.Minute, "rr", 80)
	if per := perNode(c.Tasks("rr")); per["node-1"] != 40 || per["node-2"] != 40 {
		t.Errorf("ROUND_ROBIN: %v, want 40 each", per)
	}
	got, err := c.Client.SetStrategy(t.Context(), "LEAST_TASKS")
	if err != nil || got.Strategy != "LEAST_TASKS" {
		t.Fatal(got, err)
	}
	c.Submit(80, "lt", "demo.sleep", map[string]int{"ms": 3000})
	c.Eventually(time.Minute, "all run", func(ctx context.Context) (bool, string) {
		n, err := c.Total(ctx, "lt", task.Running)
		return n == 80, fmt.Sprint(n, err)
	})
	if per := perNode(c.Tasks("lt")); per["node-1"] != 20 || per["node-2"] != 60 {
		t.Errorf("LEAST_TASKS over capacities 100 and 300: %v, want 20 and 60", per)
	}
}

func TestIntegrationOneBadEventStopsNothing(t *testing.T) {
	c := cluster.New(t, "4.4")
	c.Controller(nil)
	c.Node("node-1", nil)
	bus, err := kafka.NewClient(kafka.Config{Brokers: []string{c.Kafka.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	for _, topic := range []string{events.TopicAssign, events.TopicControl, events.TopicStatus} {
		n, err := bus.Partitions(t.Context(), topic)
		if err != nil {
			t.Fatal(err)
		}
		for p := range n {
			if err := bus.Publish(t.Context(), topic, p, []kafka.Record{{Key: []byte("k"), Value: []byte("{garbage")}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.Submit(1000, "t", "demo.echo", nil)
	c.Finished(time.Minute, "t", 1000)
	// Each status partition has one reader; the node reads one partition of each of its topics.
	want := map[string]int{events.TopicStatus: 6, events.TopicAssign: 1, events.TopicControl: 1}
	seen := map[string]int{}
	reader := bus.Reader(events.TopicQuarantine, 0, kafka.Earliest())
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for total := 0; total < 8; {
		records, err := reader.Next(ctx)
		if err != nil {
			t.Fatalf("quarantined so far %v, want %v: %v", seen, want, err)
		}
		for _, r := range records {
			var q events.Quarantine
			if err := json.Unmarshal(r.Value, &q); err != nil || q.Reason == "" || string(q.Value) != "{garbage" {
				t.Errorf("%+v %v", q, err)
			}
			seen[q.Topic]++
			total++
		}
	}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("quarantined %v, want %v", seen, want)
	}
}

func TestIntegrationCancelAndRetry(t *testing.T) {
	c := cluster.New(t, "4.4")
	c.Controller(nil)
	c.Submit(1, "waits", "demo.echo", nil)
	got, err := c.Client.Cancel(t.Context(), "waits-000000")
	if err != nil || got.LifecycleStatus != task.Cancelled {
		t.Fatal(mustJSON(t, got), err)
	}
	c.Node("node-1", nil)
	c.Submit(1, "runs", "demo.sleep", map[string]int{"ms": 600_000})
	c.Eventually(time.Minute, "it runs", func(ctx context.Context) (bool, string) {
		n, err := c.Total(ctx, "runs", task.Running)
		return n == 1, fmt.Sprint(n, err)
	})
	if _, err := c.Client.Cancel(t.Context(), "runs-000000"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if got, err = c.Client.Wait(ctx, "runs-000000"); err != nil || got.LifecycleStatus != task.Cancelled {
		t.Fatal(mustJSON(t, got), err)
	}
	if _, err := c.Client.Retry(t.Context(), "waits-000000"); err != nil {
		t.Fatal(err)
	}
	if got, err = c.Client.Wait(ctx, "waits-000000"); err != nil || got.LifecycleStatus != task.Finished {
		t.Fatal(mustJSON(t, got), err)
	}
}

// The leader is killed; the broker is killed and started again; Redis is restarted; a node drains: all under load.
func TestIntegrationWhatDiesComesBack(t *testing.T) {
	c := cluster.New(t, "4.4")
	first := c.Controller(nil)
	firstAPI := c.Client
	c.Client = nil
	second := c.Controller(nil)
	n1 := c.Node("node-1", nil)
	c.Node("node-2", nil)
	loads := 0
	load := func() {
		loads++
		c.Submit(300, fmt.Sprintf("t%02d", loads), "demo.sleep", map[string]int{"ms": 20})
	}
	load()
	c.Kafka.Kill(t)
	load() // the API takes tasks without Kafka
	c.Kafka.Start(t)
	load()
	c.Redis.Stop(t)
	c.Redis.Start(t)
	load()
	// The one that leads is killed; the client goes on with the other.
	d, err := c.Client.Dispatcher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d.IsLeader {
		c.Client = firstAPI
		second.Kill()
	} else {
		first.Kill()
	}
	load()
	n1.Stop() // drains
	load()
	for i := range loads {
		c.Finished(time.Minute, fmt.Sprintf("t%02d", i+1), 300)
	}
}

func TestIntegrationSASL(t *testing.T) {
	for _, mechanism := range []string{"plain", "scram-sha-256", "scram-sha-512"} {
		t.Run(mechanism, func(t *testing.T) {
			c := cluster.New(t, "4.4")
			cluster.HostPort(t, c.Env, "KAFKA", services.KafkaSASL(t, c.Kafka.Addr()))
			c.Env["KAFKA_SASL_MECHANISM"] = mechanism
			c.Env["KAFKA_USERNAME"], c.Env["KAFKA_PASSWORD"] = services.SASLUser, services.SASLPassword
			c.Controller(nil)
			c.Node("node-1", nil)
			c.Submit(10, "t", "demo.echo", nil)
			c.Finished(time.Minute, "t", 10)
		})
	}
}

func TestC81IntegrationPayloads(t *testing.T) {
	c := cluster.New(t, "4.4")
	c.Controller(nil)
	c.Node("node-1", nil)
	big := make([]byte, 200<<10)
	for i := range big {
		big[i] = 'x'
	}
	c.Submit(20, "big", "demo.echo", map[string]string{"s": string(big)})
	c.Finished(time.Minute, "big", 20)
	for id, got := range c.Tasks("big") {
		if len(got.Result) < len(big) {
			t.Errorf("%s: a result of %d bytes", id, len(got.Result))
		}
	}
	_, err := c.Client.Submit(t.Context(), client.NewTask{ClassName: "demo.echo", Attachments: json.RawMessage(`"` + string(make16MiB()) + `"`)})
	if !client.IsStatus(err, 413) {
		t.Errorf("16 MiB: %v, want 413", err)
	}
}

func make16MiB() []byte {
	b := make([]byte, 16<<20)
	for i := range b {
		b[i] = 'y'
	}
	return b
}
