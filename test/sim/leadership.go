package main

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/skalds-go/skalds/controller/delayed"
	"github.com/skalds-go/skalds/controller/dispatcher"
	"github.com/skalds-go/skalds/controller/election"
	"github.com/skalds-go/skalds/controller/fairqueue"
	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/ingest"
	"github.com/skalds-go/skalds/controller/monitor"
	"github.com/skalds-go/skalds/controller/transport"
	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/events/quarantine"
	"github.com/skalds-go/skalds/pkg/task"
)

// leadership is what one leader works with.
type leadership struct {
	*controller
	lease      *election.Lease
	listening  context.Context
	acting     context.Context
	endAll     context.CancelFunc
	endActing  context.CancelFunc
	listeners  int // threads
	actors     int
	fleet      *fleet.Fleet
	dispatcher *dispatcher.Dispatcher
	transport  *lineTransport
	service    *ingest.Service
	monitor    *monitor.Monitor
	agenda     *delayed.Promoter
	recallNow  dispatcher.Wake
	told       int64         // version of the newest settings that it has been told of
	goesBy     int64         // what that was when the dispatcher's round began
	primed     time.Duration // when it began to take in what nodes hold
	leading    bool
	begun      time.Duration // since when
	batches    []batch
}

// batch is what one read of a partition gave.
type batch struct {
	partition int
	records   []kafka.Record
	after     kafka.Position
}

func newLeadership(c *controller, lease *election.Lease) *leadership {
	l := &leadership{controller: c, lease: lease, recallNow: dispatcher.NewWake()}
	l.listening, l.endAll = context.WithCancel(background)
	l.acting, l.endActing = context.WithCancel(l.listening)
	after := c.cfg.lostAfter + c.cfg.lostAfter/10
	if c.guards.noDrift {
		after = c.cfg.lostAfter
	}
	l.fleet = fleet.New(fleet.Config{LostTimeout: after, StaleAfter: 3 * c.cfg.heartbeat, Protocol: events.Version,
		Term: lease.Term(), MaxPending: c.cfg.maxPending})
	l.transport = &lineTransport{c: c, to: transport.NewKafka(c.bus(), c.id, events.DefaultMaxBytes, c.process.clock.Now),
		told: map[string]bool{}}
	dispatching := c.store(roleDispatcher)
	dispatching.leads = l
	l.dispatcher = dispatcher.New(dispatcher.Config{Strategy: c.cfg.strategy, ID: c.id + "-" + strconv.FormatInt(lease.Term(), 36),
		TaskMaxBytes: 1 << 18, Seed: c.world.rng.Uint64(), MaxPending: c.cfg.maxPending,
		Order: fairqueue.Config{Mode: c.cfg.order, Aging: 20 * time.Second}}, dispatching, l.fleet, l.transport, lease, c.process.clock, c.dispatch, quiet)
	in := ingest.New(ingest.Retry{Policy: policy, Jitter: c.world.rng.Float64}, c.store(roleIngest), l.fleet, quarantine.New(c.bus(), c.process.clock, quiet), c.process.clock, ingest.Hooks{
		Room: c.room.Signal, Again: c.work.Signal, Nodes: c.nodes.Signal, Tasks: c.stored, Times: c.times.Signal, Updated: l.updated,
	}, c.ingest, quiet)
	l.service = ingest.NewService(in, l.transport, lease.Term(), c.bus(), func(p int, from kafka.Position) ingest.Reader {
		return c.bus().Reader(events.TopicStatus, p, from)
	})
	var progress monitor.Progress = l.service.Progress()
	if c.guards.noBarrier {
		progress = arrived{}
	}
	resend := c.cfg.resendAfter
	if c.guards.noResend {
		resend = never
	}
	l.monitor = monitor.New(monitor.Config{ResendAfter: resend, Compare: 5 * time.Second, Retention: c.cfg.retention, Policy: policy},
		c.store(roleMonitor), c.registry(), l.fleet, l.transport, ends{c.bus()}, progress, lease, c.process.clock, c.work.Signal, quiet)
	l.agenda = delayed.New(c.store(roleAgenda), c.registry(), lease, c.process.clock, cancelGrace, c.work.Signal, quiet)
	return l
}

// policy has failed tasks tried again soon, so that all of them end in the time of a simulation.
var policy = task.Policy{MaxAttempts: 3, MaxCrashes: 3, Backoff: task.Backoff{BaseMs: 500, Factor: 2, MaxMs: 5000}}

var quiet = slog.New(slog.DiscardHandler)

// ends tells the ends of task.status.
type ends struct{ bus *seamBus }

// StatusEnds gives the ends of all partitions.
func (e ends) StatusEnds(ctx context.Context) (map[int]kafka.Range, error) {
	n, err := e.bus.Partitions(ctx, events.TopicStatus)
	if err != nil {
		return nil, err
	}
	all := make([]int, n)
	for p := range all {
		all[p] = p
	}
	return e.bus.Offsets(ctx, events.TopicStatus, all)
}

// stopActing returns when the leadership, if there is one, acts no more.
func (l *leadership) stopActing() {
	if l == nil || l.acting.Err() != nil {
		return
	}
	l.leading = false
	l.endActing()
	l.world.park(never, func() bool { return l.actors == 0 })
	l.world.note(l.process.name, "acts no more as leader of term %d", l.lease.Term())
}

// stop returns when all of it has ended.
func (l *leadership) stop() {
	if l == nil {
		return
	}
	l.stopActing()
	l.endAll()
	l.world.park(never, func() bool { return l.listeners == 0 })
}

// updated takes in which tasks have got new attachments.
func (l *leadership) updated(ids []string) {
	if l.leading {
		l.monitor.Updated(ids)
	}
}

// act starts a thread that ends with the acting, listen one that goes on after it.
func (l *leadership) act(name string, run func()) { l.spawn(name, &l.actors, run) }

func (l *leadership) listen(name string, run func()) { l.spawn(name, &l.listeners, run) }

func (l *leadership) spawn(name string, count *int, run func()) {
	*count++
	l.process.spawn(name, func() {
		run()
		*count--
	})
}

func (l *leadership) over() bool { return l.acting.Err() != nil }
func (l *leadership) deaf() bool { return l.listening.Err() != nil }

// rest waits by the process's clock. It reports false if the acting ended.
func (l *leadership) rest(d time.Duration) bool {
	l.world.rest(d, l.over)
	return !l.over()
}

func (l *leadership) try(what string, f func(context.Context) error) bool {
	for !l.over() {
		err := f(l.acting)
		if err == nil {
			return true
		}
		l.world.note(l.process.name, " %s: %v", what, err)
		if !l.rest(200 * time.Millisecond) {
			return false
		}
	}
	return false
}

func (l *leadership) begin() {
	listen, load := func() { l.listen("listen", l.hear) }, l.service.Load
	if l.guards.noListen {
		load = func(ctx context.Context) error {
			err := l.service.Load(ctx)
			if err == nil {
				listen()
			}
			return err
		}
	}
	steps := election.Beginning{
		Listen: func() {
			if !l.guards.noListen {
				listen()
			}
		},
		Announce: l.announce,
		Load:     load,
		Prime: func(ctx context.Context) error {
			l.primed = l.world.now
			if err := l.monitor.Prime(ctx); err != nil {
				return err
			}
			return l.follow(ctx)
		},
	}
	if !steps.Run(l.try) {
		return
	}
	l.world.note(l.process.name, "begins to work as leader of term %d", l.lease.Term())
	l.act("monitor", l.watch)
	l.act("follow", l.keepFollowing)
	l.act("recall", l.recall)
	l.act("dispatcher", l.place)
	l.act("agenda", l.keepTimes)
	l.leading, l.begun = true, l.world.now
}

func (l *leadership) announce(ctx context.Context) error {
	n, err := l.bus().Partitions(ctx, events.TopicAssign)
	if err != nil {
		return err
	}
	every := make([]int, n)
	for p := range every {
		every[p] = p
	}
	return errors.Join(l.transport.Announce(ctx, l.lease.Term(), every)...)
}
