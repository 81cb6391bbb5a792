package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/skalds-go/skalds/cmd/skalds/internal/bench"
	"github.com/skalds-go/skalds/node/demo"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/config"
)

const (
	maxBenchTasks = 1_000_000
	maxPayload    = 4 << 20
)

func newBenchCommand() *cobra.Command {
	var flags apiFlags
	var o bench.Options
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
			if err := completeBench(cmd, &o, flags.format); err != nil {
				return err
			}
			bar := newProgress(cmd.ErrOrStderr(), o.Tasks)
			o.Progress = bar.show
			if o.Scenario == bench.Recovery && o.Fault == bench.FaultLeader {
				return benchLeader(cmd, &flags, o, bar)
			}
			return flags.with(func(c *client.Client) error {
				if o.Scenario == bench.Recovery {
					r, err := bench.Recover(cmd.Context(), c, o)
					if err != nil {
						return err
					}
					return flags.report(&r, func(p *pairs) { addRecovery(p, &r) })
				}
				r, err := bench.Measure(cmd.Context(), c, o)
				bar.end()
				if err != nil {
					return err
				}
				if err := flags.report(&r, func(p *pairs) { addReport(p, &r) }); err != nil {
					return err
				}
				return r.Problem()
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Scenario, "scenario", bench.Throughput, "throughput, latency or recovery")
	f.StringVar(&o.Fault, "fault", bench.FaultKill,
		"recovery: kill (SIGKILL of the node), restart (the same, and started again at once), term (SIGTERM with DRAIN_SOFT=0) or leader (SIGKILL)")
	f.IntVar(&o.Tasks, "tasks", 0, "how many tasks (default 20000; latency: 1000; recovery: 100, or 2000 with --fault leader)")
	f.Float64Var(&o.Rate, "rate", 0, "tasks per second; 0 is as fast as it goes (latency: 100; recovery with --fault leader: 200)")
	f.IntVar(&o.Payload, "payload", 0, "`bytes` of attachments of each task")
	f.StringSliceVar(&o.Classes, "classes", []string{demo.ClassClock}, "`classes` to submit, in turn")
	f.IntVar(&o.Batch, "batch", 1000, "tasks in one request (throughput)")
	f.DurationVar(&o.Timeout, "timeout", time.Minute, "how long without any progress until tasks count as lost")
	flags.add(cmd)
	return cmd
}

// completeBench fills in what depends on the scenario, and checks the command line.
func completeBench(cmd *cobra.Command, o *bench.Options, f format) error {
	tasks, rate := 20_000, 0.0
	leader := o.Scenario == bench.Recovery && o.Fault == bench.FaultLeader
	switch {
	case o.Scenario == bench.Throughput:
	case o.Scenario == bench.Latency:
		tasks, rate, o.Batch = 1000, 100, 1
	case leader:
		tasks, rate = 2000, 200
	case o.Scenario == bench.Recovery:
		tasks = 100
	default:
		return usage(cmd, "--scenario is %q, want %s, %s or %s", o.Scenario, bench.Throughput, bench.Latency, bench.Recovery)
	}
	if !cmd.Flags().Changed("tasks") {
		o.Tasks = tasks
	}
	if !cmd.Flags().Changed("rate") {
		o.Rate = rate
	}
	most := maxBenchTasks
	if o.Scenario == bench.Recovery && !leader {
		most = maxPage
	}
	switch {
	case f == asName:
		return usage(cmd, "--output is %q, want %s or %s", f, asTable, asJSON)
	case o.Tasks < 1 || o.Tasks > most:
		return usage(cmd, "--tasks is %d, want 1 to %d", o.Tasks, most)
	case o.Rate < 0 || o.Rate > maxBenchTasks:
		return usage(cmd, "--rate is %v, want 0 to %d", o.Rate, maxBenchTasks)
	case o.Payload < 0 || o.Payload > maxPayload:
		return usage(cmd, "--payload is %d, want 0 to %d", o.Payload, maxPayload)
	case o.Batch < 1 || o.Batch > maxPage:
		return usage(cmd, "--batch is %d, want 1 to %d", o.Batch, maxPage)
	case o.Timeout <= 0:
		return usage(cmd, "--timeout is %s, want more than 0", o.Timeout)
	case !slices.Contains(bench.Faults(), o.Fault):
		return usage(cmd, "--fault is %q, want one of %s", o.Fault, strings.Join(bench.Faults(), ", "))
	case leader && cmd.Flags().Changed("server"):
		return usage(cmd, "--fault %s takes no --server: the bench starts the controllers", bench.FaultLeader)
	case len(o.Classes) == 0 || strings.Join(o.Classes, "") == "":
		return usage(cmd, "--classes names none")
	}
	return nil
}

func benchLeader(cmd *cobra.Command, flags *apiFlags, o bench.Options, bar *progress) error {
	cfg, err := config.LoadController()
	if err != nil {
		return err
	}
	if cfg.Store != config.StoreMongo {
		return usage(cmd, "--fault %s: STORE is %q; two controllers can share MongoDB only", bench.FaultLeader, cfg.Store)
	}
	r, err := bench.KillLeader(cmd.Context(), string(cfg.APIToken), o)
	bar.end()
	if err != nil {
		return err
	}
	err = flags.report(&r, func(p *pairs) {
		addFault(p, r.Fault, r.Timing)
		p.add("Longest pause", strconv.FormatFloat(r.Pause, 'f', -1, 64)+" ms without a start")
		addReport(p, &r.Report)
	})
	if err != nil {
		return err
	}
	return r.Problem()
}

// report prints a report of the bench, as JSON or as the pairs that add adds.
func (f *apiFlags) report(r any, add func(*pairs)) error {
	if f.format == asJSON {
		return printJSON(f.cmd.OutOrStdout(), r)
	}
	p := newPairs(f.cmd.OutOrStdout())
	add(p)
	return p.flush()
}

func addReport(p *pairs, r *bench.Report) {
	p.add("Tasks", thousands(int64(r.Tasks))+" in "+strconv.FormatFloat(r.Seconds, 'f', 3, 64)+" s")
	p.add("Throughput", thousands(int64(math.Round(r.TasksPerSecond)))+" tasks/s")
	p.add("Submit to start", r.SubmitToStart.String())
	p.add("Submit to finish", r.SubmitToFinish.String())
	p.add("Finished once", thousands(int64(r.FinishedOnce)))
	p.add("Failed", thousands(int64(r.Failed)))
	p.add("Lost", thousands(int64(r.Lost)))
	p.add("Doubled", thousands(int64(r.Doubled)))
}

func addRecovery(p *pairs, r *bench.RecoveryReport) {
	addFault(p, r.Fault, r.Timing)
	p.add("Tasks", thousands(int64(r.Tasks)))
	p.add("Run again after", r.Again.String())
}

// addFault adds what was taken away, and the settings of the server that decide how long it takes to get over it.
func addFault(p *pairs, fault string, t client.Timing) {
	p.add("Fault", fault)
	text := func(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }
	p.add("Settings", fmt.Sprintf("heartbeat %s, lost after %s, stop margin %s, leader lease %s",
		text(t.HeartbeatIntervalMs), text(t.LostAfterMs), text(t.StopMarginMs), text(t.LeaderLeaseMs)))
}
