package dispatcher

import (
	"fmt"
	"time"

	"github.com/skalds-go/skalds/controller/fairqueue"
	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// told takes in what the fleet tells of the nodes.
type told struct{ *Dispatcher }

// Set implements fleet.Placer.
func (d told) Set(n placement.Node) {
	_, n.RateLimited = d.buckets.throttled[n.ID]
	d.cluster.Set(n)
}

// Remove implements fleet.Placer.
func (d told) Remove(id string) {
	delete(d.buckets.throttled, id)
	d.cluster.Remove(id)
}

// Recount implements fleet.Placer.
func (d told) Recount(id string, by int64) { d.cluster.Recount(id, by) }

// refresh takes in what has changed about the nodes, and which of them have tokens again. It says when the next of the others has one, as
// Outcome.Next does.
func (d *Dispatcher) refresh() (next time.Duration) {
	d.fleet.Changes(d.clock.Boot(), told{d})
	now := d.moment()
	for id := range d.buckets.throttled {
		b := d.buckets.nodes.of(id, now)
		if b.ready(now) {
			delete(d.buckets.throttled, id)
			d.cluster.SetRateLimited(id, false)
		}
		next = sooner(next, b.wait(now))
	}
	return next
}

// room says how many slots are free, and how many short tasks may queue beside them.
func (d *Dispatcher) room() (slots, queue int) {
	slots, queue = d.cluster.Free()
	if slots == 0 && !d.fleet.AnyShortClass() {
		return 0, 0
	}
	return slots, queue
}

// keeps says what keeps a line waiting; empty = nothing, as far as can be known without trying. With a rate limit it says how long, too.
func (d *Dispatcher) keeps(l *line, now time.Time) (Reason, time.Duration) {
	if !l.known && !d.settings.paused { // a pause of all is of it, too
		return NotLookedAt, 0
	}
	if _, why, wait := d.gate(l, now); why != "" {
		return why, wait
	}
	q := d.ask(l)
	if why, ok := d.cluster.Feasible(&q); !ok {
		return why, 0
	}
	return "", 0
}

// ask is what a task of the line asks of placement.
func (d *Dispatcher) ask(l *line) placement.Request {
	q := l.request
	q.Strategy = d.settings.strategy
	q.Prefetch = d.fleet.PrefetchDepth(l.class)
	if d.throttle() > 0 { // deep queues must not be what slows the rounds down
		q.Prefetch = min(q.Prefetch, placement.PrefetchOnce)
	}
	if l.anti != "" {
		q.Anti = d.fleet.NodesWithAntiAffinity(l.anti)
	}
	return q
}

// askFor is what one task of the line asks of placement.
func (d *Dispatcher) askFor(l *line, t *task.Task) placement.Request {
	q := d.ask(l)
	q.Alone, q.Avoid, q.StickyKey = t.Alone(), t.Crashed(), t.StickyKey
	if s, ok := placement.ParseStrategy(t.Strategy); t.Strategy != "" && ok {
		q.Strategy = s
	}
	return q
}

// try deals with a line's head. It reports false if the line waits from here on.
func (d *Dispatcher) try(r *round, l *line, it *fairqueue.Item) bool {
	t := &l.left()[0]
	r.looked++
	if c, never := d.never(t, r.now); never {
		r.ends = append(r.ends, c)
		return true
	}
	free, why, wait := d.gate(l, r.moment) // again, since the round has taken something since the line entered it
	if why != "" {
		d.keep(r, l, why, wait)
		return false
	}
	q := d.askFor(l, t)
	dec := d.place(r, &q)
	if dec.Reason != "" {
		if q.Alone || len(q.Avoid) > 0 { // what keeps this one does not keep the others
			if !l.from.Set {
				d.lines.passing = append(d.lines.passing, l)
			}
			l.from = store.After(t)
			return true
		}
		d.lines.park(l, dec.Reason)
		return false
	}
	d.reserve(r, pick{task: t, line: l, dec: dec}, &q, free)
	d.order.Served(it)
	return true
}

// place finds a node that has a token. One that turns out to have none is left out until it has.
func (d *Dispatcher) place(r *round, q *placement.Request) placement.Decision {
	for {
		dec := d.cluster.Place(q)
		if dec.Reason != "" || !d.leaveOut(r, dec.Node) {
			return dec
		}
		d.cluster.Unplace(dec)
	}
}

// leaveOut lets a node take nothing until it has a token, if it has none now.
func (d *Dispatcher) leaveOut(r *round, node string) bool {
	b := d.buckets.nodes.of(node, r.moment)
	if b.ready(r.moment) {
		return false
	}
	d.buckets.throttled[node] = struct{}{}
	d.cluster.SetRateLimited(node, true)
	r.wait(b.wait(r.moment))
	return true
}

// reserve counts a task as claimed, before the claim is written.
func (d *Dispatcher) reserve(r *round, p pick, q *placement.Request, free permits) {
	to, ok := d.fleet.AssignTarget(p.dec.Node)
	if !ok { // it cannot be: only Changes ends what Taking says, and it is the dispatcher that calls it
		panic(fmt.Sprintf("dispatcher: node %s was placed on, but takes no work", p.dec.Node))
	}
	t := p.task
	p.to, p.change = to, task.Claim(t, to.Node, to.Incarnation, d.claimID(), r.now)
	a := p.change.Assign
	a.KeyPermit, a.PoolPermit = free.key, free.pool
	p.claim = fleet.Claim{Key: to.Key, TaskID: t.ID, Attempt: a.Attempt, ID: a.ClaimID, Class: t.ClassName, Alone: q.Alone,
		Version: t.AttachmentsVersion, Slots: q.Slots, Namespace: t.Namespace, AntiAffinityKey: t.AntiAffinityKey,
		KeyPermit: free.key, PoolPermit: free.pool, Why: string(q.Strategy)}
	d.fleet.Reserve([]fleet.Claim{p.claim}, d.clock.Boot())
	r.picks = append(r.picks, p)
	d.buckets.take(t.ClassName, p.dec.Node, r.moment)
	d.leaveOut(r, p.dec.Node)
}

// never gives the end, or the hold, of a task that is not to run, or cannot.
func (d *Dispatcher) never(t *task.Task, now int64) (task.Change, bool) {
	if c, ok := task.ApplyDesired(t, now); ok {
		return c, true
	}
	if t.Late(now) { // a person may have had it tried again after that
		return task.Overdue(t, now), true
	}
	if n := len(t.Attachments); n > d.cfg.TaskMaxBytes {
		return task.Refuse(t, fmt.Sprintf("attachments have %d bytes as JSON, %d at most (TASK_MAX_BYTES)", n, d.cfg.TaskMaxBytes), now), true
	}
	if reason := t.Unfit(); reason != "" {
		return task.Refuse(t, reason, now), true
	}
	if t.Strategy != "" {
		if _, ok := placement.ParseStrategy(t.Strategy); !ok {
			return task.Refuse(t, fmt.Sprintf("strategy is %.100q, must be one of %v", t.Strategy, placement.Strategies()), now), true
		}
	}
	return task.Change{}, false
}

// drop takes picks back that were not written.
func (d *Dispatcher) drop(picks []pick) {
	if len(picks) == 0 {
		return
	}
	ids := make([]string, len(picks))
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range picks {
		p := &picks[i]
		ids[i] = p.claim.ID
		d.cluster.Unplace(p.dec)
		d.buckets.give(p.claim.Class, p.dec.Node, d.moment())
	}
	d.fleet.Drop(ids)
}
