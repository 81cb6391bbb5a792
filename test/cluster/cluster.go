// Package cluster runs the built binary as separate processes on a real Kafka broker, a real redis-server and a
// MongoDB-wire server, and asks it what tests want to know.
//
// Every wait is bounded, and fails the test with what was seen last.
package cluster

import (
	"context"
	"fmt"
	"maps"
	"net"
	"strconv"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
	"github.com/skalds-go/skalds/test/process"
	"github.com/skalds-go/skalds/test/services"
)

// Program is the package of the binary.
const Program = "cmd/skalds"

// startLimit is how long a process may take until it is ready.
const startLimit = time.Minute

// Cluster is skalds processes on services of their own. Its methods are for the test's goroutine.
type Cluster struct {
	T      *testing.T
	Env    map[string]string // of every process
	Kafka  *services.Service
	Redis  *services.Service
	Mongo  string         // URI
	Client *client.Client // of the first controller
}

// New starts the services; no skalds process yet. The broker and Redis are the test's own, since the names of topics
// and keys are fixed.
func New(t *testing.T, kafkaVersion string) *Cluster {
	t.Helper()
	c := &Cluster{T: t, Kafka: services.StartKafka(t, kafkaVersion), Redis: services.StartRedis(t), Env: map[string]string{}}
	c.Mongo = services.Mongo(t)
	HostPort(t, c.Env, "KAFKA", c.Kafka.Addr())
	HostPort(t, c.Env, "REDIS", c.Redis.Addr())
	c.Env["MONGO_HOST"] = c.Mongo
	c.Env["DB_NAME"] = fmt.Sprintf("it-%d", time.Now().UnixNano())
	return c
}

// HostPort sets NAME_HOST and NAME_PORT.
func HostPort(t testing.TB, env map[string]string, name, addr string) {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	env[name+"_HOST"], env[name+"_PORT"] = host, port
}

// With is the cluster's environment and more; what comes later wins.
func (c *Cluster) With(more ...map[string]string) map[string]string {
	env := maps.Clone(c.Env)
	for _, m := range more {
		maps.Copy(env, m)
	}
	return env
}

// ClientOf makes a client of the controller on a port.
func (c *Cluster) ClientOf(port int) *client.Client {
	c.T.Helper()
	api, err := client.New(client.Config{Server: fmt.Sprintf("http://127.0.0.1:%d", port)})
	if err != nil {
		c.T.Fatal(err)
	}
	c.T.Cleanup(api.Close)
	return api
}

// Controller starts a controller and waits until it is ready. The first one is the one that the cluster's client talks
// to.
func (c *Cluster) Controller(more map[string]string) *process.Process {
	c.T.Helper()
	port := process.FreePort(c.T)
	env := c.With(map[string]string{"SYSTEM_CONTROLLER_PORT": strconv.Itoa(port)}, more)
	p := process.Start(c.T, "controller", process.Build(c.T, Program), env, "controller")
	api := c.ClientOf(port)
	c.Ready(api)
	if c.Client == nil {
		c.Client = api
	}
	return p
}

// Ready waits until a controller misses nothing.
func (c *Cluster) Ready(api *client.Client) {
	c.T.Helper()
	c.Eventually(startLimit, "the controller is ready", func(ctx context.Context) (bool, string) {
		missing, err := api.Ready(ctx)
		return err == nil && len(missing) == 0, fmt.Sprint(missing, err)
	})
}

// Node starts a node that runs the demo classes, and waits until it is registered.
func (c *Cluster) Node(id string, more map[string]string) *process.Process {
	c.T.Helper()
	p := process.Start(c.T, id, process.Build(c.T, Program), c.With(map[string]string{"SKALD_ID": id}, more), "node")
	c.Eventually(startLimit, "node "+id+" is registered", func(ctx context.Context) (bool, string) {
		n, err := c.Client.Node(ctx, id)
		return err == nil && n.State == "online", fmt.Sprint(err)
	})
	return p
}

// Eventually asks until the answer is yes; else the answer says why not.
func (c *Cluster) Eventually(limit time.Duration, what string, ask func(ctx context.Context) (bool, string)) {
	c.T.Helper()
	ctx, cancel := context.WithTimeout(c.T.Context(), limit)
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
			c.T.Fatalf("not within %s: %s; last: %s", limit, what, last)
		}
	}
}

// Submit sends n tasks in batches and gives their ids.
func (c *Cluster) Submit(n int, prefix, class string, attachments any) []string {
	c.T.Helper()
	ids := make([]string, 0, n)
	for from := 0; from < n; from += store.MaxBatch {
		var batch []client.NewTask
		for i := from; i < min(n, from+store.MaxBatch); i++ {
			batch = append(batch, client.NewTask{ID: fmt.Sprintf("%s-%06d", prefix, i), ClassName: class, Attachments: attachments})
		}
		items, err := c.Client.SubmitBatch(c.T.Context(), batch)
		if err != nil {
			c.T.Fatal(err)
		}
		for _, it := range items {
			if it.Status != 201 {
				c.T.Fatalf("submit %s: %d %s", it.ID, it.Status, it.Error)
			}
			ids = append(ids, it.ID)
		}
	}
	return ids
}

// Total counts the tasks of a prefix with one of these statuses.
func (c *Cluster) Total(ctx context.Context, prefix string, status ...task.Status) (int64, error) {
	page, err := c.Client.List(ctx, client.Query{IDPrefix: prefix, Status: status, PageSize: 1})
	if err != nil || page.Total == nil {
		return -1, err
	}
	return *page.Total, nil
}

// Finished waits until all tasks of a prefix are finished.
func (c *Cluster) Finished(limit time.Duration, prefix string, n int) {
	c.T.Helper()
	c.Eventually(limit, fmt.Sprintf("all %d tasks %s are finished", n, prefix), func(ctx context.Context) (bool, string) {
		got, err := c.Total(ctx, prefix, task.Finished)
		return got == int64(n), fmt.Sprint(got, " finished ", err)
	})
}

// Tasks reads all tasks of a prefix.
func (c *Cluster) Tasks(prefix string) map[string]task.Task {
	c.T.Helper()
	all := make(map[string]task.Task)
	for t, err := range c.Client.Tasks(c.T.Context(), client.Query{IDPrefix: prefix, PageSize: store.MaxBatch}) {
		if err != nil {
			c.T.Fatal(err)
		}
		if _, twice := all[t.ID]; twice {
			c.T.Errorf("task %s is listed twice", t.ID)
		}
		all[t.ID] = t
	}
	return all
}

// Database opens the cluster's database.
func (c *Cluster) Database() *mongo.Database {
	c.T.Helper()
	m, err := mongo.Connect(options.Client().ApplyURI(c.Mongo))
	if err != nil {
		c.T.Fatal(err)
	}
	c.T.Cleanup(func() { _ = m.Disconnect(context.Background()) })
	return m.Database(c.Env["DB_NAME"])
}
