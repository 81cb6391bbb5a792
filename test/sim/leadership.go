package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/skalds-go/skalds/controller/election"
	"github.com/skalds-go/skalds/controller/fairqueue"
	"github.com/skalds-go/skalds/controller/ingest"
	"github.com/skalds-go/skalds/controller/monitor"
	"github.com/skalds-go/skalds/controller/term"
	"github.com/skalds-go/skalds/controller/transport"
	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/events/quarantine"
	"github.com/skalds-go/skalds/pkg/loop"
	"github.com/skalds-go/skalds/pkg/task"
)

// leadership is what the simulation knows of one term, which runs as it does in production.
type leadership struct {
	lease  *election.Lease
	term   *term.Term
	seen   int64         // version of the newest settings that it has seen
	goesBy int64         // what that was when the dispatcher's round began
	primed time.Duration // when it began to take in what nodes hold
	acts   time.Duration // when it began to act
}

// policy retries failed tasks soon, so that all of them end in the time of a simulation.
var policy = task.Policy{MaxAttempts: 3, MaxCrashes: 3, Backoff: task.Backoff{BaseMs: 500, Factor: 2, MaxMs: 5000}}

var quiet = slog.New(slog.DiscardHandler)

// terms returns the holder of this controller's terms.
func (c *controller) terms() *term.Holder {
	cfg := term.Config{
		Controller: c.id, Dispatch: true,
		Heartbeat: c.cfg.heartbeat, LostAfter: c.cfg.lostAfter, Drift: c.cfg.lostAfter / 10,
		ResendAfter: c.cfg.resendAfter, CompareInterval: 5 * time.Second, MonitorInterval: c.cfg.watch, DispatchInterval: c.cfg.interval,
		CancelGrace: cancelGrace, Retention: c.cfg.retention,
		Strategy: c.cfg.strategy, Order: fairqueue.Config{Mode: c.cfg.order, Aging: 20 * time.Second},
		MaxPending: c.cfg.maxPending, TaskMaxBytes: 1 << 18, Policy: policy,
	}
	if c.guards.noDrift {
		cfg.Drift = 0
	}
	if c.guards.noResend {
		cfg.ResendAfter = never
	}
	runner := c.process.runner()
	runner.Watch = func(l loop.Loop) loop.Loop { return c.watch(c.pace(l)) }
	deps := term.Deps{
		Store: c.store(""), Registry: c.registry(), Bus: c.bus(), Clock: c.process.clock, Runner: runner, Log: quiet,
		Open: func(topic string, partition int, from kafka.Position) ingest.Reader {
			return c.bus().Reader(topic, partition, from)
		},
		Transport: &serialTransport{c: c, to: transport.NewKafka(c.bus(), c.id, events.DefaultMaxBytes, c.process.clock.Now),
			sent: map[string]bool{}},
		Quarantine: quarantine.New(c.bus(), c.process.clock, quiet),
		Dispatched: c.dispatch, Ingested: c.ingest,
		Seed: c.world.rng.Uint64, Jitter: c.world.rng.Float64,
		Beginning: c.beginning,
	}
	if c.guards.noBarrier {
		deps.Progress = func(monitor.Progress) monitor.Progress { return arrived{} }
	}
	return term.NewHolder(cfg, deps, c.notices)
}

// begin begins a term.
func (c *controller) begin(ctx context.Context, lease *election.Lease) election.Term {
	c.session = &leadership{lease: lease}
	t := c.holder.Begin(ctx, lease)
	return t
}

// beginning watches the steps of a term's beginning. Without its guard, the term listens only after it knows from where
// to read reports.
func (c *controller) beginning(t *term.Term, steps []term.Step) []term.Step {
	l := c.session
	l.term = t
	if c.guards.noListen {
		steps[0], steps[1], steps[2] = steps[1], steps[2], steps[0]
	}
	last := &steps[len(steps)-1]
	prime := last.Do
	last.Do = func(ctx context.Context) error {
		l.primed = c.world.now
		err := prime(ctx)
		if err == nil {
			c.world.note(c.process.name, "begins to act as leader of term %d", l.lease.Term())
			l.acts = c.world.now
		}
		return err
	}
	return steps
}

// watch notes by which settings a round of the dispatcher goes, and what fails.
func (c *controller) watch(l loop.Loop) loop.Loop {
	step, name, of := l.Step, l.Name, c.session
	l.Step = func(ctx context.Context, by loop.Wake) (loop.Next, error) {
		if name == "dispatcher" {
			of.goesBy = of.seen
		}
		next, err := step(ctx, by)
		if err != nil {
			c.world.note(c.process.name, " %s: %v", name, err)
		}
		return next, err
	}
	return l
}

// leading returns the term that acts; nil if there is none.
func (c *controller) leading() *leadership {
	if c.process.dead || c.session == nil || c.holder.Acting() == nil {
		return nil
	}
	return c.session
}
