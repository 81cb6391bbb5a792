package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// people submit tasks, cancel some, and have some run again, each through any controller that lives.
type people struct {
	*cluster
	process *process
	store   *seamStore
	threads int
}

func (cl *cluster) startPeople() *people {
	p := &people{cluster: cl, process: cl.world.process("people", million)}
	p.store = &seamStore{Store: cl.truth.mem, truth: cl.truth, process: p.process, role: rolePeople}
	p.spawn("submit", p.submit)
	p.spawn("cancel", p.cancel)
	p.spawn("retry", p.retry)
	return p
}

func (p *people) spawn(name string, run func()) {
	p.threads++
	p.process.spawn(name, func() {
		run()
		p.threads--
	})
}

// submit stores all tasks, in batches, over half of the time of the faults. What is not acknowledged is submitted again.
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
	}
	now := epoch + w.now.Milliseconds()
	return task.Task{ID: fmt.Sprintf("t%04d", i), ClassName: class, Mode: task.ModePassive, LifecycleStatus: task.Created,
		Priority: w.rng.IntN(3), CreateDateTime: now, UpdateDateTime: now, Attachments: []byte(strconv.Itoa(ms))}
}

// wake tells a controller that there is something new. It may be told to one that does not live any more; then the leader finds it.
func (p *people) wake() {
	c := p.controllers[p.world.rng.IntN(len(p.controllers))]
	if !c.process.dead && !c.process.frozen {
		c.wake()
		for _, t := range c.process.threads {
			p.world.signal(t)
		}
	}
}

// cancel cancels a few tasks, in any state.
func (p *people) cancel() {
	p.nowAndThen(p.cfg.cancels, func(t *task.Task, now int64) (task.Change, bool) { return task.Cancel(t, now) })
}

// retry has a few ended tasks run again.
func (p *people) retry() {
	p.nowAndThen(p.cfg.retries, func(t *task.Task, now int64) (task.Change, bool) { return task.Retry(t, now) })
}

func (p *people) nowAndThen(times int, wish func(t *task.Task, now int64) (task.Change, bool)) {
	w := p.world
	for range times {
		w.park(w.now+w.between(0, 2*p.cfg.faults/time.Duration(times+1)), nil)
		if w.now > p.cfg.faults || len(p.check.order) == 0 {
			continue
		}
		list, err := p.store.Get(background, []string{p.check.order[w.rng.IntN(len(p.check.order))].id})
		if err != nil || len(list) == 0 {
			continue
		}
		c, ok := wish(&list[0], epoch+w.now.Milliseconds())
		if !ok {
			continue
		}
		if n, err := p.store.Apply(background, []task.Change{c}); err == nil && n == 1 {
			w.note("people", "had %s changed: %s -> %s %s", c.ID, list[0].LifecycleStatus, c.To, c.Desired)
			p.wake()
		}
	}
}
