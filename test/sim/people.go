package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// people submit tasks and request changes of them, through any live controller.
type people struct {
	*cluster
	process *process
	store   *seamStore
	threads int
}

func (cl *cluster) startPeople() *people {
	p := &people{cluster: cl, process: cl.world.process("people", million)}
	p.store = &seamStore{truth: cl.truth, process: p.process, role: rolePeople}
	p.spawn("submit", p.submit)
	p.spawn("ask", p.ask)
	p.spawn("drain", p.drain)
	if cl.cfg.asks {
		p.spawn("alter settings", p.alterSettings)
	}
	if cl.cfg.deaf > 0 {
		p.spawn("give up", p.giveUp)
	}
	p.spawn("wind down", p.windDown)
	return p
}

func (p *people) spawn(name string, run func()) {
	p.threads++
	p.process.spawn(name, func() {
		run()
		p.threads--
	})
}

// submit stores all tasks, in batches, over half of the time of the faults. What is not acknowledged is submitted
// again.
func (p *people) submit() {
	w := p.world
	for made := 0; made < p.cfg.tasks; {
		n := min(1+w.rng.IntN(max(1, p.cfg.tasks/6)), p.cfg.tasks-made)
		tasks := make([]task.Task, n)
		for i := range tasks {
			tasks[i] = p.task(made + i)
		}
		made += n
		for page := range slices.Chunk(tasks, store.MaxBatch) {
			p.create(page)
		}
		p.wake()
		w.park(w.now+w.between(0, p.cfg.faults/6), nil)
	}
}

func (p *people) create(page []task.Task) {
	for i := range page {
		p.check.submits(&page[i])
	}
	for {
		out, err := p.store.Create(background, page)
		if err == nil {
			for i, o := range out {
				if o.Status == store.CreateFailed {
					panic(o.Err)
				}
				p.check.acknowledged(page[i].ID)
			}
			p.world.note("people", "submitted %s .. %s", page[0].ID, page[len(page)-1].ID)
			return
		}
		p.world.park(p.world.now+p.world.between(100*time.Millisecond, time.Second), nil)
	}
}

// task makes one that runs for a while: most of them shortly, some for so long that nodes come and go meanwhile.
func (p *people) task(i int) task.Task {
	w := p.world
	ms := w.rng.IntN(400)
	switch w.rng.IntN(8) {
	case 0, 1, 2:
		ms = w.rng.IntN(4000)
	case 3:
		ms = w.rng.IntN(p.cfg.longest)
	case 4:
		ms = p.cfg.longest + w.rng.IntN(p.cfg.longest)
		if w.chance(50) {
			ms = 4 * p.cfg.longest // it runs on when all faults are over for long
		}
	}
	now := epoch + w.now.Milliseconds()
	t := task.Task{ID: taskID(i), ClassName: class, Mode: task.ModePassive, LifecycleStatus: task.Created,
		Priority: w.rng.IntN(3), CreateDateTime: now, UpdateDateTime: now}
	if p.cfg.asks {
		ms = p.asking(&t, ms)
	}
	t.Attachments = job{Ms: ms}.encode()
	if i+1 == p.cfg.deaf {
		t.Attachments = p.deaf(&t).encode()
	}
	if i >= p.cfg.tasks-p.cfg.deadly {
		kills := 1 + w.rng.IntN(2)
		if p.cfg.stateDir {
			kills = 1 + w.rng.IntN(5)
		}
		t.Attachments = job{Ms: ms, Kills: kills}.encode()
	}
	if w.chance(p.cfg.timed) {
		t.NotBefore = now + w.between(0, 15*time.Second).Milliseconds()
	}
	if w.chance(p.cfg.timed) {
		t.DeadlineDateTime = now + w.between(0, 40*time.Second).Milliseconds()
	}
	if w.chance(p.cfg.timed) {
		t.TimeoutMs = 1 + int64(w.rng.IntN(2*ms+1))
	}
	return t
}

// deaf has a task ignore the end of its context, for longer than the grace in most cases, and may have that end come by
// a time.
func (p *people) deaf(t *task.Task) job {
	w := p.world
	j := job{Ms: 2000 + w.rng.IntN(8000), Deaf: 1 + w.rng.IntN(25_000)}
	switch w.rng.IntN(4) {
	case 0:
		t.TimeoutMs = 1 + int64(w.rng.IntN(j.Ms))
	case 1:
		t.DeadlineDateTime = t.CreateDateTime + w.between(time.Second, 15*time.Second).Milliseconds()
	}
	return j
}

// giveUp cancels, at any time, the task that ignores the end of its context.
func (p *people) giveUp() {
	p.world.park(p.world.now+p.world.between(0, p.cfg.faults), nil)
	p.change(taskID(p.cfg.deaf-1), requestNamed("cancel"))
}

func taskID(i int) string { return fmt.Sprintf("t%04d", i) }

// notify calls f for a controller, unless it is dead or frozen: then the leader finds out by itself.
func (p *people) notify(f func(c *controller)) {
	c := p.controllers[p.world.rng.IntN(len(p.controllers))]
	if !c.process.dead && !c.process.frozen {
		f(c)
		for _, t := range c.process.threads {
			p.world.signal(t)
		}
	}
}

func (p *people) wake() { p.notify(func(c *controller) { c.holder.Stored() }) }

// request is something that a person asks of a task.
type request struct {
	name string
	ask  func(t *task.Task, now int64, rng *rand.Rand) (task.Change, bool)
	next []string // what may be asked soon after it
}

var requestKinds = []request{
	{"cancel", func(t *task.Task, now int64, _ *rand.Rand) (task.Change, bool) { return task.Cancel(t, now) }, []string{"resume", "retry"}},
	{"pause", func(t *task.Task, now int64, _ *rand.Rand) (task.Change, bool) { return task.Pause(t, now) }, []string{"resume", "resume", "cancel", "attach"}},
	{"resume", func(t *task.Task, now int64, _ *rand.Rand) (task.Change, bool) { return task.Resume(t, now) }, []string{"pause", "cancel"}},
	{"retry", func(t *task.Task, now int64, _ *rand.Rand) (task.Change, bool) { return task.Retry(t, now) }, []string{"cancel", "pause"}},
	{"purge", nil, []string{"retry"}}, // of an ended task
	{"attach", attach, []string{"attach", "pause"}},
}

// attach replaces the attachments, at times so that the task takes longer or less long from its next run on.
func attach(t *task.Task, now int64, rng *rand.Rand) (task.Change, bool) {
	j := decodeJob(t.Attachments)
	return task.Attach(t, job{Ms: rng.IntN(2*j.Ms + 1), Kills: j.Kills, Deaf: j.Deaf, Version: t.AttachmentsVersion + 1}.encode(), now)
}

func requestNamed(name string) request {
	for _, d := range requestKinds {
		if d.name == name {
			return d
		}
	}
	panic("no request " + name)
}

// ask requests changes of tasks in any state, and changes of mind soon after.
func (p *people) ask() {
	w := p.world
	kinds := []request{requestNamed("cancel")}
	for _, d := range requestKinds {
		if w.chance(600) {
			kinds = append(kinds, d)
		}
	}
	for range p.cfg.requests {
		w.park(w.now+w.between(0, 2*p.cfg.faults/time.Duration(p.cfg.requests+1)), nil)
		if w.now >= p.cfg.faults {
			break
		}
		if len(p.check.order) == 0 {
			continue
		}
		id, d := p.check.order[w.rng.IntN(len(p.check.order))].id, kinds[w.rng.IntN(len(kinds))]
		for more := true; more && w.now < p.cfg.faults; more = w.chance(600) {
			if !p.change(id, d) {
				break
			}
			d = requestNamed(d.next[w.rng.IntN(len(d.next))])
			w.park(w.now+[]time.Duration{w.between(0, 20*time.Millisecond), w.between(0, time.Second), w.between(0, 6*time.Second)}[w.rng.IntN(3)], nil)
		}
	}
}

// maxSwaps is how often a change is tried again because the task changed meanwhile, as by the API.
const maxSwaps = 10

// change asks for one thing, as the API does. It reports false if that was not needed, or not possible, or nobody
// knows.
func (p *people) change(id string, d request) bool {
	w := p.world
	if d.ask == nil {
		ok, err := p.store.Purge(background, id)
		return ok && err == nil
	}
	for range maxSwaps {
		list, err := p.store.Get(background, []string{id})
		if err != nil || len(list) == 0 {
			return false
		}
		c, ok := d.ask(&list[0], epoch+w.now.Milliseconds(), w.rng)
		if !ok {
			return false
		}
		n, err := p.store.Apply(background, []task.Change{c})
		if err != nil {
			return false
		}
		if n == 1 {
			w.note("people", "%s %s, which was %s %s", d.name, id, list[0].LifecycleStatus, list[0].Desired)
			if c.Update != nil {
				p.notify(func(c *controller) { c.holder.Updated(id) })
			}
			p.wake()
			return true
		}
	}
	return false
}

// drain drains nodes, and undoes that.
func (p *people) drain() {
	w := p.world
	for range p.cfg.drains {
		w.park(w.now+w.between(0, 2*p.cfg.faults/time.Duration(p.cfg.drains+1)), nil)
		if w.now >= p.cfg.faults {
			break
		}
		id := p.workers[w.rng.IntN(len(p.workers))].id
		p.setDraining(id, !p.check.draining(id))
	}
}

// setDraining is what the API does. It reports false if nobody knows whether it is stored.
func (p *people) setDraining(id string, draining bool) bool {
	if err := p.store.SetDraining(background, id, draining); err != nil {
		return false
	}
	p.notify(func(c *controller) { c.holder.DrainsStored() })
	return true
}

// windDown checks, some time after the last fault, that all requests were carried out, and then resumes what is paused.
func (p *people) windDown() {
	w := p.world
	w.park(p.cfg.faults, nil)
	for p.threads > 1 || p.net.late > 0 || p.check.settingsAltered() && !p.check.steady() || len(p.check.unmet()) > 0 && !p.check.calm() {
		w.park(w.now+time.Second, nil)
	}
	for _, what := range p.check.unmet() {
		p.check.violate("%s", what)
	}
	for _, id := range slices.Sorted(maps.Keys(p.check.drained)) {
		for !p.setDraining(id, false) {
			w.park(w.now+time.Second, nil)
		}
	}
	if p.cfg.asks {
		p.liftAll()
	}
	for p.check.anyPaused() {
		for _, t := range p.check.order {
			p.change(t.id, requestNamed("resume"))
		}
		w.park(w.now+time.Second, nil)
	}
}
