package controller_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/skalds-go/skalds/controller"
	"github.com/skalds-go/skalds/controller/ingest"
	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/bustest"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/node/nodetest"
	"github.com/skalds-go/skalds/node/session"
	"github.com/skalds-go/skalds/pkg/config"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
)

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
	registry session.Registry
	cut      atomic.Bool
}

var errCut = errors.New("cut off")

func (c *cuttable) Publish(ctx context.Context, topic string, partition int, records []kafka.Record) error {
	if c.cut.Load() {
		return errCut
	}
	return c.Bus.Publish(ctx, topic, partition, records)
}

func (c *cuttable) Heartbeat(ctx context.Context, n *registry.Node) error {
	if c.cut.Load() {
		return errCut
	}
	return c.registry.Heartbeat(ctx, n)
}

func (c *cuttable) Leave(ctx context.Context, id, incarnation string) error {
	if c.cut.Load() {
		return errCut
	}
	return c.registry.Leave(ctx, id, incarnation)
}

func (c *cuttable) Reader(topic string, partition int, from kafka.Position) session.Reader {
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
func (s *system) nodeOn(id string, reg session.Registry, change ...func(*node.Config)) member {
	cfg := nodetest.Config(id)
	for _, f := range change {
		f(&cfg)
	}
	c := &cuttable{Bus: s.bus, registry: reg}
	n, err := node.New(cfg, node.WithSeams(session.Seams{Bus: c, Registry: c, Clock: s.clock}), node.WithLogger(s.log))
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
