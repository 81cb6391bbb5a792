package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/skalds-go/skalds/node/demo"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/task"
)

const (
	throughput = "throughput"
	latency    = "latency"

	maxBenchTasks = 1_000_000
	// benchConnections is how many requests are under way at once: enough to keep a server busy, few enough to leave it the machine.
	benchConnections = 4
	maxPayload       = 4 << 20
)

// benchOptions are the flags of `skalds bench`.
type benchOptions struct {
	scenario string
	tasks    int
	rate     float64 // tasks per second; 0 = as fast as it goes
	payload  int     // bytes of the attachments
	classes  []string
	batch    int
	timeout  time.Duration
	fault    string // recovery
}

func newBenchCommand() *cobra.Command {
	var flags apiFlags
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure a running server from outside",
		Long: `Submit tasks to a running server, wait for their ends, and check that each finished exactly once. Exit code 1 if one did not.

Scenarios:
  throughput   20,000 tasks in batches over several connections, as fast as the server takes them
  latency      1,000 single tasks, 100 a second, on an otherwise idle server
  recovery     100 tasks run on a node process that the bench starts, by the KAFKA_... and REDIS_... variables of its environment; the node is
               taken away as --fault says, and the time is measured until all of them run again. The nodes take NODE_HEARTBEAT_INTERVAL,
               NODE_LOST_AFTER and NODE_STOP_MARGIN from the server.
               With --fault leader the bench needs no server: it starts two controllers and two nodes by the KAFKA_..., REDIS_... and MONGO_HOST
               variables of its environment, where Kafka, Redis and MongoDB must run and no other controller; it kills the one that leads
               while 2,000 tasks come in, 200 a second, and measures the longest time after that in which no task starts

What is measured, in milliseconds by this machine's clock (so the nodes must run on this machine):
  submit to start    from just before the request is sent until the handler begins, which demo.clock says to the microsecond
                     (other classes: startDateTime, to the millisecond)
  submit to finish   throughput: until finishDateTime; latency: until the answer of GET /api/tasks/{id}?wait is here
  tasks/s            finished tasks over the time from the first submit to the last finish

doubled is how many runs the nodes counted beyond one for each task, so nothing else may run meanwhile; where a node came, left or
restarted it is counted by the tasks' attempts. A memory store keeps the last 100,000 ended tasks: more cannot be checked there.`,
		Example: `  skalds bench
  skalds bench --scenario latency -o json
  skalds bench --scenario recovery --fault restart
  KAFKA_HOST=kafka REDIS_HOST=redis MONGO_HOST=mongodb://mongo DB_NAME=bench skalds bench --scenario recovery --fault leader
  skalds bench --tasks 5000 --rate 500 --payload 1024 --classes demo.echo,demo.clock`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(cmd, flags.format); err != nil {
				return err
			}
			if o.scenario == recovery && o.fault == faultLeader {
				return runLeader(cmd, flags.format, o)
			}
			return flags.with(func(c *client.Client) error {
				if o.scenario == recovery {
					return runRecovery(cmd, c, flags.format, o)
				}
				return runBench(cmd, c, flags.format, o)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.scenario, "scenario", throughput, "throughput, latency or recovery")
	f.StringVar(&o.fault, "fault", faultKill,
		"recovery: kill (SIGKILL of the node), restart (the same, and started again at once), term (SIGTERM with DRAIN_SOFT=0) or leader (SIGKILL)")
	f.IntVar(&o.tasks, "tasks", 0, "how many tasks (default 20000; latency: 1000; recovery: 100, or 2000 with --fault leader)")
	f.Float64Var(&o.rate, "rate", 0, "tasks per second; 0 is as fast as it goes (latency: 100; recovery with --fault leader: 200)")
	f.IntVar(&o.payload, "payload", 0, "`bytes` of attachments of each task")
	f.StringSliceVar(&o.classes, "classes", []string{demo.ClassClock}, "`classes` to submit, in turn")
	f.IntVar(&o.batch, "batch", 1000, "tasks in one request (throughput)")
	f.DurationVar(&o.timeout, "timeout", time.Minute, "how long without any progress until tasks count as lost")
	flags.add(cmd)
	return cmd
}

// complete fills in what depends on the scenario, and checks.
func (o *benchOptions) complete(cmd *cobra.Command, f format) error {
	tasks, rate := 20_000, 0.0
	switch o.scenario {
	case throughput:
	case latency:
		tasks, rate, o.batch = 1000, 100, 1
	case recovery:
		if tasks = recoveryTasks; o.fault == faultLeader {
			tasks, rate = leaderTasks, leaderRate
		}
	default:
		return usage(cmd, "--scenario is %q, want %s, %s or %s", o.scenario, throughput, latency, recovery)
	}
	if !cmd.Flags().Changed("tasks") {
		o.tasks = tasks
	}
	if !cmd.Flags().Changed("rate") {
		o.rate = rate
	}
	switch {
	case f == asName:
		return usage(cmd, "--output is %q, want %s or %s", f, asTable, asJSON)
	case o.tasks < 1 || o.tasks > maxBenchTasks:
		return usage(cmd, "--tasks is %d, want 1 to %d", o.tasks, maxBenchTasks)
	case o.rate < 0 || o.rate > maxBenchTasks:
		return usage(cmd, "--rate is %v, want 0 to %d", o.rate, maxBenchTasks)
	case o.payload < 0 || o.payload > maxPayload:
		return usage(cmd, "--payload is %d, want 0 to %d", o.payload, maxPayload)
	case o.batch < 1 || o.batch > maxPage:
		return usage(cmd, "--batch is %d, want 1 to %d", o.batch, maxPage)
	case o.timeout <= 0:
		return usage(cmd, "--timeout is %s, want more than 0", o.timeout)
	case o.scenario == recovery && o.fault != faultLeader && o.tasks > maxPage:
		return usage(cmd, "--tasks is %d, want 1 to %d", o.tasks, maxPage)
	case o.fault != faultKill && o.fault != faultRestart && o.fault != faultTerm && o.fault != faultLeader:
		return usage(cmd, "--fault is %q, want %s, %s, %s or %s", o.fault, faultKill, faultRestart, faultTerm, faultLeader)
	case o.scenario == recovery && o.fault == faultLeader && cmd.Flags().Changed("server"):
		return usage(cmd, "--fault %s takes no --server: the bench starts the controllers", faultLeader)
	case len(o.classes) == 0 || strings.Join(o.classes, "") == "":
		return usage(cmd, "--classes names none")
	}
	return nil
}

func runBench(cmd *cobra.Command, c *client.Client, f format, o benchOptions) error {
	b := newBench(cmd, c, o)
	report, err := b.measure(cmd.Context())
	if err != nil {
		return err
	}
	if f == asJSON {
		err = printJSON(cmd.OutOrStdout(), report)
	} else {
		err = report.print(cmd.OutOrStdout())
	}
	if err == nil {
		err = report.problem(b.prefix)
	}
	return err
}

func newBench(cmd *cobra.Command, c *client.Client, o benchOptions) *bench {
	return &bench{
		api: c, o: o, prefix: "bench-" + runName() + "-", attachments: padding(o.payload), runs: make([]benchRun, o.tasks),
		progress: newProgress(cmd.ErrOrStderr(), o.tasks),
	}
}

// measure carries the scenario out and judges it.
func (b *bench) measure(ctx context.Context) (benchReport, error) {
	extra, err := b.run(ctx)
	b.progress.end()
	if err != nil {
		return benchReport{}, err
	}
	return evaluate(b.o.scenario, b.runs, extra), nil
}

// run carries the scenario out and fills in what became of each task. It gives how many runs the nodes counted beyond one for each
// task, or -1 if they are not the same any more.
func (b *bench) run(ctx context.Context) (extra int, err error) {
	before, err := b.settledNodes(ctx)
	if err != nil {
		return 0, err
	}
	if b.o.scenario == latency {
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
	after, err := b.settledNodes(ctx)
	if errors.Is(err, errUnsettled) || err == nil && !after.same(before) {
		return -1, nil
	}
	if err != nil {
		return 0, err
	}
	return max(after.since(before)-b.o.tasks, 0), nil
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

// startedOf is when a task's handler began, in epoch microseconds: as demo.clock says, or else to the millisecond.
func startedOf(t *task.Task) int64 {
	var clock demo.Clock
	if t.ClassName == demo.ClassClock && json.Unmarshal(t.Result, &clock) == nil && clock.StartedUs != 0 {
		return clock.StartedUs
	}
	return t.StartDateTime * 1000
}
