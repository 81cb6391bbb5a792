package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/skalds-go/skalds/controller/agenda"
	"github.com/skalds-go/skalds/controller/dispatcher"
	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/ingest"
	"github.com/skalds-go/skalds/controller/leader"
	"github.com/skalds-go/skalds/controller/monitor"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/controller/transport"
	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/task"
)

// controller is one controller process: the rounds that package controller composes, called by threads. Its loops do what those do, without
// their channels.
type controller struct {
	*cluster
	process  *process
	id       string
	leader   *leader.Leader
	work     dispatcher.Wake
	nodes    dispatcher.Wake
	wishes   dispatcher.Wake
	times    dispatcher.Wake
	notice   dispatcher.Wake
	session  *leadership // nil while it follows
	stopping bool
	dispatch *dispatcher.Metrics
	ingest   *ingest.Metrics
}

func (cl *cluster) startController(name string) *controller {
	cl.started++
	c := &controller{cluster: cl, process: cl.world.process(name, cl.speed()), id: fmt.Sprintf("%s.%d-------", name, cl.started)[:8],
		work: dispatcher.NewWake(), nodes: dispatcher.NewWake(), wishes: dispatcher.NewWake(), times: dispatcher.NewWake(), notice: dispatcher.NewWake()}
	reg := prometheus.NewRegistry()
	c.dispatch, c.ingest = dispatcher.NewMetrics(reg), ingest.NewMetrics(reg)
	c.leader = leader.New(leader.Config{ID: c.id, Address: name, Mode: "DISPATCHER", Lease: cl.cfg.lease}, c.store(roleLeader), c.process.clock)
	cl.world.note(name, "starts as %s, its clock at %d/1000000", c.id, c.process.clock.speed)
	c.process.spawn("lead", c.lead)
	c.process.spawn("notices", c.notices)
	return c
}

func (c *controller) store(as role) *seamStore {
	return &seamStore{Store: c.truth.mem, truth: c.truth, process: c.process, role: as}
}
func (c *controller) bus() *seamBus { return &seamBus{broker: c.broker, process: c.process} }
func (c *controller) registry() *seamRegistry {
	return &seamRegistry{Registry: c.redis.mem, redis: c.redis, process: c.process}
}

// lead takes part in the election until the process stops. A leadership whose lease is over acts no more, but goes on listening until this
// process leads anew, or a higher term is seen.
func (c *controller) lead() {
	w := c.world
	var present *leader.Lease
	for !c.stopping {
		ctx, cancel := context.WithTimeout(background, c.cfg.lease)
		lease, err := c.leader.Round(ctx)
		cancel()
		if err != nil {
			w.note(c.process.name, " leader round: %v", err)
		}
		if lease != present {
			present = lease
			c.session.stopActing()
		}
		doc, _ := c.leader.Present()
		if l := c.session; l != nil && (doc.Term > l.lease.Term() || lease != nil && lease != l.lease) {
			l.stop()
			c.session = nil
		}
		if lease != nil && c.session == nil {
			c.session = newLeadership(c, lease)
			c.session.act("begin", c.session.begin)
		}
		w.rest(c.cfg.lease/4, func() bool { return c.stopping })
	}
	c.session.stop()
	ctx, cancel := context.WithTimeout(background, c.cfg.lease)
	defer cancel()
	if err := c.leader.Release(ctx); err != nil {
		w.note(c.process.name, " release: %v", err)
	}
	w.note(c.process.name, "has stopped")
	w.kill(c.process)
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

// wake is what the API of this controller calls when tasks or wishes were stored.
func (c *controller) wake() {
	if c.session != nil && c.session.leading {
		c.stored()
		return
	}
	c.notice.Signal()
}

func (c *controller) stored() {
	c.work.Signal()
	c.wishes.Signal()
	c.times.Signal()
}

// notices tells the leader of them.
func (c *controller) notices() {
	for {
		c.world.park(never, func() bool { return taken(c.notice) })
		values, err := events.EncodeStatus(events.Status{At: c.process.clock.Now().UnixMilli(), Notice: events.NoticeSubmitted}, events.DefaultMaxBytes)
		if err != nil {
			panic(err)
		}
		ctx, cancel := context.WithTimeout(background, 2*time.Second)
		err = c.bus().Publish(ctx, events.TopicStatus, 0, []kafka.Record{{Key: values[0].Key, Value: values[0].Value}})
		cancel()
		if err != nil {
			c.world.note(c.process.name, " notice: %v", err)
		}
	}
}

func taken(w dispatcher.Wake) bool {
	select {
	case <-w:
		return true
	default:
		return false
	}
}

// leadership is what one leader works with.
type leadership struct {
	*controller
	lease      *leader.Lease
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
	agenda     *agenda.Agenda
	leading    bool
	batches    []batch
}

// batch is what one read of a partition gave.
type batch struct {
	partition int
	records   []kafka.Record
	after     kafka.Position
}

func newLeadership(c *controller, lease *leader.Lease) *leadership {
	l := &leadership{controller: c, lease: lease}
	l.listening, l.endAll = context.WithCancel(background)
	l.acting, l.endActing = context.WithCancel(l.listening)
	after := c.cfg.lostAfter + c.cfg.lostAfter/10
	if c.guards.noDrift {
		after = c.cfg.lostAfter
	}
	l.fleet = fleet.New(fleet.Config{GiveAwayAfter: after, StaleAfter: 3 * c.cfg.heartbeat, Protocol: events.Version})
	l.transport = &lineTransport{c: c, to: transport.NewKafka(c.bus(), c.id, events.DefaultMaxBytes, c.process.clock.Now)}
	l.dispatcher = dispatcher.New(dispatcher.Config{Strategy: c.cfg.strategy, ID: c.id + "-" + strconv.FormatInt(lease.Term(), 36),
		TaskMaxBytes: 1 << 18, Seed: c.world.rng.Uint64()}, c.store(roleDispatcher), l.fleet, l.transport, lease, c.process.clock, c.dispatch, quiet)
	in := ingest.New(ingest.Retry{Policy: policy, Jitter: c.world.rng.Float64}, c.store(roleIngest), l.fleet, noQuarantine{}, c.process.clock, ingest.Hooks{
		Room: c.work.Signal, Nodes: c.nodes.Signal, Tasks: c.stored, Times: c.times.Signal,
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
	l.monitor = monitor.New(monitor.Config{ResendAfter: resend, Compare: 5 * time.Second, Retention: time.Hour, Policy: policy},
		c.store(roleMonitor), c.registry(), l.fleet, l.transport, ends{c.bus()}, progress, lease, c.process.clock, c.work.Signal, quiet)
	l.agenda = agenda.New(c.store(roleAgenda), lease, c.process.clock, 10*time.Second, c.work.Signal, quiet)
	return l
}

// policy has failed tasks tried again soon, so that all of them end in the time of a simulation.
var policy = task.Policy{MaxAttempts: 3, MaxCrashes: 3, Backoff: task.Backoff{BaseMs: 500, Factor: 2, MaxMs: 5000}}

var quiet = slog.New(slog.DiscardHandler)

// noQuarantine takes nothing: all events here are well-formed.
type noQuarantine struct{}

func (noQuarantine) Quarantine(context.Context, kafka.Record, string, error) {}

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
	if !l.try("announce", l.announce) || !l.try("load positions", l.service.Load) {
		return
	}
	starts := l.service.Starts()
	for p := range len(starts) {
		l.listen("read status", func() { l.read(p, starts[p]) })
	}
	l.listen("ingest", l.takeIn)
	l.listen("confirm", l.confirm)
	if !l.try("prime", l.monitor.Prime) {
		return
	}
	l.world.note(l.process.name, "begins to work as leader of term %d", l.lease.Term())
	l.act("monitor", l.watch)
	l.act("dispatcher", l.place)
	l.act("agenda", l.keepTimes)
	l.leading = true
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
	return errors.Join(l.transport.Tell(ctx, l.lease.Term(), every)...)
}

func (l *leadership) read(p int, from kafka.Position) {
	r := l.bus().Reader(events.TopicStatus, p, from)
	for {
		records, err := r.Next(l.listening)
		if err != nil {
			return
		}
		l.service.Hear(records)
		l.batches = append(l.batches, batch{p, records, r.Position()})
		handed := func() bool { return l.deaf() || len(l.batches) == 0 }
		if l.world.rest(250*time.Millisecond, handed); !handed() {
			l.ahead(p, r.Position(), handed)
		}
	}
}

// ahead looks for heartbeats behind what ingest is too busy to take, until it has been handed over.
func (l *leadership) ahead(p int, from kafka.Position, handed func() bool) {
	ctx, stop := context.WithCancel(l.listening)
	over := false
	l.listen("ahead", func() {
		defer func() { over = true }()
		r := l.bus().Reader(events.TopicStatus, p, from)
		for {
			records, err := r.Next(ctx)
			if err != nil {
				return
			}
			l.service.Hear(records)
		}
	})
	l.world.park(never, handed)
	stop()
	l.world.park(never, func() bool { return over })
}

// confirm is the loop that confirms heartbeats which came over the bus.
func (l *leadership) confirm() {
	for !l.deaf() {
		l.world.park(never, func() bool { return l.deaf() || l.service.ConfirmWanted() })
		if l.deaf() {
			return
		}
		if err := l.service.Confirm(l.listening); err != nil {
			l.world.note(l.process.name, " confirm: %v", err)
		}
	}
}

// takeIn is ingest's loop.
func (l *leadership) takeIn() {
	w, c := l.world, l.process.clock
	settleAt, saveAt := never, never
	for !l.deaf() {
		w.park(min(settleAt, saveAt), func() bool { return l.deaf() || len(l.batches) > 0 })
		switch {
		case l.deaf():
		case len(l.batches) > 0:
			if !l.take() {
				break
			}
			settleAt = min(settleAt, c.at(c.Boot()+50*time.Millisecond))
			saveAt = min(saveAt, c.at(c.Boot()+time.Second))
		case w.now >= settleAt:
			settleAt = never
			if err := l.service.Settle(l.listening); err != nil {
				w.note(l.process.name, " settle: %v", err)
			}
		case w.now >= saveAt:
			saveAt = never
			l.service.Save(l.listening)
		}
	}
	l.service.Save(context.WithoutCancel(l.listening))
}

func (l *leadership) take() bool {
	var records []kafka.Record
	after := map[int]kafka.Position{}
	for _, b := range l.batches {
		records = append(records, b.records...)
		after[b.partition] = b.after
	}
	l.batches = nil
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := l.service.Round(l.listening, records, after)
		if err == nil {
			return true
		}
		l.world.note(l.process.name, " ingest: %v", err)
		if l.world.rest(pause, l.deaf); l.deaf() {
			return false
		}
	}
}

// watch is the monitor's loop.
func (l *leadership) watch() {
	w, c := l.world, l.process.clock
	next := w.now
	for !l.over() {
		var woken, wished bool
		w.park(next, func() bool {
			woken = taken(l.nodes)
			wished = !woken && taken(l.wishes)
			return l.over() || woken || wished
		})
		if l.over() {
			return
		}
		if wished {
			if err := l.monitor.Wishes(l.acting); err != nil {
				w.note(l.process.name, " wishes: %v", err)
			}
			l.rest(10 * time.Millisecond)
			continue
		}
		soon, err := l.monitor.Round(l.acting)
		if err != nil {
			w.note(l.process.name, " monitor: %v", err)
		}
		wait := l.cfg.watch
		if soon {
			wait = 20 * time.Millisecond
		}
		next = c.at(c.Boot() + wait)
	}
}

// place is the dispatcher's loop.
func (l *leadership) place() {
	w, c := l.world, l.process.clock
	next, pause := w.now, time.Duration(0)
	for !l.over() {
		w.park(next, func() bool { return l.over() || taken(l.work) })
		look := w.now >= next
		for more := true; more && !l.over(); {
			out, err := l.dispatcher.Round(l.acting, look)
			look = false
			more = out.More && err == nil && out.Failed == 0
			if err == nil && out.Failed == 0 {
				pause = 0
				continue
			}
			w.note(l.process.name, " dispatch: %d failed, %v", out.Failed, err)
			pause = min(max(2*pause, 50*time.Millisecond), 2*time.Second)
		}
		if pause > 0 {
			l.rest(pause)
			l.work.Signal()
		}
		next = c.at(c.Boot() + l.cfg.interval)
	}
}

// keepTimes is the agenda's loop.
func (l *leadership) keepTimes() {
	w, c := l.world, l.process.clock
	next := w.now
	for !l.over() {
		w.park(next, func() bool { return l.over() || taken(l.times) })
		if l.over() {
			return
		}
		at, err := l.agenda.Round(l.acting)
		wait := 5 * time.Second
		switch {
		case err != nil:
			w.note(l.process.name, " agenda: %v", err)
			wait = 500 * time.Millisecond
		case at > 0:
			wait = min(wait, max(time.UnixMilli(at).Sub(c.Now()), 10*time.Millisecond))
		}
		next = c.at(c.Boot() + wait)
	}
}

// lineTransport has the real transport publish one event after the other, in an order that the seed picks, where it would do several at
// once by goroutines of its own.
type lineTransport struct {
	c  *controller
	to *transport.Kafka
}

// Assign publishes claims.
func (t *lineTransport) Assign(ctx context.Context, term int64, batches []transport.Batch) []transport.Result {
	results := make([]transport.Result, len(batches))
	for _, i := range t.c.world.rng.Perm(len(batches)) {
		results[i] = t.to.Assign(ctx, term, batches[i:i+1])[0]
		if !t.c.guards.giveBackUnknown {
			continue
		}
		for j, o := range results[i].Outcomes {
			if o == transport.Unknown {
				results[i].Outcomes[j] = transport.NotSent
			}
		}
	}
	return results
}

// Settle tells nodes what is settled.
func (t *lineTransport) Settle(ctx context.Context, term int64, list []transport.Settlement) (err error) {
	sortBy(list, func(s transport.Settlement) string { return s.To.Node + " " + s.To.Incarnation }) // it comes off a map
	for i := range list {
		if e := t.to.Settle(ctx, term, list[i:i+1]); e != nil && err == nil {
			err = e
		}
	}
	return err
}

// Control gives nodes orders.
func (t *lineTransport) Control(ctx context.Context, term int64, list []transport.Orders) (err error) {
	for i := range list {
		if e := t.to.Control(ctx, term, list[i:i+1]); e != nil && err == nil {
			err = e
		}
	}
	return err
}

// Fence tells nodes to stop.
func (t *lineTransport) Fence(ctx context.Context, term int64, list []fleet.Target) (err error) {
	for i := range list {
		t.c.world.note(t.c.process.name, "fences %s", list[i].Incarnation)
		if e := t.to.Fence(ctx, term, list[i:i+1]); e != nil && err == nil {
			err = e
		}
	}
	return err
}

// Confirm confirms heartbeats.
func (t *lineTransport) Confirm(ctx context.Context, term int64, list []transport.Confirmation) (err error) {
	for i := range list {
		if e := t.to.Confirm(ctx, term, list[i:i+1]); e != nil && err == nil {
			err = e
		}
	}
	return err
}

// Tell announces the term.
func (t *lineTransport) Tell(ctx context.Context, term int64, partitions []int) []error {
	errs := make([]error, len(partitions))
	for i := range partitions {
		errs[i] = t.to.Tell(ctx, term, partitions[i:i+1])[0]
	}
	return errs
}

var (
	_ dispatcher.Transport = (*lineTransport)(nil)
	_ monitor.Transport    = (*lineTransport)(nil)
	_ ingest.Transport     = (*lineTransport)(nil)
	_ placement.Strategy   = placement.LeastTasks
)
