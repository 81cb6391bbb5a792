// Package integration_test runs the built binary as separate processes on a real Kafka broker, a real redis-server and a
// MongoDB-wire server.
package integration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
	"github.com/skalds-go/skalds/test/services"
)

// cluster is skalds processes on services of their own.
type cluster struct {
	t      *testing.T
	env    map[string]string
	kafka  *services.Service
	redis  *services.Service
	mongo  string
	client *client.Client
}

// newCluster starts the services; no skalds process yet. Brokers are the test's own, since the names of topics are fixed.
func newCluster(t *testing.T, kafkaVersion string) *cluster {
	t.Helper()
	c := &cluster{t: t, kafka: services.StartKafka(t, kafkaVersion), redis: services.StartRedis(t), env: map[string]string{}}
	hostPort(t, c.env, "KAFKA", c.kafka.Addr())
	hostPort(t, c.env, "REDIS", c.redis.Addr())
	c.mongo = services.Mongo(t)
	c.env["MONGO_HOST"] = c.mongo
	c.env["DB_NAME"] = fmt.Sprintf("it-%d", time.Now().UnixNano())
	return c
}

// with is the cluster's environment and more.
func (c *cluster) with(more map[string]string) map[string]string {
	env := maps.Clone(c.env)
	maps.Copy(env, more)
	return env
}

// controller starts a controller and waits until it is ready. The first one is the one that the client talks to.
func (c *cluster) controller(more map[string]string) *process {
	c.t.Helper()
	port := freePort(c.t)
	p := start(c.t, "controller", c.with(merge(map[string]string{"SYSTEM_CONTROLLER_PORT": strconv.Itoa(port)}, more)), "controller")
	api, err := client.New(client.Config{Server: fmt.Sprintf("http://127.0.0.1:%d", port)})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(api.Close)
	c.eventually(time.Minute, "the controller is ready", func(ctx context.Context) (bool, string) {
		missing, err := api.Ready(ctx)
		return err == nil && len(missing) == 0, fmt.Sprint(missing, err)
	})
	if c.client == nil {
		c.client = api
	}
	return p
}

func merge(a, b map[string]string) map[string]string {
	maps.Copy(a, b)
	return a
}

// node starts a node that runs the demo classes, and waits until it is registered.
func (c *cluster) node(id string, more map[string]string) *process {
	c.t.Helper()
	p := start(c.t, id, c.with(merge(map[string]string{"SKALD_ID": id}, more)), "node")
	c.eventually(time.Minute, "node "+id+" is registered", func(ctx context.Context) (bool, string) {
		n, err := c.client.Node(ctx, id)
		return err == nil && n.State == "online", fmt.Sprint(err)
	})
	return p
}

// eventually asks until the answer is yes.
func (c *cluster) eventually(limit time.Duration, what string, ask func(ctx context.Context) (bool, string)) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), limit)
	defer cancel()
	last := ""
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		yes, why := ask(ctx)
		if yes {
			return
		}
		if ctx.Err() == nil {
			last = why
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			c.t.Fatalf("not within %s: %s; last: %s", limit, what, last)
		}
	}
}

// submit sends n tasks in batches and gives their ids.
func (c *cluster) submit(n int, prefix, class string, attachments any) []string {
	c.t.Helper()
	ids := make([]string, 0, n)
	for from := 0; from < n; from += store.MaxBatch {
		var batch []client.NewTask
		for i := from; i < min(n, from+store.MaxBatch); i++ {
			batch = append(batch, client.NewTask{ID: fmt.Sprintf("%s-%06d", prefix, i), ClassName: class, Attachments: attachments})
		}
		items, err := c.client.SubmitBatch(c.t.Context(), batch)
		if err != nil {
			c.t.Fatal(err)
		}
		for _, it := range items {
			if it.Status != 201 {
				c.t.Fatalf("submit %s: %d %s", it.ID, it.Status, it.Error)
			}
			ids = append(ids, it.ID)
		}
	}
	return ids
}

// total counts the tasks of a prefix with a status.
func (c *cluster) total(ctx context.Context, prefix string, status ...task.Status) (int64, error) {
	page, err := c.client.List(ctx, client.Query{IDPrefix: prefix, Status: status, PageSize: 1})
	if err != nil || page.Total == nil {
		return -1, err
	}
	return *page.Total, nil
}

// finished waits until all tasks of a prefix are finished.
func (c *cluster) finished(limit time.Duration, prefix string, n int) {
	c.t.Helper()
	c.eventually(limit, fmt.Sprintf("all %d tasks %s are finished", n, prefix), func(ctx context.Context) (bool, string) {
		got, err := c.total(ctx, prefix, task.Finished)
		return got == int64(n), fmt.Sprint(got, " finished ", err)
	})
}

// tasks reads all tasks of a prefix.
func (c *cluster) tasks(prefix string) map[string]task.Task {
	c.t.Helper()
	all := make(map[string]task.Task)
	for t, err := range c.client.Tasks(c.t.Context(), client.Query{IDPrefix: prefix, PageSize: store.MaxBatch}) {
		if err != nil {
			c.t.Fatal(err)
		}
		if _, twice := all[t.ID]; twice {
			c.t.Errorf("task %s is listed twice", t.ID)
		}
		all[t.ID] = t
	}
	return all
}

// database opens the cluster's database.
func (c *cluster) database() *mongo.Database {
	c.t.Helper()
	m, err := mongo.Connect(options.Client().ApplyURI(c.mongo))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = m.Disconnect(context.Background()) })
	return m.Database(c.env["DB_NAME"])
}

// perNode counts finished tasks by executor.
func perNode(tasks map[string]task.Task) map[string]int {
	per := make(map[string]int)
	for _, t := range tasks {
		per[t.Executor]++
	}
	return per
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
