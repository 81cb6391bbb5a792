// Package bench measures a running server from outside: it submits tasks, waits for their ends, and checks that each
// finished exactly once. It is the engine of `skalds bench`; flags and printing are the command's.
//
// The clocks of the server, of the nodes and of this process are compared, so all of them must run on one machine.
package bench

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/skalds-go/skalds/node/demo"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/task"
)

// The scenarios.
const (
	Throughput = "throughput" // batches, as fast as the server takes them
	Latency    = "latency"    // single tasks at a steady pace
	Recovery   = "recovery"   // a node or the leader is taken away
)

// connections is how many requests are under way at once: enough to keep a server busy, few enough to leave it the
// machine.
const connections = 4

// Options say what is measured. All fields but Payload, Rate, Fault and Progress must be set.
type Options struct {
	Scenario string
	Tasks    int
	Rate     float64       // tasks per second; 0 = as fast as the server takes them
	Payload  int           // bytes of the attachments of each task
	Classes  []string      // submitted in turn
	Batch    int           // tasks in one request
	Timeout  time.Duration // without any progress, after which open tasks count as lost
	Fault    string        // of the scenario Recovery

	// Progress is called with the number of tasks that have ended; nil calls nothing. It must not block.
	Progress func(ended int)
}

// Measure runs the scenario Throughput or Latency and judges it. A task that did not finish is no error but stands in
// the report.
func Measure(ctx context.Context, api *client.Client, o Options) (Report, error) {
	return newBench(api, o).measure(ctx)
}

func newBench(api *client.Client, o Options) *bench {
	return &bench{
		api: api, o: o, prefix: "bench-" + runName() + "-", attachments: padding(o.Payload), runs: make([]run, o.Tasks),
	}
}

// measure carries the scenario out and judges it.
func (b *bench) measure(ctx context.Context) (Report, error) {
	extra, err := b.run(ctx)
	if err != nil {
		return Report{}, err
	}
	report := evaluate(b.o.Scenario, b.runs, extra)
	report.Prefix = b.prefix
	return report, nil
}

// run carries the scenario out and fills in what became of each task. It returns how many runs the nodes counted beyond
// one for each task, or -1 if they are not the same nodes any more.
func (b *bench) run(ctx context.Context) (extra int, err error) {
	before, err := b.idleNodes(ctx)
	if err != nil {
		return 0, err
	}
	if b.o.Scenario == Latency {
		err = b.driveSingles(ctx)
	} else {
		err = b.driveBatches(ctx, before)
	}
	if err != nil {
		return 0, err
	}
	if err := b.readRuns(ctx); err != nil {
		return 0, err
	}
	after, err := b.idleNodes(ctx)
	if errors.Is(err, errBusy) || err == nil && !after.same(before) {
		return -1, nil
	}
	if err != nil {
		return 0, err
	}
	return max(after.since(before)-b.o.Tasks, 0), nil
}

// runName tells the tasks of this run from those of any other.
func runName() string {
	var random [5]byte
	_, _ = rand.Read(random[:]) // it never fails
	return hex.EncodeToString(random[:])
}

// padding makes attachments of about n bytes, none for 0.
func padding(n int) json.RawMessage {
	if n == 0 {
		return nil
	}
	const frame = `{"pad":""}`
	return json.RawMessage(`{"pad":"` + strings.Repeat("x", max(n-len(frame), 0)) + `"}`)
}

// startedOf returns when a task's handler began, in epoch microseconds: as demo.clock reports it, or else to the
// millisecond.
func startedOf(t *task.Task) int64 {
	var clock demo.Clock
	if t.ClassName == demo.ClassClock && json.Unmarshal(t.Result, &clock) == nil && clock.StartedUs != 0 {
		return clock.StartedUs
	}
	return t.StartDateTime * 1000
}
