package controller_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skalds-go/skalds/controller"
	"github.com/skalds-go/skalds/controller/ingest"
	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/bustest"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/node/nodetest"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/config"
	"github.com/skalds-go/skalds/pkg/registry"
	registrymemory "github.com/skalds-go/skalds/pkg/registry/memory"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/store/memory"
	"github.com/skalds-go/skalds/pkg/task"
)

// These tests run the real controller and real nodes on seams in memory, inside a bubble of fake time.

// system is a cluster in one process.
type system struct {
	t        *testing.T
	bus      *bustest.Bus
	store    *memory.Store
	registry *registrymemory.Registry
	clock    nodetest.Clock
	log      *slog.Logger

	classes  map[string]func(ctx context.Context) error // what nodes run beside work and wait
	overlaps bool                                       // two runs of a task at once are no error here

	mu     sync.Mutex
	runs   map[string]int      // task id -> handlers started
	on     map[string][]string // task id -> the nodes that started them
	atWork map[string]int      // task id -> handlers that have not returned
	wg     sync.WaitGroup

	nodes, controllers []func() // stop what was started
	doors              []*piped // of the controllers
}

const partitions = 4

// inBubble runs f on a fresh system. When f returns, what it started is stopped, nodes first, and must end: not one goroutine may be left. In
// any of these tests two runs of one task must not overlap, unless it says that they may.
func inBubble(t *testing.T, f func(s *system)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		clock := nodetest.NewClock()
		s := &system{t: t, bus: bustest.New(nil), store: memory.New(), registry: registrymemory.New(clock), clock: clock,
			log: slog.New(slog.DiscardHandler), runs: make(map[string]int), on: make(map[string][]string), atWork: make(map[string]int)}
		f(s)
		stopAll(s.nodes)
		stopAll(s.controllers)
		s.wg.Wait()
	})
}

func stopAll(stops []func()) {
	var wg sync.WaitGroup
	for _, stop := range stops {
		wg.Go(stop)
	}
	wg.Wait()
}

// cluster starts controllers and the nodes n1, n2, ..., and waits until these have joined.
func (s *system) cluster(controllers, nodes int, change ...func(*node.Config)) []member {
	s.t.Helper()
	for range controllers {
		s.controller()
	}
	members := make([]member, nodes)
	for i := range members {
		members[i] = s.node(fmt.Sprint("n", i+1), change...)
	}
	s.joined(nodes)
	return members
}

// piped is a listener whose connections are pipes.
type piped struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPiped() *piped { return &piped{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *piped) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *piped) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *piped) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8000} }

func (p *piped) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// dial reaches a controller by the port of its address.
func (s *system) dial(ctx context.Context, network, address string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	door := s.doors[n-firstPort]
	s.mu.Unlock()
	return door.dial(ctx, network, address)
}

// firstPort is that of the controller that was started first; each later one has the next.
const firstPort = 8000

// wires carries requests to controllers.
func (s *system) wires() http.RoundTripper {
	return &http.Transport{DialContext: s.dial, DisableKeepAlives: true}
}

// client gives a client of the i-th controller.
func (s *system) client(i int) *client.Client {
	s.t.Helper()
	c, err := client.New(client.Config{Server: fmt.Sprint("http://127.0.0.1:", firstPort+i), HTTP: &http.Client{Transport: s.wires()}})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// leads says which controller leads.
func (s *system) leads() int {
	s.t.Helper()
	doc, err := s.store.Leader(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(doc.Address)
	if err != nil {
		s.t.Fatalf("%+v: %v", doc, err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		s.t.Fatal(err)
	}
	return n - firstPort
}

// ask asks each controller that runs for a page of its API, in the order in which they were started.
func (s *system) ask(path string) []string {
	s.t.Helper()
	var answers []string
	for _, p := range s.doors {
		c := http.Client{Transport: &http.Transport{DialContext: p.dial, DisableKeepAlives: true}}
		res, err := c.Get("http://127.0.0.1:8000" + path)
		if errors.Is(err, net.ErrClosed) {
			continue
		}
		if err != nil {
			s.t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err = errors.Join(err, res.Body.Close()); err != nil || res.StatusCode != http.StatusOK {
			s.t.Fatalf("%s: %d %s %v", path, res.StatusCode, body, err)
		}
		answers = append(answers, string(body))
	}
	return answers
}

func controllerConfig(change ...func(*config.Controller)) config.Controller {
	c := config.Controller{
		Mode: config.ModeDispatcher, Host: "127.0.0.1", Port: 8000, TaskMaxBytes: 256 << 10, TaskRetention: 168 * time.Hour,
		Kafka:              config.Kafka{TopicPartitions: partitions, ReplicationFactor: 1, EventMaxBytes: events.DefaultMaxBytes},
		DispatcherInterval: 5 * time.Second, DispatcherStrategy: "LEAST_TASKS", AssignResendAfter: 2 * time.Second, LeaderLease: 2 * time.Second,
		Liveness:             config.Liveness{HeartbeatInterval: time.Second, LostAfter: 8 * time.Second, StopMargin: time.Second},
		Retry:                config.Retry{MaxAttempts: 3, MaxCrashes: 3, BackoffBase: time.Second, BackoffFactor: 2, BackoffMax: time.Minute},
		CancelGrace:          10 * time.Second,
		MonitorSkaldInterval: time.Second, MonitorTaskInterval: 5 * time.Second,
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

// controller starts a controller; stop ends it cleanly.
func (s *system) controller(change ...func(*config.Controller)) (stop func()) {
	return s.controllerWith(func(*controller.Deps) {}, change...)
}

func (s *system) controllerOn(st store.Store, change ...func(*config.Controller)) (stop func()) {
	return s.controllerWith(func(d *controller.Deps) { d.Store = st }, change...)
}

func (s *system) controllerWith(bend func(*controller.Deps), change ...func(*config.Controller)) (stop func()) {
	deps := controller.Deps{
		Store: s.store, Registry: s.registry, Bus: s.bus, Clock: s.clock, Log: s.log, Version: "test", Peers: s.wires(),
		Open: func(topic string, partition int, from kafka.Position) ingest.Reader {
			return s.bus.Reader(topic, partition, from)
		},
	}
	bend(&deps)
	cfg, door := controllerConfig(change...), newPiped()
	s.mu.Lock()
	cfg.Port = firstPort + len(s.doors)
	s.doors = append(s.doors, door)
	s.mu.Unlock()
	c := controller.New(cfg, deps)
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	s.wg.Go(func() {
		defer close(done)
		if err := c.Run(ctx, door); err != nil {
			s.t.Errorf("controller: %v", err)
		}
	})
	stop = func() { cancel(); <-done }
	s.controllers = append(s.controllers, stop)
	return stop
}

// cuttable is a node's way to the others, which a test can cut: to everything, as a machine that dies.
type cuttable struct {
	*bustest.Bus
	registry node.Registry
	cut      atomic.Bool
}

var errCut = errors.New("cut off")

func (c *cuttable) Publish(ctx context.Context, topic string, partition int, records []kafka.Record) error {
	if c.cut.Load() {
		return errCut
	}
	return c.Bus.Publish(ctx, topic, partition, records)
}

func (c *cuttable) Beat(ctx context.Context, n *registry.Node) error {
	if c.cut.Load() {
		return errCut
	}
	return c.registry.Beat(ctx, n)
}

func (c *cuttable) Leave(ctx context.Context, id, incarnation string) error {
	if c.cut.Load() {
		return errCut
	}
	return c.registry.Leave(ctx, id, incarnation)
}

func (c *cuttable) Reader(topic string, partition int, from kafka.Position) node.Reader {
	return &cutReader{c, c.Bus.Reader(topic, partition, from)}
}

type cutReader struct {
	c *cuttable
	*bustest.Reader
}

func (r *cutReader) Next(ctx context.Context) ([]kafka.Record, error) {
	records, err := r.Reader.Next(ctx)
	if err == nil && r.c.cut.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return records, err
}

// member is a node at work.
type member struct {
	cut  func() // cuts it off from everything
	mend func() // undoes that
	stop func() // drains it
}

// node starts a node that knows the classes work (ends at once) and wait (ends with its context or after an hour).
func (s *system) node(id string, change ...func(*node.Config)) member {
	return s.nodeOn(id, s.registry, change...)
}

// nodeOn starts a node on a registry of its own.
func (s *system) nodeOn(id string, reg node.Registry, change ...func(*node.Config)) member {
	cfg := nodetest.Config(id)
	for _, f := range change {
		f(&cfg)
	}
	c := &cuttable{Bus: s.bus, registry: reg}
	n, err := node.New(cfg, node.WithBus[node.Reader](c), node.WithRegistry(c), node.WithClock(s.clock), node.WithLogger(s.log))
	if err != nil {
		s.t.Fatal(err)
	}
	s.handle(n, id)
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	s.wg.Go(func() {
		defer close(done)
		if err := n.Run(ctx); err != nil && !c.cut.Load() {
			s.t.Errorf("node %s: %v", id, err)
		}
	})
	stop := func() { cancel(); <-done }
	s.nodes = append(s.nodes, stop)
	return member{cut: func() { c.cut.Store(true) }, mend: func() { c.cut.Store(false) }, stop: stop}
}

// handle gives a node its classes.
func (s *system) handle(n *node.Node, id string) {
	node.Handle(n, "work", func(ctx context.Context, _ json.RawMessage) (string, error) {
		defer s.ran(ctx, id)()
		return id, nil
	})
	node.Handle(n, "wait", func(ctx context.Context, _ json.RawMessage) (string, error) {
		defer s.ran(ctx, id)()
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-time.After(time.Hour):
			return id, nil
		}
	})
	for class, h := range s.classes {
		node.Handle(n, class, func(ctx context.Context, _ json.RawMessage) (any, error) {
			defer s.ran(ctx, id)()
			return nil, h(ctx)
		})
	}
}

// ran notes that a node starts a handler. The function it returns notes that it has returned.
func (s *system) ran(ctx context.Context, on string) (returned func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := node.TaskFrom(ctx).ID
	s.runs[id]++
	s.on[id] = append(s.on[id], on)
	if s.atWork[id]++; s.atWork[id] > 1 && !s.overlaps {
		s.t.Errorf("%d runs of task %s at once, on %v", s.atWork[id], id, s.on[id])
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.atWork[id]--
	}
}

// submit stores tasks and tells the leader, as a controller that does not lead does.
func (s *system) submit(class string, n int, prefix string) []string {
	s.t.Helper()
	ids := make([]string, n)
	for from := 0; from < n; from += store.MaxBatch {
		var page []task.Task
		for i := from; i < min(n, from+store.MaxBatch); i++ {
			ids[i] = fmt.Sprintf("%s-%05d", prefix, i)
			page = append(page, task.Task{ID: ids[i], ClassName: class, Mode: task.ModePassive, LifecycleStatus: task.Created,
				CreateDateTime: s.clock.Now().UnixMilli()})
		}
		if _, err := s.store.Create(s.t.Context(), page); err != nil {
			s.t.Fatal(err)
		}
	}
	s.notice()
	return ids
}

func (s *system) notice() {
	s.t.Helper()
	values, err := events.EncodeStatus(events.Status{Notice: events.NoticeSubmitted}, events.DefaultMaxBytes)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.bus.Publish(s.t.Context(), events.TopicStatus, 0, []kafka.Record{{Key: values[0].Key, Value: values[0].Value}}); err != nil &&
		!errors.Is(err, kafka.ErrUnknownTopic) {
		s.t.Fatal(err)
	}
}

// within lets up to d of fake time pass until the condition holds, and says how much it was.
func (s *system) within(d time.Duration, what string, holds func() bool) time.Duration {
	s.t.Helper()
	began := time.Now()
	for time.Since(began) <= d {
		synctest.Wait()
		if holds() {
			return time.Since(began)
		}
		pass(5 * time.Millisecond)
	}
	s.t.Fatalf("not within %s: %s; tasks: %v", d, what, s.counts())
	return 0
}

func (s *system) counts() map[task.Status]int64 {
	c, err := s.store.Counts(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (s *system) all(status task.Status, n int) func() bool {
	return func() bool { return s.counts()[status] == int64(n) }
}

func (s *system) get(id string) task.Task {
	s.t.Helper()
	list, err := s.store.Get(s.t.Context(), []string{id})
	if err != nil || len(list) != 1 {
		s.t.Fatal(list, err)
	}
	return list[0]
}

// joined waits until n nodes are registered.
func (s *system) joined(n int) {
	s.t.Helper()
	s.within(10*time.Second, fmt.Sprint(n, " nodes"), func() bool {
		snap, err := s.registry.Snapshot(s.t.Context())
		return err == nil && len(snap.Nodes) == n
	})
}

// once checks that each task was run exactly once.
func (s *system) once(ids []string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if s.runs[id] != 1 {
			s.t.Errorf("task %s ran %d times", id, s.runs[id])
		}
	}
}

// pass lets d of the bubble's time pass.
func pass(d time.Duration) { <-time.After(d) }
