// Package controller composes a controller process: the API, and, while this process leads, ingest, monitor and
// dispatcher. It is nothing but wiring: what each part does stands in its own package.
//
// What runs, by SYSTEM_CONTROLLER_MODE:
//
//	CONTROLLER   the API
//	MONITOR      the API, and as leader ingest and monitor
//	DISPATCHER   the API, and as leader ingest, monitor and dispatcher
//
// One leader does the work of all; a controller that dispatches takes over from one that only monitors.
package controller

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/skalds-go/skalds/controller/api"
	"github.com/skalds-go/skalds/controller/backend"
	"github.com/skalds-go/skalds/controller/dispatcher"
	"github.com/skalds-go/skalds/controller/election"
	"github.com/skalds-go/skalds/controller/fairqueue"
	"github.com/skalds-go/skalds/controller/ingest"
	"github.com/skalds-go/skalds/controller/notice"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/controller/term"
	"github.com/skalds-go/skalds/controller/topics"
	"github.com/skalds-go/skalds/controller/transport"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/events/quarantine"
	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/config"
	"github.com/skalds-go/skalds/pkg/loop"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// Bus is Kafka as a controller uses it.
type Bus interface {
	Publish(ctx context.Context, topic string, partition int, records []kafka.Record) error
	Partitions(ctx context.Context, topic string) (int, error)
	Offsets(ctx context.Context, topic string, partitions []int) (map[int]kafka.Range, error)
	Ensure(ctx context.Context, topics []kafka.TopicSpec) error
	Ping(ctx context.Context) error
}

// Deps is what a controller stands on. It closes none of it.
type Deps struct {
	Store    store.Store
	Registry registry.Registry
	Bus      Bus
	// Open makes a reader of one partition of the bus.
	Open func(topic string, partition int, from kafka.Position) ingest.Reader
	// TopicConfig holds further settings of the topics that are created.
	TopicConfig map[string]string
	// Peers carries what this controller asks the one that leads; nil is [http.DefaultTransport].
	Peers   http.RoundTripper
	Clock   clock.Clock
	Log     *slog.Logger
	Version string
}

// Controller is one controller process.
type Controller struct {
	cfg     config.Controller
	deps    Deps
	id      string
	elector *election.Elector
	terms   *term.Holder
	notices *notice.Notifier
	topics  *topics.Topics
	runner  loop.Runner
	metrics *prometheus.Registry
}

// New makes a controller. The configuration must be valid.
func New(cfg config.Controller, deps Deps) *Controller {
	c := &Controller{cfg: cfg, deps: deps, id: uuid.NewString(), metrics: prometheus.NewRegistry(),
		runner:  loop.NewRunner(deps.Clock, deps.Log),
		notices: notice.New(deps.Bus, deps.Clock, cfg.EventMaxBytes),
		topics:  topics.New(deps.Bus, topics.Specs(cfg.TopicPartitions, cfg.ReplicationFactor, deps.TopicConfig), deps.Log)}
	// Goroutines and memory of the process show a leak long before it hurts.
	c.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), c.stuckTasks())
	c.terms = term.NewHolder(c.termConfig(), term.Deps{
		Store: deps.Store, Registry: deps.Registry, Bus: deps.Bus, Open: deps.Open, Clock: deps.Clock, Runner: c.runner, Log: deps.Log,
		Transport:  transport.NewKafka(deps.Bus, c.id, cfg.EventMaxBytes, deps.Clock.Now),
		Quarantine: quarantine.New(deps.Bus, deps.Clock, deps.Log),
		Dispatched: dispatcher.NewMetrics(c.metrics), Ingested: ingest.NewMetrics(c.metrics),
		Seed: rand.Uint64, Jitter: rand.Float64,
	}, c.notices)
	ec := election.Config{ID: c.id, Address: advertised(cfg), Mode: string(cfg.Mode), Lease: cfg.LeaderLease}
	if cfg.Mode == config.ModeDispatcher {
		ec.Over = []string{string(config.ModeMonitor)}
	}
	c.elector = election.New(ec, deps.Store, deps.Clock)
	return c
}

// termConfig returns what the terms of this controller are told.
func (c *Controller) termConfig() term.Config {
	cfg := &c.cfg
	return term.Config{
		Controller: c.id, Dispatch: cfg.Mode == config.ModeDispatcher,
		// A node's clock may run 10 % slow against ours: its trust ends that much later.
		Heartbeat: cfg.HeartbeatInterval, LostAfter: cfg.LostAfter, Drift: cfg.LostAfter / 10,
		ResendAfter: cfg.AssignResendAfter, CompareInterval: cfg.MonitorTaskInterval, MonitorInterval: cfg.MonitorSkaldInterval,
		DispatchInterval: cfg.DispatcherInterval, CancelGrace: cfg.CancelGrace, Retention: cfg.TaskRetention,
		Strategy: c.configured(), Order: fairqueue.Config{Mode: fairqueue.Mode(cfg.DispatcherPriorityMode), Aging: cfg.PriorityAging},
		MaxPending: cfg.DispatcherMaxPending, TaskMaxBytes: cfg.TaskMaxBytes,
		Policy: task.Policy{MaxAttempts: cfg.MaxAttempts, MaxCrashes: cfg.MaxCrashes, Backoff: task.Backoff{
			BaseMs: cfg.BackoffBase.Milliseconds(), Factor: float64(cfg.BackoffFactor), MaxMs: cfg.BackoffMax.Milliseconds(),
		}},
	}
}

// configured is the strategy that holds as long as nobody sets another.
func (c *Controller) configured() placement.Strategy {
	s, _ := placement.ParseStrategy(c.cfg.DispatcherStrategy)
	return s
}

// advertised is where other controllers reach this one's API: where it listens, or, if that is everywhere, by the
// machine's name.
func advertised(cfg config.Controller) string {
	if ip := net.ParseIP(cfg.Host); ip == nil || !ip.IsUnspecified() {
		return cfg.ListenAddr()
	}
	name, err := os.Hostname()
	if err != nil {
		return cfg.ListenAddr()
	}
	return net.JoinHostPort(name, strconv.Itoa(cfg.Port))
}

// apiGrace is how long requests may take after the stop began.
const apiGrace = 5 * time.Second

// Run serves and, when it is its turn, leads, until the context ends. It closes the listener. It returns nil after a
// clean stop.
func (c *Controller) Run(ctx context.Context, listener net.Listener) error {
	asked := backend.New(backend.Deps{
		ID: c.id, Config: c.cfg, Store: c.deps.Store, Registry: c.deps.Registry, Bus: c.deps.Bus, Topics: c.topics.Err, Leading: c.leading,
		DrainsStored: c.terms.FollowDrains, Clock: c.deps.Clock, Peers: c.deps.Peers,
	})
	handler := api.New(api.Deps{
		Tasks: c.deps.Store, StoreName: backend.StoreName(c.cfg.Store), Nodes: c.deps.Registry, Backend: asked, Wake: c.terms.Stored,
		Updated: c.terms.Updated, Now: c.deps.Clock.Now, TaskMaxBytes: c.cfg.TaskMaxBytes,
		MaxBacklog: c.cfg.MaxBacklog, Token: string(c.cfg.APIToken), Version: c.deps.Version,
		Log: c.deps.Log, Metrics: c.metrics,
	})
	loops := c.runner.Group(ctx)
	defer loops.Stop()
	loops.Start(c.topics.Loop(), c.notices.Loop())
	if c.cfg.Mode != config.ModeController {
		loops.Start(c.elector.Loop(c.terms.Begin, c.deps.Log))
	}
	if err := api.Serve(ctx, listener, handler, apiGrace, c.deps.Log); err != nil {
		return fmt.Errorf("controller: %w", err)
	}
	return nil
}

// leading returns what the API may ask of this controller's leadership; nil while it follows.
func (c *Controller) leading() *backend.Leadership {
	t := c.terms.Acting()
	if t == nil {
		return nil
	}
	return &backend.Leadership{Term: t, Fleet: t.Fleet, Dispatcher: t.Dispatcher}
}
