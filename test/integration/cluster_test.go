// Package integration_test runs the built binary as separate processes on a real Kafka broker, a real redis-server and
// a MongoDB-wire server.
package integration_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/skalds-go/skalds/pkg/task"
	"github.com/skalds-go/skalds/test/cluster"
	"github.com/skalds-go/skalds/test/process"
)

func TestMain(m *testing.M) { os.Exit(process.Run(m)) }

// received is how many claims a node has taken since it started.
func received(c *cluster.Cluster, id string) int64 {
	c.T.Helper()
	n, err := c.Client.Node(c.T.Context(), id)
	if err != nil {
		c.T.Fatal(err)
	}
	return n.Received
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
