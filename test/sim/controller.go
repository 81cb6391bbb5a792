package main

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/skalds-go/skalds/controller/dispatcher"
	"github.com/skalds-go/skalds/controller/election"
	"github.com/skalds-go/skalds/controller/ingest"
	"github.com/skalds-go/skalds/controller/notice"
	"github.com/skalds-go/skalds/controller/term"
	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/pkg/store"
)

// controller is one controller process: the loops of production, run by the simulation's driver.
type controller struct {
	*cluster
	process  *process
	id       string
	elector  *election.Elector
	notices  *notice.Notifier
	holder   *term.Holder
	session  *leadership // the last one; nil before the first
	dispatch *dispatcher.Metrics
	ingest   *ingest.Metrics
	stopping bool
	cancel   context.CancelFunc
}

func (cl *cluster) startController(name string) *controller {
	cl.started++
	c := &controller{cluster: cl, process: cl.world.process(name, cl.speed()), id: fmt.Sprintf("%s.%d-------", name, cl.started)[:8]}
	reg := prometheus.NewRegistry()
	c.dispatch, c.ingest = dispatcher.NewMetrics(reg), ingest.NewMetrics(reg)
	c.notices = notice.New(c.bus(), c.process.clock, events.DefaultMaxBytes)
	c.holder = c.terms()
	c.elector = election.New(election.Config{ID: c.id, Address: name, Mode: "DISPATCHER", Lease: cl.cfg.lease}, c.store(roleLeader), c.process.clock)
	cl.world.note(name, "starts as %s, its clock at %d/1000000", c.id, c.process.clock.speed)
	ctx, cancel := context.WithCancel(background)
	c.cancel = cancel
	loops := c.process.runner().Group(ctx)
	c.process.spawn("main", func() {
		loops.Start(c.notices.Loop(), c.elector.Loop(c.begin, quiet))
		loops.Wait()
		cl.world.note(name, "has stopped")
		cl.world.kill(c.process)
	})
	return c
}

// stop tells the process to stop.
func (c *controller) stop() {
	c.stopping = true
	c.cancel()
}

func (c *controller) store(as role) *seamStore {
	return &seamStore{truth: c.truth, process: c.process, role: as, controller: c}
}
func (c *controller) bus() *seamBus { return &seamBus{broker: c.broker, process: c.process} }
func (c *controller) registry() *seamRegistry {
	return &seamRegistry{redis: c.redis, process: c.process, noWait: c.guards.noWait}
}

// settingsStored is what the API calls when the dispatcher's settings were stored.
func (c *controller) settingsStored(d store.Dispatcher) {
	if l := c.leading(); l != nil {
		l.seen = max(l.seen, d.Version)
	}
	c.holder.SettingsStored(d)
}
