package dispatcher

import (
	"fmt"

	"github.com/skalds-go/skalds/controller/fairqueue"
	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// placeHead deals with a line's head. It reports false if the line waits from here on.
func (d *Dispatcher) placeHead(r *round, queue *queueState, it *fairqueue.Item) bool {
	t := &queue.left()[0]
	r.looked++
	if c, never := d.cannotRun(t, r.now); never {
		r.ends = append(r.ends, c)
		return true
	}
	free, why, wait := d.gates.gate(queue, r.moment) // again, since the round has taken something since the line entered it
	if why != "" {
		d.park(r, queue, why, wait)
		return false
	}
	q := d.picker.requestFor(queue, t)
	dec := d.picker.place(r, &q)
	if dec.Reason != "" {
		if q.Alone || len(q.Avoid) > 0 { // what keeps this one does not keep the others
			if !queue.from.Set {
				d.queues.passing = append(d.queues.passing, queue)
			}
			queue.from = store.After(t)
			return true
		}
		d.queues.park(queue, dec.Reason)
		return false
	}
	d.reserve(r, pick{task: t, queue: queue, dec: dec}, &q, free)
	d.order.Served(it)
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
	d.gates.buckets.spend(t.ClassName, p.dec.Node, r.moment)
	d.picker.limitNode(r, p.dec.Node)
}

// cannotRun gives the end, or the hold, of a task that is not to run, or cannot.
func (d *Dispatcher) cannotRun(t *task.Task, now int64) (task.Change, bool) {
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
		d.picker.cluster.Unplace(p.dec)
		d.gates.buckets.refund(p.claim.Class, p.dec.Node, d.gates.moment())
	}
	d.fleet.Drop(ids)
}
