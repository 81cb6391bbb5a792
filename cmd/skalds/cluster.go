package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/skalds-go/skalds/controller"
	"github.com/skalds-go/skalds/controller/topics"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/node/demo"
	"github.com/skalds-go/skalds/pkg/config"
	"github.com/skalds-go/skalds/pkg/embedded"
	"github.com/skalds-go/skalds/pkg/lockfile"
)

const (
	loopback = "127.0.0.1"
	// devPartitions is enough for the nodes of one machine: about one for ten nodes is the rule.
	devPartitions = 4
)

// cluster is all that `skalds dev` runs. Its parts talk to each other over the real protocols, as those of a real one
// do.
type cluster struct {
	lock  *lockfile.Lock // of the data directory; nil without one
	kafka *embedded.Kafka
	redis *embedded.Redis
	api   net.Addr
	ids   []string // of the nodes

	life context.Context // ends when the cluster is told to stop, or a part ended that was not told to
	end  context.CancelFunc

	stopNodes, stopController context.CancelFunc
	nodes, controller         sync.WaitGroup
	closeDeps                 func()

	mu   sync.Mutex
	errs []error // of parts that ended
}

// startCluster starts the parts. They are ready some time later.
func startCluster(ctx context.Context, cmd *cobra.Command, o devOptions, log logger) (_ *cluster, err error) {
	c := &cluster{closeDeps: func() {}, stopNodes: func() {}, stopController: func() {}}
	c.life, c.end = context.WithCancel(ctx)
	ctx = context.WithoutCancel(ctx) // each part is told to stop in its turn
	defer func() {
		if err != nil {
			err = errors.Join(err, c.stop())
		}
	}()
	if err := c.takeData(cmd, o.data); err != nil {
		return nil, err
	}
	if c.kafka, err = embedded.StartKafka(embedded.KafkaConfig{Port: o.kafkaPort, DataDir: inData(o.data, "kafka")}); err != nil {
		return nil, taken(cmd, "--kafka-port", o.kafkaPort, err)
	}
	if c.redis, err = embedded.StartRedis(embedded.RedisConfig{Port: o.redisPort}); err != nil {
		return nil, taken(cmd, "--redis-port", o.redisPort, err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(loopback, strconv.Itoa(o.httpPort)))
	if err != nil {
		return nil, taken(cmd, "--http-port", o.httpPort, err)
	}
	c.api = listener.Addr()
	if err := c.startController(ctx, listener, o, log); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	if err := c.startNodes(ctx, o, log); err != nil {
		return nil, err
	}
	return c, nil
}

// takeData makes the data directory, and keeps a second cluster out of it.
func (c *cluster) takeData(cmd *cobra.Command, dir string) (err error) {
	if dir == "" {
		return nil
	}
	if err = os.MkdirAll(dir, 0o700); err == nil {
		c.lock, err = lockfile.Acquire(inData(dir, "lock"))
	}
	if err != nil {
		return usage(cmd, "--data: %v: end that process or give another directory", err)
	}
	return nil
}

// inData is the path of something in the data directory; empty without one.
func inData(dir, name string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, name)
}

// taken says which flag names the port that another program has.
func taken(cmd *cobra.Command, flag string, port int, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return usage(cmd, "%s: port %d is taken by another program; give another one, or 0 for a free one", flag, port)
	}
	return fmt.Errorf("%s: %w", flag, err)
}

func (c *cluster) startController(ctx context.Context, listener net.Listener, o devOptions, log logger) error {
	cfg := o.config.Controller
	c.reach(&cfg.Kafka, &cfg.Redis)
	cfg.Port = portOf(c.api.String())
	cfg.Store, cfg.TopicPartitions = config.StoreMemory, devPartitions
	if o.data != "" {
		cfg.Store = config.StoreSQLite
		cfg.SQLite = config.SQLite{Path: inData(o.data, "skalds.db"), Sync: config.SQLiteSyncNormal}
	}
	deps, closeDeps, err := controllerDeps(ctx, &cfg, log)
	if err != nil {
		return err
	}
	c.closeDeps = closeDeps
	deps.TopicConfig = c.kafka.TopicConfig()
	if err := makeTopics(ctx, deps.Bus, deps.TopicConfig); err != nil {
		return err
	}
	ctx, c.stopController = context.WithCancel(ctx)
	c.controller.Go(func() { c.ended(ctx, controller.New(cfg, deps).Run(ctx, listener)) })
	return nil
}

// makeTopics makes the topics before anybody looks for them, so that nobody has to wait for them and say so.
func makeTopics(ctx context.Context, bus controller.Bus, settings map[string]string) error {
	if err := bus.Ensure(ctx, topics.Specs(devPartitions, 1, settings)); err != nil {
		return fmt.Errorf("make the topics on the embedded broker: %w", err)
	}
	return nil
}

func (c *cluster) startNodes(ctx context.Context, o devOptions, log logger) error {
	ctx, c.stopNodes = context.WithCancel(ctx)
	for i := range o.nodes {
		cfg := o.config.Node
		c.reach(&cfg.Kafka, &cfg.Redis)
		cfg.ID = "node-" + strconv.Itoa(i+1)
		if runtime.GOOS == "linux" { // elsewhere there is no proof, as each node would say
			cfg.StateDir = inData(o.data, "nodes")
		}
		n, err := node.New(node.Config{Node: cfg}, node.WithLogger(log), node.WithVersion(version))
		if err != nil {
			return fmt.Errorf("%s: %w", cfg.ID, err)
		}
		demo.Register(n)
		c.ids = append(c.ids, cfg.ID)
		c.nodes.Go(func() { c.ended(ctx, n.Run(ctx)) })
	}
	return nil
}

// reach points a configuration at the servers of this process.
func (c *cluster) reach(k *config.Kafka, r *config.Redis) {
	k.Host, k.Port = loopback, portOf(c.kafka.Addr())
	r.Host, r.Port = loopback, portOf(c.redis.Addr())
}

// ended notes how a part ended; one that was not told to ends the cluster.
func (c *cluster) ended(told context.Context, err error) {
	if err == nil && told.Err() == nil {
		err = errors.New("a part of the cluster ended by itself")
	}
	if err == nil {
		return
	}
	c.mu.Lock()
	c.errs = append(c.errs, err)
	c.mu.Unlock()
	c.end()
}

// stop ends the parts in their turn: the nodes while the controller still takes their reports, the servers last.
func (c *cluster) stop() error {
	c.stopNodes()
	c.nodes.Wait()
	c.stopController()
	c.controller.Wait()
	c.closeDeps()
	if c.redis != nil {
		c.redis.Close()
	}
	if c.kafka != nil {
		c.kafka.Close()
	}
	if c.lock != nil {
		if err := c.lock.Release(); err != nil {
			c.errs = append(c.errs, err) // all parts have ended
		}
	}
	c.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.errs...)
}

func (c *cluster) addresses() addresses {
	return addresses{api: c.api.String(), kafka: c.kafka.Addr(), redis: c.redis.Addr()}
}

func (c *cluster) server() string { return "http://" + c.api.String() }

// portOf is the port of an address that this process listens on.
func portOf(addr string) int {
	_, text, _ := net.SplitHostPort(addr)
	port, _ := strconv.Atoi(text)
	return port
}
