package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/skalds-go/skalds/controller/dispatcher"
	"github.com/skalds-go/skalds/controller/election"
	"github.com/skalds-go/skalds/controller/ingest"
	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/store"
)

// controller is one controller process: the rounds that package controller composes, called by threads. Its loops do what those do, without
// their channels.
type controller struct {
	*cluster
	process  *process
	id       string
	elector  *election.Elector
	work     dispatcher.Wake
	room     dispatcher.Wake
	nodes    dispatcher.Wake
	wishes   dispatcher.Wake
	times    dispatcher.Wake
	notice   dispatcher.Wake
	news     map[string]bool // tasks whose attachments are new, for the next notice
	session  *leadership     // nil while it follows
	stopping bool
	dispatch *dispatcher.Metrics
	ingest   *ingest.Metrics
}

func (cl *cluster) startController(name string) *controller {
	cl.started++
	c := &controller{cluster: cl, process: cl.world.process(name, cl.speed()), id: fmt.Sprintf("%s.%d-------", name, cl.started)[:8],
		work: dispatcher.NewWake(), room: dispatcher.NewWake(), nodes: dispatcher.NewWake(), wishes: dispatcher.NewWake(), times: dispatcher.NewWake(), notice: dispatcher.NewWake(), news: map[string]bool{}}
	reg := prometheus.NewRegistry()
	c.dispatch, c.ingest = dispatcher.NewMetrics(reg), ingest.NewMetrics(reg)
	c.elector = election.New(election.Config{ID: c.id, Address: name, Mode: "DISPATCHER", Lease: cl.cfg.lease}, c.store(roleLeader), c.process.clock)
	cl.world.note(name, "starts as %s, its clock at %d/1000000", c.id, c.process.clock.speed)
	c.process.spawn("lead", c.lead)
	c.process.spawn("notices", c.notices)
	return c
}

func (c *controller) store(as role) *seamStore {
	return &seamStore{truth: c.truth, process: c.process, role: as}
}
func (c *controller) bus() *seamBus { return &seamBus{broker: c.broker, process: c.process} }
func (c *controller) registry() *seamRegistry {
	return &seamRegistry{redis: c.redis, process: c.process, noWait: c.guards.noWait}
}

// lead takes part in the election until the process stops. A leadership whose lease is over acts no more, but goes on listening until the
// document is seen not to be of it any more.
func (c *controller) lead() {
	w := c.world
	var present *election.Lease
	for !c.stopping {
		ctx, cancel := context.WithTimeout(background, c.cfg.lease)
		lease, err := c.elector.Round(ctx)
		cancel()
		if err != nil {
			w.note(c.process.name, " leader round: %v", err)
		}
		if lease != present {
			present = lease
			c.session.stopActing()
		}
		doc, _ := c.elector.Present()
		if l := c.session; l != nil && !l.lease.Wrote(doc) {
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
	if err := c.elector.Release(ctx); err != nil {
		w.note(c.process.name, " release: %v", err)
	}
	w.note(c.process.name, "has stopped")
	w.kill(c.process)
}

// wake is what the API of this controller calls when tasks or wishes were stored.
func (c *controller) wake() {
	if c.session != nil && c.session.leading {
		c.stored()
		return
	}
	c.notice.Signal()
}

// updated is what the API calls when a task has got new attachments. A wake follows.
func (c *controller) updated(id string) {
	if c.session != nil && c.session.leading {
		c.session.monitor.Updated([]string{id})
		return
	}
	c.news[id] = true
}

// steered is what the API calls when the dispatcher's settings were stored.
func (c *controller) steered(d store.Dispatcher) {
	if c.session != nil && c.session.leading {
		c.session.use(d)
	}
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
		values, err := events.EncodeStatus(events.Status{At: c.process.clock.Now().UnixMilli(), Notice: events.NoticeSubmitted,
			Updated: slices.Sorted(maps.Keys(c.news))}, events.DefaultMaxBytes)
		if err != nil {
			panic(err)
		}
		clear(c.news)
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
