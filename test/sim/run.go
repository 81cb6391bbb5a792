package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/skalds-go/skalds/controller/fairqueue"
	"github.com/skalds-go/skalds/controller/placement"
)

// outcome is what one seed came to.
type outcome struct {
	seed       uint64
	violations []string
	history    *history
	turns      int
	took       time.Duration   // virtual
	threads    map[string]bool // names of the threads that ran
}

// options select what is simulated.
type options struct {
	nodes, tasks int      // 0 = as the seed says
	calm         bool     // without faults
	keys         bool     // most tasks have a concurrency key
	pending      int      // DISPATCHER_MAX_PENDING; 0 = as the seed says
	only         []string // the kinds of fault; empty = as the seed says
	keep         bool     // keep the timeline
	guards       guards
}

// maxTurns ends a simulation that never ends by itself.
const maxTurns = 3_000_000

// simulate runs one seed.
func simulate(t *testing.T, seed uint64, o options) (out outcome) {
	synctest.Test(t, func(*testing.T) {
		h := newHistory(o.keep)
		w := newWorld(seed, h)
		cfg := draw(w, o)
		cl := newCluster(w, cfg, o.guards)
		if !o.calm {
			cl.startFate(o.only)
		}
		out = outcome{seed: seed, history: h}
		bad := func() bool { return len(cl.check.violations) > 0 }
		end := cfg.faults + cfg.rest
		ended := w.run(func() bool { return bad() || w.now > cfg.faults && (cl.quiet() || w.now > end) }, maxTurns)
		if !bad() {
			switch {
			case !ended:
				cl.check.violate("nothing happens any more, or too much: %d turns", w.turns)
			case w.now > end:
				cl.check.finish()
				cl.check.violate("not all is over %v after the last fault: %d of %d tasks have ended, %d claims are held", cfg.rest, cl.check.ended,
					cfg.tasks, cl.held())
			default:
				// What comes late must change nothing.
				late := w.now + 5*time.Second
				if cfg.retention < time.Hour {
					late = w.now + 90*time.Second // by then what has ended must be gone
				}
				w.run(func() bool { return bad() || w.now > late }, maxTurns)
				cl.check.finish()
			}
		}
		w.close()
		out.violations, out.turns, out.took, out.threads = cl.check.violations, w.turns, w.now, w.names
	})
	return out
}

// draw picks the shape of a simulation.
func draw(w *world, o options) settings {
	s := settings{
		nodes: 3, controllers: 2, tasks: 20, capacity: 1 + w.rng.IntN(4), prefetch: w.rng.IntN(4), partitions: 1 + w.rng.IntN(3),
		strategy: placement.Strategies()[w.rng.IntN(len(placement.Strategies()))], requests: w.rng.IntN(16), longest: 15_000,
		heartbeat: time.Second, lostAfter: 8 * time.Second, stopMargin: time.Second,
		lease: 2 * time.Second, resendAfter: 2 * time.Second, interval: 5 * time.Second,
		faults: 30 * time.Second, rest: 20 * time.Minute,
	}
	s.watch = []time.Duration{time.Second, time.Second, time.Second, 200 * time.Millisecond, 200 * time.Millisecond, 100 * time.Millisecond}[w.rng.IntN(6)]
	s.resendAfter = []time.Duration{2 * time.Second, 500 * time.Millisecond, 200 * time.Millisecond}[w.rng.IntN(3)]
	if w.chance(250) {
		s.controllers = 3
	}
	if w.chance(300) {
		s.drains = 1 + w.rng.IntN(6)
	}
	if w.chance(300) {
		s.replicas = 1
	}
	s.maxPending = []int{0, 0, 4, 1000}[w.rng.IntN(4)]
	s.retention = time.Hour
	if w.chance(60) {
		s.retention = w.between(5*time.Second, 20*time.Second)
	}
	s.stateDir = w.chance(500)
	if w.chance(300) {
		s.deadly = 1 + w.rng.IntN(3)
	}
	if w.chance(500) {
		s.timed = w.rng.IntN(300)
	}
	s.order = []fairqueue.Mode{fairqueue.Strict, fairqueue.Weighted}[w.rng.IntN(2)]
	s.asks, s.keyed, s.settingsChanges, s.sideSlots = w.chance(600), 400, w.rng.IntN(12), 1+w.rng.IntN(s.capacity)
	if o.keys {
		s.asks, s.keyed, s.settingsChanges = true, 900, 0
	}
	if o.pending > 0 {
		s.maxPending = o.pending
	}
	if o.nodes > 0 {
		s.nodes = o.nodes
	}
	if o.tasks > 0 {
		s.tasks = o.tasks
	}
	if s.tasks > 200 {
		s.capacity = max(1, min(16, 900/s.nodes))
		s.longest = 5_000
	}
	s.outages = w.chance(125)
	if len(o.only) > 0 {
		s.outages = outageNamed(o.only[0])
	}
	if w.chance(350) && s.tasks > s.deadly {
		s.deaf = 1 + w.rng.IntN(s.tasks-s.deadly)
	}
	if s.outages {
		s.deadly, s.faults = 0, w.between(30*time.Second, 2*time.Minute)
	}
	s.asks = s.asks && s.nodes >= fewestNodes
	return s
}
