package main

import (
	"container/heap"
	"iter"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing/synctest"
	"time"
)

// world is the scheduler: virtual time, threads of which exactly one runs at a time, and the random numbers that decide
// everything.
//
// A thread runs until it parks. Every call of a seam parks at least twice, on its way there and on its way back, so
// those are the places where another thread may come in between, the process may die, or stand still. Which of the
// threads that are due goes on is the seed's choice. When none is due, time goes on to the next one. Go's own time, in
// which contexts end, is that of a testing/synctest bubble and goes with it.
type world struct {
	rng     *rand.Rand
	now     time.Duration
	told    atomic.Int64 // now, for clocks: a timer of Go's reads one in a goroutine of its own
	current *thread
	ready   []*thread
	queue   queue
	seq     int64
	turns   int
	names   map[string]bool // of all threads so far
	kills   []*process
	all     []*process
	history *history
}

// process is one process of an operating system: its threads live and die together, and tell the time by one clock.
type process struct {
	world   *world
	name    string
	clock   *processClock
	threads []*thread
	dead    bool
	frozen  bool
	held    []*thread // due while it was frozen
	thawed  time.Duration
	stalled time.Duration // until then its readers get nothing
	fate    countdown
	links   [services]link
	onDeath func()
}

// countdown lets something happen to a process at one of its next turns, or at one of those of its threads of one name.
type countdown struct {
	turns  int // 0 = nothing happens
	thread string
	what   func()
}

// thread is a flow of control.
type thread struct {
	process *process
	name    string
	next    func() (struct{}, bool)
	stop    func()
	yield   func(struct{}) bool
	cond    func() bool // what ends the wait before its time; nil = nothing
	waiting bool        // in the queue, neither ready nor held
	ended   bool
	wait    int64 // number of the present wait
}

// entry is a thread's place in the queue, or a call that has its time.
type entry struct {
	at     time.Duration
	seq    int64
	thread *thread
	wait   int64
	call   func()
}

type queue []entry

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(entry)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = entry{}
	*q = (*q)[:last]
	return e
}

// never is a time that does not come.
const never = time.Duration(math.MaxInt64)

func newWorld(seed uint64, h *history) *world {
	return &world{names: map[string]bool{}, rng: rand.New(rand.NewPCG(seed, 0x5ca1d5)), history: h}
}

// process makes a process whose clock runs at so many millionths of the true speed.
func (w *world) process(name string, speed int64) *process {
	p := &process{world: w, name: name}
	p.clock = &processClock{world: w, speed: speed, offset: time.Hour + w.between(0, time.Hour)}
	w.all = append(w.all, p)
	return p
}

// killed is what a thread panics with whose process has died.
type killed struct{}

// spawn starts a thread of the process.
func (p *process) spawn(name string, run func()) {
	if p.dead {
		return
	}
	t := &thread{process: p, name: name}
	p.world.names[name] = true
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			if r := recover(); r != nil && r != any(killed{}) {
				panic(r)
			}
		}()
		t.yield = yield
		run()
	})
	p.threads = append(p.threads, t)
	p.world.enqueue(t, p.world.now)
}

// park gives the baton back until a time, or until cond, which may be nil, holds after a turn of the thread's process
// or at a signal.
func (w *world) park(until time.Duration, cond func() bool) {
	t := w.current
	if t.process.dead {
		panic(killed{})
	}
	t.cond = cond
	w.enqueue(t, until)
	if !t.yield(struct{}{}) {
		panic(killed{})
	}
}

// rest parks for a time of the process's own clock, or until cond holds.
func (w *world) rest(d time.Duration, cond func() bool) {
	c := w.current.process.clock
	w.park(c.at(c.Boot()+d), cond)
}

func (w *world) enqueue(t *thread, until time.Duration) {
	t.wait++
	t.waiting = true
	if t.cond != nil && t.cond() {
		w.makeReady(t)
		return
	}
	if until != never {
		w.push(entry{at: max(until, w.now), thread: t, wait: t.wait})
	}
}

func (w *world) push(e entry) {
	w.seq++
	e.seq = w.seq
	heap.Push(&w.queue, e)
}

// after calls f at a later time, between two turns.
func (w *world) after(d time.Duration, f func()) { w.push(entry{at: w.now + d, call: f}) }

// signal makes a waiting thread check its condition.
func (w *world) signal(t *thread) {
	if t.waiting && t.cond != nil && t.cond() {
		w.makeReady(t)
	}
}

func (w *world) makeReady(t *thread) {
	t.waiting = false
	t.cond = nil
	w.ready = append(w.ready, t)
}

// run gives turns until done returns true, or nothing is left to do. It reports whether done returned true.
func (w *world) run(done func() bool, maxTurns int) bool {
	for w.turns < maxTurns {
		if done() {
			return true
		}
		w.due()
		if len(w.ready) == 0 {
			if len(w.queue) == 0 {
				return false
			}
			w.advance(w.queue[0].at)
			continue
		}
		i := w.rng.IntN(len(w.ready))
		t := w.ready[i]
		last := len(w.ready) - 1
		w.ready[i], w.ready[last] = w.ready[last], nil
		w.ready = w.ready[:last]
		switch {
		case t.ended || t.process.dead:
		case t.process.frozen:
			t.process.held = append(t.process.held, t)
		default:
			w.turn(t)
		}
		w.bury()
	}
	return false
}

// due makes the threads ready whose time has come, and calls the functions that are due.
func (w *world) due() {
	for len(w.queue) > 0 && w.queue[0].at <= w.now {
		e := heap.Pop(&w.queue).(entry)
		switch {
		case e.call != nil:
			e.call()
			w.bury()
		case e.thread.waiting && e.wait == e.thread.wait && !e.thread.ended:
			w.makeReady(e.thread)
		}
	}
}

func (w *world) advance(to time.Duration) {
	time.Sleep(to - w.now) // of the bubble: contexts end in it
	synctest.Wait()
	w.now = to
	w.told.Store(int64(to))
	for _, p := range w.all { // a timer of Go's may have ended a context
		for _, t := range p.threads {
			w.signal(t)
		}
	}
}

func (w *world) turn(t *thread) {
	p := t.process
	w.turns++
	w.current = t
	if _, goes := t.next(); !goes {
		w.end(t)
	}
	synctest.Wait() // a timer of Go's that is due at once ends its context in a goroutine of its own
	w.current = nil
	for _, o := range p.threads {
		w.signal(o)
	}
	if p.fate.turns > 0 && (p.fate.thread == "" || p.fate.thread == t.name) {
		if p.fate.turns--; p.fate.turns == 0 {
			p.fate.what()
		}
	}
}

// end takes a thread off its process.
func (w *world) end(t *thread) {
	t.ended = true
	p := t.process
	for i, o := range p.threads {
		if o == t {
			p.threads = append(p.threads[:i], p.threads[i+1:]...)
			break
		}
	}
}

// kill ends a process between two turns.
func (w *world) kill(p *process) {
	if !p.dead {
		p.dead = true
		w.kills = append(w.kills, p)
	}
}

// bury unwinds the threads of what has been killed. What they do in it reaches nobody.
func (w *world) bury() {
	for len(w.kills) > 0 {
		p := w.kills[0]
		w.kills = w.kills[1:]
		threads := p.threads
		p.threads, p.held = nil, nil
		for _, t := range threads {
			t.ended = true
			w.current = t
			t.stop()
			w.current = nil
		}
		if p.onDeath != nil {
			p.onDeath()
		}
	}
}

// close kills everything.
func (w *world) close() {
	for _, p := range w.all {
		p.onDeath = nil
		w.kill(p)
	}
	w.bury()
}

// freeze stops a process; its clock goes on.
func (w *world) freeze(p *process) { p.frozen = true }

// thaw lets a frozen process go on: everything that became due meanwhile is due at once.
func (w *world) thaw(p *process) {
	p.frozen, p.thawed = false, w.now
	w.ready = append(w.ready, p.held...)
	p.held = nil
}

// chance is true once in a while: with probability n/1000.
func (w *world) chance(n int) bool { return w.rng.IntN(1000) < n }

// between draws a time, in whole milliseconds, from [from, to].
func (w *world) between(from, to time.Duration) time.Duration {
	return from + time.Duration(w.rng.Int64N(int64((to-from)/time.Millisecond)+1))*time.Millisecond
}

func (w *world) note(who, format string, args ...any) { w.history.note(w.now, who, format, args...) }
