package main

import (
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/registry"
)

func (f *fate) crashNode() {
	_, n := f.anyWorker()
	if n.process.dead {
		return
	}
	f.soon(n.process, func() {
		f.world.note(n.id, "CRASHES")
		if f.world.chance(150) && n.file != nil {
			f.world.note(n.id, "and its machine with it")
			n.file.boots++
		}
		n.crash(f.world.between(0, 14*time.Second))
	}, nodeLoops...)
}

// twin starts a second process under the id of a node that stands still for a while. The first one goes on to live
// until the faults are over.
func (f *fate) twin() {
	i, n := f.anyWorker()
	if n.process.dead || n.process.frozen {
		return
	}
	f.freeze(n.process, f.duration(), nodeLoops...)
	f.world.after(f.world.between(0, 4*time.Second), func() {
		if f.over || f.workers[i] != n || n.process.dead {
			return
		}
		f.world.note(n.id, "is started a second time")
		f.workers[i] = f.startWorker(n.id)
		f.mending = append(f.mending, func() {
			f.world.note(n.id, "the first of two is killed")
			f.world.kill(n.process)
		})
	})
}

func (f *fate) crashController() {
	i, c := f.anyController()
	if c.process.dead {
		return
	}
	f.soon(c.process, func() {
		f.world.note(c.process.name, "CRASHES")
		f.world.kill(c.process)
		f.world.after(f.world.between(0, 8*time.Second), func() { f.reviveController(i) })
	}, controllerLoops...)
}

// reviveAgain is the time after which what still stops is looked at again.
const reviveAgain = time.Second

func (f *fate) reviveController(i int) {
	switch c := f.controllers[i]; {
	case c.process.dead:
		f.controllers[i] = f.startController(c.process.name)
	case c.stopping:
		f.world.after(reviveAgain, func() { f.reviveController(i) })
	}
}

func (f *fate) freeze(p *process, d time.Duration, loops ...string) {
	if p.dead || p.frozen {
		return
	}
	f.soon(p, func() {
		f.world.note(p.name, "STANDS STILL for %v", d)
		f.world.freeze(p)
		f.lasting(d, func() {
			if p.frozen {
				f.world.note(p.name, "goes on")
				f.world.thaw(p)
			}
		})
	}, loops...)
}

func (f *fate) freezeNode() {
	_, n := f.anyWorker()
	f.freeze(n.process, f.duration(), nodeLoops...)
}

// freezeController is aimed at the leader, most of the time for about as long as another one needs to take over.
func (f *fate) freezeController() {
	_, c := f.anyController()
	for _, o := range f.controllers {
		if o.session != nil && f.world.chance(700) {
			c = o
		}
	}
	d := f.world.between(2*time.Second, 5*time.Second)
	if f.world.chance(250) {
		d = f.duration()
	}
	f.freeze(c.process, d, controllerLoops...)
}

func (f *fate) stopNode() {
	i, n := f.anyWorker()
	if n.process.dead || n.stopping {
		return
	}
	f.soon(n.process, func() {
		f.world.note(n.id, "is told to stop")
		n.stop()
		f.world.after(f.world.between(5*time.Second, 10*time.Second), func() { f.reviveWorker(i) })
	}, nodeLoops...)
}

func (f *fate) stopController() {
	i, c := f.anyController()
	if c.process.dead || c.stopping {
		return
	}
	f.soon(c.process, func() {
		f.world.note(c.process.name, "is told to stop")
		c.stop()
		f.world.after(f.world.between(time.Second, 8*time.Second), func() { f.reviveController(i) })
	}, controllerLoops...)
}

// cut breaks the way from a process to one service, or to all of them.
func (f *fate) cut() {
	p := f.anyProcess()
	l := link{}
	switch f.world.rng.IntN(3) {
	case 0:
		l.refused = true
	case 1:
		l.cut, l.late = true, 200
	default:
		l.deaf = true
	}
	d := f.duration()
	from := f.world.chance(400) // from all
	for s := range services {
		if from || f.world.chance(450) {
			f.world.note("fate", "%s and the %s: %s for %v", p.name, s, l, d)
			p.links[s] = l
			f.lasting(d, func() { p.links[s] = link{} })
		}
	}
}

// hush makes the registry's answers to a node late, and then cuts it off: a heartbeat whose answer came late was its
// last one. One node at a time, so that others can take its work.
func (f *fate) hush() {
	_, n := f.anyWorker()
	p := n.process
	if f.hushed {
		return
	}
	f.hushed = true
	f.world.note("fate", "the registry's answers to %s are late, and then it is cut off", p.name)
	p.links[registryService] = link{slow: 900 * time.Millisecond}
	f.world.after(f.world.between(time.Second, 4*time.Second), func() {
		if !f.over {
			p.links[registryService], p.links[busService] = link{cut: true}, link{cut: true}
		}
	})
	f.lasting(f.world.between(10*time.Second, 16*time.Second), func() {
		f.hushed = false
		p.links = [services]link{}
	})
}

func (f *fate) lossy() {
	p, s := f.anyProcess(), service(f.world.rng.IntN(int(services)))
	l := link{lossy: 50 + f.world.rng.IntN(300), late: f.world.rng.IntN(500)}
	d := f.duration()
	f.world.note("fate", "%s and the %s: %s for %v", p.name, s, l, d)
	p.links[s] = l
	f.lasting(d, func() { p.links[s] = link{} })
}

func (f *fate) slow() {
	p, s := f.anyProcess(), service(f.world.rng.IntN(int(services)))
	l := link{slow: f.world.between(20*time.Millisecond, 1500*time.Millisecond)}
	d := f.duration()
	f.world.note("fate", "%s and the %s: %s for %v", p.name, s, l, d)
	p.links[s] = l
	f.lasting(d, func() { p.links[s] = link{} })
}

// down takes a service away from everybody.
func (f *fate) down() {
	s := service(f.world.rng.IntN(int(services)))
	l := link{refused: true}
	if f.world.chance(500) {
		l = link{cut: true, late: 200}
	}
	d := f.duration()
	f.world.note("fate", "the %s and everybody: %s for %v", s, l, d)
	f.net.down[s] = l
	f.lasting(d, func() { f.net.down[s] = link{} })
}

// minority takes the store's majority away, often in the middle of what a leader does.
func (f *fate) minority() {
	_, c := f.anyController()
	if c.session != nil && !c.process.dead && f.world.chance(600) {
		f.soon(c.process, f.split, controllerLoops...)
		return
	}
	f.split()
}

// undoing refuses the leader the bus for a moment, and as soon as it has noticed, in the middle of what it undoes,
// takes the majority away, or lets its requests to the store be under way for long.
func (f *fate) undoing() {
	for _, c := range f.controllers {
		if c.session == nil || c.process.dead {
			continue
		}
		p := c.process
		f.world.note("fate", "%s and the bus: connections refused, and no majority from then on", p.name)
		p.links[busService] = link{refused: true}
		f.net.refused = func(*process, service) {
			if f.world.chance(500) {
				f.world.after(f.world.between(0, 4*time.Millisecond), f.split)
			} else {
				p.links[storeService] = link{cut: true, late: 900}
				f.lasting(f.world.between(time.Second, 8*time.Second), func() { p.links[storeService] = link{} })
			}
			f.world.after(f.world.between(0, 2*time.Second), func() { p.links[busService] = link{} })
		}
		f.lasting(8*time.Second, func() {
			f.net.refused = nil
			p.links[busService] = link{}
		})
	}
}

func (f *fate) split() {
	if f.truth.minority || f.over {
		return
	}
	f.truth.split()
	d := f.world.between(200*time.Millisecond, 6*time.Second)
	f.world.note("fate", "the store has no majority for %v", d)
	f.lasting(d, func() {
		kept := f.world.chance(500)
		f.world.note("fate", "the store has a majority again; of %d writes all are taken over: %t", len(f.truth.pending), kept)
		f.truth.heal(kept)
	})
}

func (f *fate) registry() {
	switch f.world.rng.IntN(4) {
	case 0:
		f.world.note("fate", "the registry restarts empty")
		f.redis.restart(nil)
	case 1:
		f.world.note("fate", "the registry restarts")
		f.redis.save()
		f.redis.restart(f.redis.saved)
	default:
		f.redis.save()
		saved := append([]registry.Node(nil), f.redis.saved...)
		f.lasting(f.world.between(100*time.Millisecond, 8*time.Second), func() {
			f.world.note("fate", "the registry goes back to an older state of %d nodes", len(saved))
			f.redis.restart(saved)
		})
	}
}

func (f *fate) topics() {
	topics := events.Topics()
	name := topics[f.world.rng.IntN(len(topics))].Name
	if f.world.chance(400) {
		f.world.note("fate", "%s is made anew", name)
		for i := range f.broker.topics[name] {
			f.broker.lose(name, i, 0)
		}
		return
	}
	i := f.world.rng.IntN(len(f.broker.topics[name]))
	n := len(f.broker.topics[name][i].records)
	lost := f.world.rng.IntN(min(n, 8) + 1)
	f.world.note("fate", "%s, partition %d loses its last %d records", name, i, lost)
	f.broker.lose(name, i, n-lost)
}

// orders loses the commands that the leader sends next.
func (f *fate) orders() {
	f.broker.spoil = true
	f.lasting(f.duration(), func() { f.broker.spoil = false })
}

// poison writes records that do not decode.
func (f *fate) poison() {
	w := f.world
	topics := events.Topics()
	name := topics[w.rng.IntN(len(topics))].Name
	i := w.rng.IntN(len(f.broker.topics[name]))
	values := []string{"", "null", "{", "\x00\xff", `{"version":99}`, `{"version":1,"tasks":7}`, `[1]`}
	w.note("fate", "%s, partition %d is poisoned", name, i)
	p := f.broker.topics[name][i]
	for range 1 + w.rng.IntN(3) {
		f.broker.add(p, i, kafka.Record{Value: []byte(values[w.rng.IntN(len(values))])})
	}
	f.broker.wake(p)
}

// maxPartitions bounds those of a topic.
const maxPartitions = 6

// grow adds a partition to each topic, one topic after the other.
func (f *fate) grow() {
	for _, t := range events.Topics() {
		if t.Single {
			continue
		}
		f.world.after(f.world.between(0, time.Second), func() {
			if n := len(f.broker.topics[t.Name]); n < maxPartitions {
				f.world.note("fate", "%s has %d partitions", t.Name, n+1)
				f.broker.topics[t.Name] = append(f.broker.topics[t.Name], &partition{})
			}
		})
	}
}

// lag cuts the registry's replica off from its master for a while.
func (f *fate) lag() {
	r := f.redis
	if r.wait == 0 || r.broken {
		return
	}
	f.world.note("fate", "the registry's replica gets nothing")
	r.broken = true
	f.lasting(f.duration(), func() {
		f.world.note("fate", "the registry's replica has all again")
		r.follow()
	})
}

// failover makes the registry's replica its master. Some processes do not notice for a while.
func (f *fate) failover() {
	r := f.redis
	if r.wait == 0 || len(r.astray) > 0 {
		return
	}
	f.world.note("fate", "the registry fails over")
	astray := map[*process]bool{}
	for _, n := range f.workers {
		astray[n.process] = f.world.chance(500)
	}
	for _, c := range f.controllers {
		astray[c.process] = f.world.chance(250)
	}
	r.failover(astray)
	f.lasting(f.world.between(time.Second, 16*time.Second), func() {
		f.world.note("fate", "the registry's old master follows the new one")
		r.follow()
	})
}

// stall lets a process read nothing from the bus.
func (f *fate) stall() {
	p := f.anyProcess()
	d := f.world.between(500*time.Millisecond, 14*time.Second)
	f.world.note("fate", "%s reads nothing from the bus for %v", p.name, d)
	p.stalled = f.world.now + d
}

func (f *fate) double() {
	f.broker.double = 100
	f.world.note("fate", "records double")
	f.lasting(f.duration(), func() { f.broker.double = 0 })
}
