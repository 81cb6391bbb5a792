package main

import (
	"slices"
	"time"
)

// outages are the faults of seeds in which nothing goes wrong but that a dependency goes away or hangs, and that
// controllers stop or crash while another one is there: what guarantee 4 is about. They keep within its limits
// (docs/guarantees.md):
//
//   - Redis, Kafka and the store are away one at a time, or Redis together with the store; and between Redis and Kafka
//     all have the time to notice.
//   - While Redis and the store are away, for whomever, a leader is there that was there before, and lives on.
//   - They begin when all nodes are registered: a node that joins needs both.
var outages = []kind{{"outage", (*fate).outage}, {"stalls", (*fate).stalls}, {"hand-over", (*fate).handOver}}

func outageNamed(name string) bool {
	return slices.ContainsFunc(outages, func(k kind) bool { return k.name == name })
}

// away is what the outages have taken away.
type away struct {
	count [services]int           // outages under way
	ended [services]time.Duration // when the last one ended
}

// noticed is how long after Redis's return Kafka stays, and the other way round; and how long a leader has led before
// it may go.
const noticed = 5 * time.Second

// may reports whether services may go away now.
func (f *fate) may(list ...service) bool {
	gone, now := f.away.count, f.world.now
	for _, s := range list {
		gone[s]++
	}
	recent := func(s service) bool { return gone[s] > 0 || f.away.ended[s] > 0 && now-f.away.ended[s] < noticed }
	switch {
	case f.over || !f.joined():
		return false
	case gone[busService] > 0 && (recent(registryService) || recent(storeService)):
		return false
	case gone[busService] == 0 && recent(busService):
		return false
	}
	return gone[registryService] == 0 || gone[storeService] == 0 || f.known() != nil
}

// joined reports whether all nodes are registered, and none is about to end.
func (f *fate) joined() bool {
	return !slices.ContainsFunc(f.workers, func(n *worker) bool {
		return n.session == nil || n.session.TrustedUntil() == 0 || n.session.IsLost()
	})
}

// known returns a controller that leads and knows it, whether it acts yet or not; nil if there is none.
func (f *fate) known() *controller {
	doc, err := f.truth.mem.Leader(background)
	if err != nil {
		panic(err) // the memory store always answers
	}
	for _, c := range f.controllers {
		if _, lease := c.elector.Present(); !c.process.dead && !c.stopping && lease != nil && lease.Wrote(doc) {
			return c
		}
	}
	return nil
}

// outage takes one service away, or Redis with the store, from everybody or from one process.
func (f *fate) outage() {
	w := f.world
	list := [][]service{{registryService}, {registryService}, {busService}, {storeService}, {registryService, storeService}}[w.rng.IntN(5)]
	var p *process
	if w.chance(500) {
		if p = f.anyProcess(); slices.Contains(list, storeService) {
			_, c := f.anyController()
			p = c.process
		}
	}
	if f.may(list...) {
		for _, s := range list {
			f.takeAway(s, p, f.outageFor())
		}
	}
}

func (f *fate) outageFor() time.Duration {
	if f.world.chance(200) {
		return f.world.between(15*time.Second, 70*time.Second)
	}
	return f.duration()
}

// takeAway takes a service away from a process, or from everybody.
func (f *fate) takeAway(s service, p *process, d time.Duration) {
	at, who := &f.net.down[s], "everybody"
	if p != nil {
		at, who = &p.links[s], p.name
	}
	if *at != (link{}) || p != nil && p.dead {
		return
	}
	*at = []link{{refused: true}, {cut: true, late: 200}, {deaf: true}}[f.world.rng.IntN(3)]
	f.world.note("fate", "the %s and %s: %s for %v", s, who, *at, d)
	f.away.count[s]++
	f.lasting(d, func() {
		f.world.note("fate", "the %s is back for %s", s, who)
		*at = link{}
		f.away.count[s]--
		f.away.ended[s] = f.world.now
	})
}

// stalls has the store stall while Redis is away, until a new leader is chosen, and then again before that one has
// begun.
func (f *fate) stalls() {
	w := f.world
	if f.away.count[registryService] == 0 && f.may(registryService) {
		f.takeAway(registryService, nil, w.between(20*time.Second, 40*time.Second))
	}
	if f.away.count[registryService] == 0 || f.away.count[storeService] > 0 || f.truth.chosen != nil || !f.may(storeService) {
		return
	}
	f.takeAway(storeService, nil, w.between(2*time.Second, 4*time.Second))
	f.truth.chosen = func() {
		w.after(w.between(0, 40*time.Millisecond), func() {
			if !f.over && f.away.count[registryService] > 0 && f.away.count[storeService] == 0 {
				f.takeAway(storeService, nil, w.between(3*time.Second, 12*time.Second))
			}
		})
	}
	f.lasting(8*time.Second, func() { f.truth.chosen = nil })
}

// handOver stops a controller, or has it crash, while another one is there, and none has begun to lead a short time
// ago.
func (f *fate) handOver() {
	w := f.world
	i, c := f.anyController()
	other, led := false, false
	for _, o := range f.controllers {
		lives := !o.process.dead && !o.stopping
		other = other || o != c && lives
		led = led || lives && o.leading() != nil && w.now-o.session.acts > noticed
	}
	switch {
	case c.process.dead || c.stopping || !other || !led:
		return
	case f.away.count[registryService] > 0 && f.away.count[storeService] > 0:
		return
	}
	if w.chance(500) {
		w.note(c.process.name, "is told to stop")
		c.stop()
	} else {
		w.note(c.process.name, "CRASHES")
		w.kill(c.process)
	}
	w.after(w.between(time.Second, 8*time.Second), func() { f.reviveController(i) })
}
