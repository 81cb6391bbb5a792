// Package controller composes a controller process: the API, and, while this process leads, ingest, monitor and dispatcher. It is nothing
// but wiring: what each part does stands in its own package.
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
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/skalds-go/skalds/controller/api"
	"github.com/skalds-go/skalds/controller/dispatcher"
	"github.com/skalds-go/skalds/controller/election"
	"github.com/skalds-go/skalds/controller/ingest"
	"github.com/skalds-go/skalds/controller/transport"
	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/events/quarantine"
	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/config"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
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
	cfg        config.Controller
	deps       Deps
	id         string
	quarantine *quarantine.Quarantine
	transport  *transport.Kafka
	elector    *election.Elector
	notify     *notifier
	metrics    *prometheus.Registry
	dispatch   *dispatcher.Metrics
	peers      *http.Client // asks the leader for what only it knows
	ingest     *ingest.Metrics

	// Signals outlive leaderships: one that comes while nobody leads is found by the next leader's first round.
	work, room, nodes, wishes, times dispatcher.Wake

	mu      sync.Mutex
	session *leadership // nil while this process follows
	topics  error       // why the topics are not ready; nil when they are
}

// New makes a controller. The configuration must be valid.
func New(cfg config.Controller, deps Deps) *Controller {
	c := &Controller{cfg: cfg, deps: deps, id: uuid.NewString(), metrics: prometheus.NewRegistry(),
		work: dispatcher.NewWake(), room: dispatcher.NewWake(), nodes: dispatcher.NewWake(), wishes: dispatcher.NewWake(), times: dispatcher.NewWake(),
		topics: errNotYet, peers: &http.Client{Transport: deps.Peers, Timeout: peerTimeout}}
	// Goroutines and memory of the process show a leak long before it hurts.
	c.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), c.stuckTasks())
	c.transport = transport.NewKafka(deps.Bus, c.id, cfg.EventMaxBytes, deps.Clock.Now)
	c.dispatch, c.ingest = dispatcher.NewMetrics(c.metrics), ingest.NewMetrics(c.metrics)
	lc := election.Config{ID: c.id, Address: advertised(cfg), Mode: string(cfg.Mode), Lease: cfg.LeaderLease}
	if cfg.Mode == config.ModeDispatcher {
		lc.Over = []string{string(config.ModeMonitor)}
	}
	c.quarantine = quarantine.New(deps.Bus, deps.Clock, deps.Log)
	c.elector = election.New(lc, deps.Store, deps.Clock)
	c.notify = newNotifier(c)
	return c
}

// peerTimeout is how long the leader may take to answer another controller.
const peerTimeout = 5 * time.Second

// advertised is where other controllers reach this one's API: where it listens, or, if that is everywhere, by the machine's name.
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

// Run serves and, when it is its turn, leads, until the context ends. It closes the listener. It returns nil after a clean stop.
func (c *Controller) Run(ctx context.Context, listener net.Listener) error {
	handler := api.New(api.Deps{
		Tasks: c.deps.Store, StoreName: StoreName(c.cfg.Store), Nodes: c.deps.Registry, Dispatcher: (*steering)(c), Wake: c.wake,
		Updated: c.updated, Ready: c.notReady, SetAside: c.setAside, Now: c.deps.Clock.Now, TaskMaxBytes: c.cfg.TaskMaxBytes,
		MaxBacklog: c.cfg.MaxBacklog, Token: string(c.cfg.APIToken), Version: c.deps.Version,
		Log: c.deps.Log, Metrics: c.metrics,
	})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { c.ensureTopics(ctx) })
	wg.Go(func() { c.notify.run(ctx) })
	if c.cfg.Mode != config.ModeController {
		wg.Go(func() { c.lead(ctx) })
	}
	err := api.Serve(ctx, listener, handler, apiGrace, c.deps.Log)
	cancel()
	wg.Wait()
	if err != nil {
		return fmt.Errorf("controller: %w", err)
	}
	return nil
}

// wake tells whoever leads that tasks or wishes were stored.
func (c *Controller) wake() {
	if c.leading() != nil {
		c.stored()
		return
	}
	c.notify.signal()
}

// updated tells whoever leads that a task has got new attachments. A wake follows.
func (c *Controller) updated(id string) {
	if l := c.leading(); l != nil {
		l.monitor.Updated([]string{id})
		return
	}
	c.notify.note(id)
}

// stored wakes the leader's loops for new tasks and wishes.
func (c *Controller) stored() {
	c.work.Signal()
	c.wishes.Signal()
	c.times.Signal()
}

func (c *Controller) leading() *leadership {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

var errNotYet = errors.New("not looked for yet")

const (
	topicPause   = 500 * time.Millisecond // between two tries to make the topics
	topicTimeout = 30 * time.Second
	topicLook    = time.Second // between two looks whether they are still there
)

// ensureTopics makes the topics, and makes them anew where they are gone. A cluster that cannot be reached is tried again; a topic with too
// few partitions, too: a person may enlarge it.
func (c *Controller) ensureTopics(ctx context.Context) {
	last := ""
	for ctx.Err() == nil {
		try, cancel := context.WithTimeout(ctx, topicTimeout)
		err := c.deps.Bus.Ensure(try, TopicSpecs(c.cfg.TopicPartitions, c.cfg.ReplicationFactor, c.deps.TopicConfig))
		cancel()
		c.setTopics(err)
		if err == nil {
			last = ""
			c.watchTopics(ctx)
			continue
		}
		if err.Error() != last && ctx.Err() == nil {
			last = err.Error()
			c.deps.Log.Warn("the topics are not ready; trying again", "error", err)
		}
		rest(ctx, c.deps.Clock, topicPause)
	}
}

func (c *Controller) setTopics(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.topics = err
}

// watchTopics returns when a topic is gone, as after somebody deleted it or the brokers came back empty, or the context ends.
func (c *Controller) watchTopics(ctx context.Context) {
	for rest(ctx, c.deps.Clock, topicLook) {
		for _, t := range events.Topics() {
			try, cancel := context.WithTimeout(ctx, readyTimeout)
			_, err := c.deps.Bus.Partitions(try, t.Name)
			cancel()
			if errors.Is(err, kafka.ErrUnknownTopic) {
				c.setTopics(err)
				c.deps.Log.Warn("a topic is gone; making it anew", "topic", t.Name)
				return
			}
			if err != nil {
				break // no broker answers; the next look finds out
			}
		}
	}
}

// TopicSpecs says how all topics are made: with so many partitions and copies, and with further settings that win over their own.
func TopicSpecs(partitions, replication int, settings map[string]string) []kafka.TopicSpec {
	topics := events.Topics()
	specs := make([]kafka.TopicSpec, 0, len(topics))
	for _, t := range topics {
		spec := kafka.TopicSpec{Name: t.Name, Partitions: partitions, Replication: replication, Config: map[string]string{}}
		if t.Single {
			spec.Partitions = 1
		}
		maps.Copy(spec.Config, t.Config)
		maps.Copy(spec.Config, settings)
		specs = append(specs, spec)
	}
	return specs
}

func rest(ctx context.Context, c clock.Clock, d time.Duration) bool {
	t := c.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C():
		return true
	}
}
