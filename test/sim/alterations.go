package main

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/store"
)

// alterations are the changes that people make to the dispatcher's settings at run time.
var alterations = []struct {
	name string
	do   func(d *store.Dispatcher, rng *rand.Rand)
}{
	{"pause or resume the dispatcher", func(d *store.Dispatcher, _ *rand.Rand) { d.Paused = !d.Paused }},
	{"pause or resume a class", func(d *store.Dispatcher, rng *rand.Rand) {
		d.PausedClasses = toggle(d.PausedClasses, []string{class, sideClass}[rng.IntN(2)])
	}},
	{"pause or resume a namespace", func(d *store.Dispatcher, rng *rand.Rand) {
		d.PausedNamespaces = toggle(d.PausedNamespaces, []string{"", "a", "b"}[rng.IntN(3)])
	}},
	{"limit a namespace", func(d *store.Dispatcher, rng *rand.Rand) {
		d.NamespaceLimits = map[string]int{[]string{"", "a", "b"}[rng.IntN(3)]: rng.IntN(4)}
	}},
	{"change the pools", func(d *store.Dispatcher, rng *rand.Rand) {
		d.Pools = pools()
		if name := []string{"p1", "p2"}[rng.IntN(2)]; rng.IntN(4) == 0 {
			delete(d.Pools, name)
		} else {
			d.Pools[name] = rng.IntN(4)
		}
	}},
	{"limit the rate", func(d *store.Dispatcher, rng *rand.Rand) { d.Rate = new(rate(rng)) }},
	{"limit the rate of a class", func(d *store.Dispatcher, rng *rand.Rand) {
		d.ClassRates = map[string]store.Rate{[]string{class, sideClass}[rng.IntN(2)]: rate(rng)}
	}},
	{"limit the rate of nodes", func(d *store.Dispatcher, rng *rand.Rand) {
		d.NodeRates = map[string]store.Rate{[]string{store.AnyNode, "n1", "n2"}[rng.IntN(3)]: rate(rng)}
	}},
	{"change the strategy", func(d *store.Dispatcher, rng *rand.Rand) {
		d.Strategy = string(placement.Strategies()[rng.IntN(len(placement.Strategies()))])
	}},
	{"lift all", lift},
}

// lift takes back all but the pools, which tasks need.
func lift(d *store.Dispatcher, _ *rand.Rand) {
	*d = store.Dispatcher{Version: d.Version, Pools: pools()}
}

func toggle(list []string, name string) []string {
	if i := slices.Index(list, name); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return append(list, name)
}

func rate(rng *rand.Rand) store.Rate {
	return store.Rate{PerSecond: float64(rng.IntN(16)) / 4, Burst: 1 + rng.IntN(3)}
}

// alterSettings changes the dispatcher's settings from time to time.
func (p *people) alterSettings() {
	w := p.world
	p.liftAll()
	for range p.cfg.settingsChanges {
		w.park(w.now+w.between(0, 2*p.cfg.faults/time.Duration(p.cfg.settingsChanges+1)), nil)
		if w.now >= p.cfg.faults {
			break
		}
		a := alterations[w.rng.IntN(len(alterations))]
		p.set(a.name, a.do)
	}
}

// liftAll returns when all limits and pauses are lifted.
func (p *people) liftAll() {
	for !p.set("lift all", lift) {
		p.world.park(p.world.now+time.Second, nil)
	}
}

// set changes the settings, as the API does. It reports false if nobody knows whether that is stored.
func (p *people) set(name string, alter func(d *store.Dispatcher, rng *rand.Rand)) bool {
	for range maxSwaps {
		d, err := p.store.Dispatcher(background)
		if err != nil {
			return false
		}
		d = d.Clone()
		alter(&d, p.world.rng)
		ok, err := p.store.SwapDispatcher(background, d)
		if err != nil {
			return false
		}
		if ok {
			d.Version++
			p.world.note("people", "%s: version %d", name, d.Version)
			p.notify(func(c *controller) { c.settingsStored(d) })
			return true
		}
	}
	return false
}
