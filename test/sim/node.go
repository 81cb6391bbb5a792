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
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/config"
	"github.com/skalds-go/skalds/pkg/registry"
)

// worker is one node process: the rounds of package node, called by threads. Its loops do what those of the package do.
type worker struct {
	*cluster
	process   *process
	id        string
	session   *session
	sessions  int
	running   int // handlers
	slots     int // of them
	sideSlots int // of those of the second class
	stopping  bool
	number    int
	file      *openFile // nil = without SKALD_STATE_DIR
}

// session is one incarnation of a worker.
type session struct {
	node        *worker
	process     *process
	incarnation string
	rounds      *node.Rounds
	loops       int
	over        bool // the loops are to end
	drained     bool // it was told to stop, and has noted it
	reading     context.Context
	stop        context.CancelFunc

	term  int64            // the highest of its events, as it has to know it
	heard map[string]bool  // claims that came under it
	stale map[string]int64 // claims that came only under a lower one
}

func (cl *cluster) startWorker(id string) *worker {
	cl.started++
	n := &worker{cluster: cl, process: cl.world.process(id, cl.speed()), id: id, number: cl.started}
	n.process.onDeath = func() { cl.check.died(n.process) }
	if cl.cfg.stateDir {
		n.file = cl.file(id, n.process)
	}
	cl.world.note(id, "starts, its clock at %d/1000000", n.process.clock.speed)
	n.process.spawn("main", n.main)
	return n
}

func (n *worker) main() {
	for !n.stopping {
		n.sessions++
		if !n.newSession().live() {
			break
		}
	}
	n.world.note(n.id, "has stopped")
	n.world.kill(n.process)
}

func (n *worker) newSession() *session {
	s := &session{node: n, process: n.process, incarnation: fmt.Sprintf("%s.%d.%d", n.id, n.number, n.sessions),
		heard: map[string]bool{}, stale: map[string]int64{}}
	before := n.session
	n.session = s
	n.check.sessions[s.incarnation] = s
	s.reading, s.stop = context.WithCancel(background)
	if before != nil {
		s.rounds = before.rounds.Next(s.incarnation)
		return s
	}
	offers := n.cfg.shapeOf(n.id)
	cfg := node.Config{Node: config.Node{
		Labels: offers.labels, CapacityByClass: offers.slots,
		Log: config.Log{Level: config.LogInfo}, ID: n.id, Mode: config.NodeModeNode, Capacity: n.cfg.capacity, Prefetch: n.cfg.prefetch,
		Kafka:          config.Kafka{Host: "127.0.0.1", Port: 9092, TopicPartitions: n.cfg.partitions, ReplicationFactor: 1, EventMaxBytes: events.DefaultMaxBytes},
		Redis:          config.Redis{Host: "127.0.0.1", Port: 6379},
		Liveness:       config.Liveness{HeartbeatInterval: n.cfg.heartbeat, LostAfter: n.cfg.lostAfter, StopMargin: n.cfg.stopMargin},
		ResultMaxBytes: 256 << 10, DrainSoft: 3 * time.Second, DrainHard: 2 * time.Second, CancelGrace: cancelGrace,
	}}
	member, err := node.New(cfg, node.WithBus[node.Reader](nodeBus{&seamBus{broker: n.broker, process: n.process}}),
		node.WithRegistry(&seamRegistry{redis: n.redis, process: n.process, noWait: n.guards.noWait}), node.WithClock(clock.Clock(n.process.clock)), node.WithLogger(quiet))
	if err != nil {
		panic(err) // the configuration above is valid
	}
	for _, class := range offers.classes {
		node.Handle(member, class, func(ctx context.Context, in json.RawMessage) (json.RawMessage, error) {
			return n.session.handle(ctx, in)
		})
	}
	s.rounds, err = node.NewRounds(member, s.incarnation, func(work func()) { n.process.spawn("handler", work) })
	if err != nil {
		panic(err)
	}
	s.rounds.Measure(n.world.rng.Float64)
	if n.file != nil {
		s.rounds.Prove(n.file)
	}
	return s
}

// nodeBus has the type that package node wants.
type nodeBus struct{ *seamBus }

// Reader makes a reader of one partition.
func (b nodeBus) Reader(topic string, partition int, from kafka.Position) node.Reader {
	return b.seamBus.Reader(topic, partition, from)
}

// loop starts a thread that the session's end waits for.
func (s *session) loop(name string, run func()) {
	s.loops++
	s.process.spawn(name, func() {
		run()
		s.loops--
	})
}

// end stops the loops and waits for them.
func (s *session) end() {
	s.over = true
	s.stop()
	s.process.world.park(never, func() bool { return s.loops == 0 })
}

// live is the session's whole life. It says whether another one may follow.
func (s *session) live() (again bool) {
	n, w := s.node, s.process.world
	stopping := func() bool { return n.stopping }
	for try := 0; ; try++ {
		err := s.rounds.Locate(background)
		if err == nil {
			break
		}
		w.rest(backoff(try), stopping)
		if n.stopping {
			return false
		}
	}
	s.loop("assigns", func() { s.read(s.rounds.Assigns(), s.assigned) })
	s.loop("controls", func() { s.read(s.rounds.Controls(), s.ordered) })
	since := s.process.clock.Boot()
	for {
		sent := s.process.clock.Boot()
		again, err := s.rounds.Join(background, since)
		if err == nil {
			break
		}
		if again || n.stopping {
			s.end()
			s.rounds.Close()
			s.rounds.Goodbye()
			return again && !n.stopping
		}
		if errors.Is(err, registry.ErrTaken) {
			since = sent
		}
		w.rest(n.cfg.heartbeat, stopping)
	}
	w.note(n.id, "is registered as %s", s.incarnation)
	s.loop("beat", s.beat)
	s.loop("flush", s.flush)
	s.loop("trust", s.trust)
	w.park(never, func() bool { return s.rounds.Lost() || n.stopping })
	if s.rounds.Lost() {
		return s.stopLost()
	}
	s.drain()
	return false
}

// stopLost is the end of a session that lost its trust.
func (s *session) stopLost() bool {
	w := s.process.world
	w.note(s.node.id, "%s has lost its lease", s.incarnation)
	s.node.check.loses(s)
	s.end()
	w.park(never, func() bool { return s.rounds.Running() == 0 })
	s.rounds.Close()
	s.rounds.Goodbye()
	return true
}

// drain is the clean end.
func (s *session) drain() {
	w := s.process.world
	w.note(s.node.id, "drains")
	s.rounds.Drain()
	s.drained = true
	idle := func() bool { return s.rounds.Running() == 0 }
	w.rest(3*time.Second, idle)
	if !idle() {
		s.rounds.CancelAll()
		w.rest(2*time.Second, idle)
	}
	s.end()
	if s.rounds.Lost() {
		s.rounds.Close()
		return
	}
	for range 20 {
		if _, err := s.rounds.Flush(background); err == nil && s.rounds.Unsent() == 0 || s.rounds.Lost() {
			break
		}
		w.rest(150*time.Millisecond, nil)
	}
	s.rounds.Close()
	if idle() {
		s.rounds.Goodbye()
	}
}

func backoff(failures int) time.Duration {
	return min(50*time.Millisecond<<min(failures, 10), 2*time.Second)
}

func (s *session) read(r node.Reader, round func([]kafka.Record)) {
	for {
		records, err := r.Next(s.reading)
		if err != nil {
			return
		}
		round(records)
	}
}

// assigned gives the session records of task.assign, one after the other, and has the checker see each before: while one that does not decode is
// put aside, the session takes in what comes from elsewhere, and knows nothing of the next.
func (s *session) assigned(records []kafka.Record) {
	for i := range records {
		if a, err := events.DecodeAssign(records[i].Value); err == nil {
			s.delivered(&a)
			if s.node.guards.noTerm {
				a.Term = 1 << 40 // no term is lower than another any more
				values, err := events.EncodeAssign(a, events.DefaultMaxBytes)
				if err != nil {
					panic(err)
				}
				records[i].Value = values[0].Value
			}
		}
		s.rounds.AssignRound(records[i : i+1])
	}
}

// ordered does the same with records of task.control.
func (s *session) ordered(records []kafka.Record) {
	for i := range records {
		if c, err := events.DecodeControl(records[i].Value); err == nil {
			if c.Incarnation == s.incarnation {
				s.term = max(s.term, c.Term)
			}
			if s.node.guards.noTerm {
				c.Term = 1 << 40
				values, err := events.EncodeControl(c, events.DefaultMaxBytes)
				if err != nil {
					panic(err)
				}
				records[i].Value = values[0].Value
			}
		}
		s.rounds.ControlRound(records[i : i+1])
	}
}

func (s *session) beat() {
	w, c := s.process.world, s.process.clock
	next := c.Boot() + s.node.cfg.heartbeat
	for !s.over {
		w.park(c.at(next), func() bool { return s.over || s.rounds.BeatNow() })
		if s.over {
			return
		}
		next = c.Boot() + s.node.cfg.heartbeat
		if s.rounds.Beat() && s.node.guards.trustFromAnswer {
			s.rounds.Confirm(c.Boot())
		}
	}
}

func (s *session) flush() {
	w, c := s.process.world, s.process.clock
	failures, more := 0, false
	for !s.over {
		switch at, due := s.rounds.FlushDue(); {
		case failures > 0:
			w.rest(backoff(failures-1), func() bool { return s.over })
		case more:
		default:
			until := never
			if due {
				until = c.at(at)
			}
			w.park(until, func() bool { return s.over || s.rounds.FlushWanted() })
		}
		if s.over {
			return
		}
		var err error
		if more, err = s.rounds.Flush(background); err != nil {
			failures++
		} else {
			failures = 0
		}
	}
}

func (s *session) trust() {
	for !s.over && s.rounds.Check() {
		s.process.world.park(s.process.clock.at(s.rounds.TrustedUntil()), func() bool { return s.over || s.rounds.Lost() })
	}
}

var errFailed = errors.New("failed as it was to")

// arrived is a progress that has always come as far as it is asked for.
type arrived struct{}

// Reached implements [monitor.Progress].
func (arrived) Reached(map[int]kafka.Range) bool { return true }

var (
	_ monitor.Progress              = arrived{}
	_ node.ReadableBus[node.Reader] = nodeBus{}
	_ node.Registry                 = (*seamRegistry)(nil)
)
