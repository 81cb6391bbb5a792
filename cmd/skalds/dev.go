package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/skalds-go/skalds/controller"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/config"
)

// devOptions are the flags of `skalds dev`.
type devOptions struct {
	kafkaPort, redisPort, httpPort int
	nodes                          int
	data                           string // directory; empty = in memory
	config                         config.Dev
}

const (
	devKafkaPort = 9092
	devRedisPort = 6379
	devHTTPPort  = 8000
	maxDevNodes  = 100
)

func newDev() *cobra.Command {
	var o devOptions
	var strategy string
	var capacity int
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a whole cluster in this process, for a first try and for development",
		Long: `Run a Kafka broker, a Redis server, a controller with its API, and nodes that know the demo classes, all in this process and
reachable from this machine only. Everything is in memory and gone when it ends; with --data, tasks and events are kept in a
directory, and a new start goes on where the last one ended, however it ended (a power cut may cost the last seconds).

Broker and server speak the real protocols: a node of another process joins with KAFKA_HOST/KAFKA_PORT and REDIS_HOST/REDIS_PORT.

Controller and nodes take the other variables of .env.example that are for them, such as NODE_HEARTBEAT_INTERVAL or LEADER_LEASE.

It prints what it started and what to try next, and nothing else below LOG_LEVEL=warn. Ctrl-C lets what runs end for a few
seconds and stops; a second Ctrl-C stops at once. A port that is taken ends it with exit code 2.`,
		Example: `  skalds dev
  skalds dev --nodes 0                                   only your own nodes
  skalds dev --data ./skalds-data                        keep everything in a directory
  skalds dev --kafka-port 0 --redis-port 0 --http-port 0 on free ports`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.config, err = config.LoadDev(); err != nil {
				return err
			}
			if strategy != "" {
				o.config.Controller.DispatcherStrategy = strategy
			}
			var bad *config.Error
			if err := controller.Check(&o.config.Controller); errors.As(err, &bad) && strategy != "" {
				return usage(cmd, "--strategy is %q, want %s", strategy, bad.Problems[0].Want)
			} else if err != nil {
				return err
			}
			if cmd.Flags().Changed("capacity") {
				o.config.Node.SetCapacity(capacity)
			}
			if err := o.check(cmd); err != nil {
				return err
			}
			return runDev(cmd.Context(), cmd, o, newLogger(cmd.ErrOrStderr(), o.config.Node.Level.Slog()))
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.kafkaPort, "kafka-port", devKafkaPort, "`port` of the Kafka broker; 0 takes a free one")
	f.IntVar(&o.redisPort, "redis-port", devRedisPort, "`port` of the Redis server; 0 takes a free one")
	f.IntVar(&o.httpPort, "http-port", devHTTPPort, "`port` of the API; 0 takes a free one")
	f.StringVar(&o.data, "data", "", "`directory` in which tasks and events are kept; it is made where there is none")
	f.IntVar(&o.nodes, "nodes", 2, "how many nodes to run; 0 for none")
	f.IntVar(&capacity, "capacity", 0, "how many tasks each node runs at once (env NODE_CAPACITY; default 16)")
	f.StringVar(&strategy, "strategy", "", "how a node is chosen for a task, as 'skalds strategy set' takes it (env DISPATCHER_STRATEGY; default LEAST_TASKS)")
	return cmd
}

func (o *devOptions) check(cmd *cobra.Command) error {
	for _, limit := range []struct {
		flag               string
		value, least, most int
	}{
		{"--kafka-port", o.kafkaPort, 0, 65535},
		{"--redis-port", o.redisPort, 0, 65535},
		{"--http-port", o.httpPort, 0, 65535},
		{"--nodes", o.nodes, 0, maxDevNodes},
		{"--capacity", o.config.Node.Capacity, 1, 100_000},
	} {
		if limit.value < limit.least || limit.value > limit.most {
			return usage(cmd, "%s is %d, want a number from %d to %d", limit.flag, limit.value, limit.least, limit.most)
		}
	}
	return nil
}

// readyPause is the time between two looks whether the cluster is ready.
const readyPause = 20 * time.Millisecond

// awaitReady returns when the API is ready, the controller leads, and all nodes can get work; or when ctx ends.
func awaitReady(ctx context.Context, server string, nodes int) error {
	c, err := client.New(client.Config{Server: server})
	if err != nil {
		return err
	}
	defer c.Close()
	tick := time.NewTicker(readyPause)
	defer tick.Stop()
	for {
		if missing, err := c.Ready(ctx); err == nil && len(missing) == 0 {
			if d, err := c.Dispatcher(ctx); err == nil && d.IsLeader && d.Nodes >= nodes {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func runDev(ctx context.Context, cmd *cobra.Command, o devOptions, log logger) error {
	defer runtime.KeepAlive(garbageFloor())
	c, err := startCluster(ctx, cmd, o, log)
	if err != nil {
		return err
	}
	if err := awaitReady(c.life, c.server(), o.nodes); err == nil { //nolint:contextcheck // its life ends with ctx
		if err := printf(cmd.OutOrStdout(), "%s", banner(command(executable(), os.Args[0]), c.addresses(), c.ids, o.config.Node.Capacity)); err != nil {
			return errors.Join(err, c.stop())
		}
	} else if c.life.Err() == nil {
		return errors.Join(err, c.stop())
	}
	<-c.life.Done()
	if err := c.stop(); err != nil {
		return fmt.Errorf("dev: %w", err)
	}
	return nil
}

// executable is the program's file, "" if the system does not say.
func executable() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	return path
}
