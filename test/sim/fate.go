package main

import (
	"slices"
	"time"
)

// fate makes things go wrong until the time of the faults is over, and then mends everything. Each seed has only a few
// kinds of fault, so that some histories have many of one kind.
type fate struct {
	*cluster
	process *process
	kinds   []kind
	mending []func() // what ends the faults that last
	over    bool
	hushed  bool // a node
	away    away
}

// kind is a kind of fault.
type kind struct {
	name string
	do   func(*fate)
}

// faults are the kinds of fault, those that happen more often more than once.
var faults = []kind{
	{"crash-node", (*fate).crashNode}, {"crash-node", (*fate).crashNode}, {"crash-controller", (*fate).crashController},
	{"freeze-node", (*fate).freezeNode}, {"twin", (*fate).twin}, {"freeze-controller", (*fate).freezeController},
	{"stop-node", (*fate).stopNode}, {"stop-controller", (*fate).stopController},
	{"cut", (*fate).cut}, {"cut", (*fate).cut}, {"lossy", (*fate).lossy}, {"slow", (*fate).slow}, {"hush", (*fate).hush},
	{"down", (*fate).down}, {"minority", (*fate).minority}, {"undoing", (*fate).undoing}, {"registry", (*fate).registry}, {"topics", (*fate).topics}, {"orders", (*fate).orders},
	{"poison", (*fate).poison}, {"grow", (*fate).grow}, {"lag", (*fate).lag}, {"failover", (*fate).failover},
	{"stall", (*fate).stall}, {"double", (*fate).double},
}

// startFate begins the faults. Only, if it is not empty, selects their kinds.
func (cl *cluster) startFate(only []string) {
	f := &fate{cluster: cl, process: cl.world.process("fate", million)}
	from := faults
	if cl.cfg.outages {
		from = outages
	}
	for len(f.kinds) < 2 {
		for _, k := range from {
			if len(only) > 0 && slices.Contains(only, k.name) || len(only) == 0 && cl.world.chance(350) {
				f.kinds = append(f.kinds, k)
			}
		}
	}
	cl.check.mended = never
	f.process.spawn("fate", f.run)
}

func (f *fate) run() {
	w := f.world
	pace := f.world.between(200*time.Millisecond, 3*time.Second)
	for {
		w.park(w.now+w.between(0, 2*pace), nil)
		if w.now >= f.cfg.faults {
			break
		}
		f.kinds[w.rng.IntN(len(f.kinds))].do(f)
	}
	w.note("fate", "the faults are over")
	f.over, f.check.mended = true, w.now
	for _, mend := range f.mending {
		mend()
	}
	for _, p := range w.all {
		p.fate = countdown{}
		p.links = [services]link{}
		p.stalled = 0
		if p.frozen {
			w.thaw(p)
		}
	}
	f.net.down = [services]link{}
	f.broker.double = 0
	for i := range f.workers {
		f.reviveWorker(i)
	}
	for i := range f.controllers {
		f.reviveController(i)
	}
}

// soon makes something happen to a process at one of its next turns, or in the middle of a step of one of its loops.
func (f *fate) soon(p *process, what func(), loops ...string) {
	if p.fate.turns > 0 {
		return
	}
	p.fate = countdown{turns: 1 + f.world.rng.IntN(60), what: what}
	if f.world.chance(600) {
		p.fate.thread, p.fate.turns = loops[f.world.rng.IntN(len(loops))], 1+f.world.rng.IntN(8)
	}
}

// The names of the loops and threads in whose middle a fault may hit. TestFaultsHitRealLoops checks that they exist.
var (
	nodeLoops       = []string{"heartbeat", "flush", "flush", "assign", "handler", "main"}
	controllerLoops = []string{"dispatcher", "dispatcher", "dispatcher", "monitor", "monitor", "ingest", "election"}
)

// lasting ends a fault after a time, or when all faults end.
func (f *fate) lasting(d time.Duration, end func()) {
	over := false
	once := func() {
		if !over {
			over = true
			end()
		}
	}
	f.world.after(d, once)
	f.mending = append(f.mending, once)
}

func (f *fate) duration() time.Duration {
	w := f.world
	switch w.rng.IntN(4) {
	case 0:
		return w.between(50*time.Millisecond, time.Second)
	case 1:
		return w.between(7*time.Second, 16*time.Second)
	}
	return w.between(time.Second, 7*time.Second)
}

func (f *fate) anyWorker() (int, *worker) {
	i := f.world.rng.IntN(len(f.workers))
	return i, f.workers[i]
}

func (f *fate) anyController() (int, *controller) {
	i := f.world.rng.IntN(len(f.controllers))
	return i, f.controllers[i]
}

// anyProcess returns a controller or a worker, with equal probability.
func (f *fate) anyProcess() *process {
	if f.world.chance(500) {
		_, c := f.anyController()
		return c.process
	}
	_, n := f.anyWorker()
	return n.process
}
