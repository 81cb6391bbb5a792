package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/skalds-go/skalds/controller/monitor"
	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	nodesession "github.com/skalds-go/skalds/node/session"
	"github.com/skalds-go/skalds/pkg/config"
	"github.com/skalds-go/skalds/pkg/registry"
)

// worker is one node process. Its threads run what the process of a real node runs, on the driver and the seams of the
// world.
type worker struct {
	*cluster
	process   *process
	id        string
	session   *session // the newest
	sessions  int
	running   int // handlers
	slots     int // of them
	sideSlots int // of those of the second class
	stopping  bool
	ctx       context.Context // ends when the node is told to stop
	cancel    context.CancelFunc
	number    int
	file      *openFile // nil = without SKALD_STATE_DIR
}

// session is what the checker knows of one incarnation of a worker.
type session struct {
	*nodesession.Session
	node        *worker
	process     *process
	incarnation string
	registered  bool
	drained     bool // it was told to stop, and has noted it

	term  int64            // the highest of its events, as it has to know it
	heard map[string]bool  // claims that came under it
	stale map[string]int64 // claims that came only under a lower one
}

func (cl *cluster) startWorker(id string) *worker {
	cl.started++
	n := &worker{cluster: cl, process: cl.world.process(id, cl.speed()), id: id, number: cl.started}
	n.ctx, n.cancel = context.WithCancel(background)
	n.process.onDeath = func() { cl.check.died(n.process) }
	if cl.cfg.stateDir {
		n.file = cl.file(id, n.process)
	}
	cl.world.note(id, "starts, its clock at %d/1000000", n.process.clock.speed)
	n.process.spawn("main", n.main)
	return n
}

// stop tells a node to stop.
func (n *worker) stop() {
	n.stopping = true
	n.cancel()
}

func (n *worker) main() {
	if err := nodesession.Serve(n.ctx, n.config()); err != nil {
		n.world.note(n.id, " ends: %v", err)
	}
	n.world.note(n.id, "has stopped")
	n.world.kill(n.process)
}

// config is how the process runs its sessions.
func (n *worker) config() nodesession.Config {
	offers := n.cfg.shapeOf(n.id)
	cfg := &config.Node{
		ID: n.id, Mode: config.NodeModeNode, Capacity: n.cfg.capacity, Prefetch: n.cfg.prefetch, CapacityByClass: offers.slots,
		Kafka:          config.Kafka{EventMaxBytes: events.DefaultMaxBytes},
		Liveness:       config.Liveness{HeartbeatInterval: n.cfg.heartbeat, LostAfter: n.cfg.lostAfter, StopMargin: n.cfg.stopMargin},
		ResultMaxBytes: 256 << 10, DrainSoft: 3 * time.Second, DrainHard: 2 * time.Second, CancelGrace: cancelGrace,
	}
	c := nodesession.Config{
		Node: cfg, Log: quiet, Handlers: map[string]nodesession.Handler{},
		Template: registry.Node{
			ID: n.id, Mode: string(cfg.Mode), State: registry.Online, Classes: offers.classes, Labels: offers.labels,
			Capacity: cfg.Capacity, Prefetch: cfg.Prefetch, CapacityByClass: cfg.CapacityByClass, Protocol: nodesession.Protocol,
		},
		Seams: nodesession.Seams{
			Bus:         nodeBus{&seamBus{broker: n.broker, process: n.process}, n},
			Registry:    nodeRegistry{&seamRegistry{redis: n.redis, process: n.process, noWait: n.guards.noWait}, n},
			Clock:       n.process.clock,
			Runner:      n.process.runner(),
			Load:        n.world.rng.Float64, // what the real machine says would make each history another
			Incarnation: n.nextIncarnation,
			Observe:     n.observe,
		},
	}
	if n.file != nil {
		c.Seams.LockFile = n.file
	}
	for _, class := range offers.classes {
		c.Handlers[class] = func(ctx context.Context, run *nodesession.Run, in json.RawMessage) (json.RawMessage, error) {
			return n.session.handle(ctx, run, in)
		}
	}
	return c
}

func (n *worker) nextIncarnation() string {
	n.sessions++
	return fmt.Sprintf("%s.%d.%d", n.id, n.number, n.sessions)
}

// observe tells the checker the stages of the sessions.
func (n *worker) observe(by *nodesession.Session, at nodesession.Stage) {
	switch at {
	case nodesession.Made:
		n.session = &session{
			Session: by, node: n, process: n.process, incarnation: by.Incarnation(), heard: map[string]bool{}, stale: map[string]int64{},
		}
		n.check.sessions[n.session.incarnation] = n.session
	case nodesession.Registered:
		n.session.registered = true
		n.world.note(n.id, "is registered as %s", n.session.incarnation)
	case nodesession.Draining:
		n.session.drained = true
		n.world.note(n.id, "drains")
	case nodesession.Lost:
		n.world.note(n.id, "%s has lost its lease", n.session.incarnation)
		n.check.loses(n.session)
	}
}

// nodeRegistry is the registry of a node.
type nodeRegistry struct {
	*seamRegistry
	node *worker
}

// Heartbeat implements [nodesession.Registry].
func (r nodeRegistry) Heartbeat(ctx context.Context, n *registry.Node) error {
	err := r.seamRegistry.Heartbeat(ctx, n)
	if s := r.node.session; err == nil && r.node.guards.trustFromAnswer && s.registered {
		s.Confirm(r.process.clock.Boot())
	}
	return err
}

// nodeBus is the bus of a node.
type nodeBus struct {
	*seamBus
	node *worker
}

// Reader implements [nodesession.Bus].
func (b nodeBus) Reader(topic string, partition int, from kafka.Position) nodesession.Reader {
	r := &nodeReader{reader: b.seamBus.Reader(topic, partition, from)}
	if topic == events.TopicAssign {
		r.show = b.node.session.assigned
	} else {
		r.show = b.node.session.ordered
	}
	return r
}

// nodeReader gives a session one record after the other, and shows each to the checker before. While one that does not
// decode is put aside, the session takes in what comes from elsewhere, and knows nothing of the next.
type nodeReader struct {
	*reader
	show func(value []byte) []byte // returns what the session sees of it
	next []kafka.Record
}

// Next implements [nodesession.Reader].
func (r *nodeReader) Next(ctx context.Context) (records []kafka.Record, err error) {
	if len(r.next) == 0 {
		if r.next, err = r.reader.Next(ctx); err != nil {
			return nil, err
		}
	}
	records, r.next = r.next[:1], r.next[1:]
	records[0].Value = r.show(records[0].Value)
	return records, nil
}

// anyTerm is higher than each term of a leader. Without the guard "term" all events have it, so that no term is lower
// than another.
const anyTerm = 1 << 40

// assigned is called with each event of task.assign before the session sees it.
func (s *session) assigned(value []byte) []byte {
	a, err := events.DecodeAssign(value)
	if err != nil {
		return value
	}
	s.delivered(&a)
	if s.node.guards.noTerm {
		a.Term = anyTerm
		return encoded(events.EncodeAssign(a, events.DefaultMaxBytes))
	}
	return value
}

// ordered is called with each event of task.control before the session sees it.
func (s *session) ordered(value []byte) []byte {
	c, err := events.DecodeControl(value)
	if err != nil {
		return value
	}
	if c.Incarnation == s.incarnation {
		s.term = max(s.term, c.Term)
	}
	if s.node.guards.noTerm {
		c.Term = anyTerm
		return encoded(events.EncodeControl(c, events.DefaultMaxBytes))
	}
	return value
}

func encoded(values []events.Encoded, err error) []byte {
	if err != nil {
		panic(err) // it was decoded a moment ago
	}
	return values[0].Value
}

var errFailed = errors.New("failed as it was to")

// arrived is a progress that has always come as far as it is asked for.
type arrived struct{}

// Reached implements [monitor.Progress].
func (arrived) Reached(map[int]kafka.Range) bool { return true }

var (
	_ monitor.Progress     = arrived{}
	_ nodesession.Bus      = nodeBus{}
	_ nodesession.Registry = nodeRegistry{}
)
