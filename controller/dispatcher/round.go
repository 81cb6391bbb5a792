package dispatcher

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// Outcome is the result of one round.
type Outcome struct {
	Placed int
	Failed int           // claimed, but not published
	More   bool          // the next round has more to look at
	Next   time.Duration // until tasks get a token or a node may take work again; 0 = unknown
}

// Limits of a round.
const (
	maxTasks = 10_000 // tasks that it looks at
	maxHeads = 1000   // new queues whose first task it reads to learn their requirements
	minRead  = 4      // least number of tasks to read from a queue
)

// round is the state of one round.
type round struct {
	began   time.Duration
	now     int64 // epoch ms
	moment  time.Time
	version int64 // of the settings
	out     Outcome
	looked  int // tasks
	lost    int // claims
	picks   []pick
	ends    []task.Change // of tasks that must not or cannot run
	reads   []*queueState // queues that it has read tasks from
	endedBy Reason        // what keeps all remaining queues waiting
}

// pick is a task, the node it goes to, and the queue it came from.
type pick struct {
	task   *task.Task
	to     fleet.Target
	change task.Change
	claim  fleet.Claim
	queue  *queueState
	dec    placement.Decision
}

// wait asks for the next round after d at the latest; 0 = unknown.
func (r *round) wait(d time.Duration) { r.out.Next = sooner(r.out.Next, d) }

// sooner returns the shorter of two waits, where 0 is unknown.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// Round places waiting tasks while nodes have capacity. With list it also looks for new queues; without, it continues
// with those that it knows, and with a listing that has begun.
func (d *Dispatcher) Round(ctx context.Context, list bool) (out Outcome, err error) {
	if err := d.claimer.unclaim(ctx, nil); err != nil { // those without an answer so far
		return Outcome{}, err
	}
	r := &round{began: d.clock.Boot(), now: d.clock.Now().UnixMilli(), moment: d.gates.moment()}

	// List.
	if list || d.queues.listing {
		if err := d.list(ctx, list); err != nil {
			return r.out, err
		}
		r.out.More = d.queues.listing && !d.queues.full
	}
	defer func() { out = d.finish(r) }()

	// Gate: which queues may go on.
	unread, going := d.gate(r, list)
	if !going {
		return r.out, nil
	}
	for _, q := range unread {
		if err := d.read(ctx, r, q); err != nil {
			return r.out, err
		}
		if len(r.ends) >= store.MaxBatch {
			if err := d.writeEnds(ctx, r); err != nil {
				return r.out, err
			}
		}
	}
	for {
		// Order, gate, place and reserve one task after the other, until something has to be read or written.
		next, q := d.pick(r)
		if next == read {
			if err := d.read(ctx, r, q); err != nil {
				return r.out, err
			}
			continue
		}
		if err := d.writeEnds(ctx, r); err != nil {
			return r.out, err
		}
		// Claim.
		picks := r.picks
		r.picks = nil
		won, err := d.claimer.claim(ctx, picks)
		if err != nil {
			return r.out, err
		}
		r.lost += len(picks) - len(won)
		// Publish.
		placed, failed, err := d.claimer.publish(ctx, won)
		r.out.Placed += placed
		r.out.Failed += failed
		if err != nil || next == done || r.out.Failed > 0 {
			return r.out, err
		}
	}
}

// action is what a round does next.
type action uint8

const (
	done  action = iota // write what was picked, and end the round
	read                // read more tasks of a queue
	write               // write what was picked, and go on
)

// pick picks nodes for tasks in their order, until something has to be read or written.
func (d *Dispatcher) pick(r *round) (action, *queueState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		if len(r.picks) == store.MaxBatch || len(r.ends) >= store.MaxBatch {
			return write, nil
		}
		if slots, prefetch := d.picker.cluster.Free(); slots+prefetch == 0 {
			r.endedBy = d.picker.exhausted()
			return done, nil
		}
		if r.looked >= maxTasks {
			r.out.More, d.queues.cut = true, true
			return done, nil
		}
		if r.endedBy != "" {
			return done, nil
		}

		// Order.
		it := d.order.Next()
		if it == nil {
			return done, nil
		}
		q, _ := it.Of.(*queueState)
		if q.in != &d.queues.ordered { // it was removed
			continue
		}
		d.queues.move(q, &d.queues.open)
		if len(q.remaining()) == 0 {
			if d.keepWaiting(r, q) { // the tasks before it may have taken what it needs
				continue
			}
			return read, q
		}

		// Gate.
		t := &q.remaining()[0]
		r.looked++
		if c, ends := d.mustEnd(t, r.now); ends {
			r.ends = append(r.ends, c)
			d.advance(q)
			continue
		}
		free, why, wait := d.gates.check(q, r.moment) // again, since the round may have used up what the task needs
		if why != "" {
			d.suspend(r, q, why, wait)
			continue
		}

		// Place.
		req := d.picker.taskRequest(q, t)
		dec, wait := d.picker.place(&req, r.moment)
		r.wait(wait)
		if dec.Reason != "" {
			if !req.Alone && len(req.Avoid) == 0 {
				d.queues.park(q, dec.Reason)
				continue
			}
			d.queues.passOver(q, t) // the others of its queue may be placed
			d.advance(q)
			continue
		}

		// Reserve.
		d.reserve(r, pick{task: t, queue: q, dec: dec}, &req, free)
		d.order.Served(it)
		d.advance(q)
	}
}

// list reads the names of the queues page by page. One pass through all of them may take several rounds.
func (d *Dispatcher) list(ctx context.Context, wanted bool) error {
	d.queues.startPass(wanted)
	for range maxPages {
		page, err := d.store.Queues(ctx, d.queues.next, store.MaxBatch)
		if err != nil {
			return fmt.Errorf("list the queues: %w", err)
		}
		d.logBad(page.Bad)
		d.mu.Lock()
		d.queues.addPage(&page)
		d.mu.Unlock()
		if d.queues.full || !page.More {
			return nil
		}
	}
	return nil
}

func (d *Dispatcher) logBad(list []store.BadDocument) {
	for _, b := range list {
		d.log.Warn("a task's document does not decode and was marked Failed", "task", b.ID, "reason", b.Reason)
	}
}

// gate adds the queues that nothing keeps waiting to the order. It returns new queues, whose first task must be read
// before they can be gated. It reports false if the round ends here, since there is no capacity.
func (d *Dispatcher) gate(r *round, list bool) (unread []*queueState, going bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r.version = d.gates.settings.version
	r.wait(d.picker.refresh())
	d.picker.cluster.Begin()
	if !list && d.picker.capacity() == 0 {
		r.endedBy = d.picker.exhausted()
		return nil, false
	}
	d.queues.restart()
	d.wake(r)
	if !d.order.Continue(r.now) {
		d.order.Begin(r.now)
		for _, q := range d.queues.ordered.queues {
			d.order.Push(&q.item)
		}
	}
	for _, q := range slices.Backward(d.queues.open.queues) { // backward, as leave fills a gap from the end
		if !q.passed {
			d.enter(r, q)
		}
	}
	unread = slices.Clone(d.queues.unread.queues[:min(len(d.queues.unread.queues), maxHeads)])
	// If the listing is full, some of the new queues may make room for others.
	if len(d.queues.unread.queues) > maxHeads || len(unread) > 0 && d.queues.full {
		r.out.More = true
	}
	return unread, true
}

// enter adds a queue to the order, or parks it if something keeps it waiting.
func (d *Dispatcher) enter(r *round, q *queueState) {
	if !d.keepWaiting(r, q) {
		d.push(q)
	}
}

// push adds a queue to the order.
func (d *Dispatcher) push(q *queueState) {
	q.item.Of = q
	d.order.Push(&q.item)
	d.queues.move(q, &d.queues.ordered)
}

// keepWaiting suspends a queue if something keeps it waiting, and reports whether it did.
func (d *Dispatcher) keepWaiting(r *round, q *queueState) bool {
	why, wait := d.picker.blocked(q, r.moment)
	if why != "" {
		d.suspend(r, q, why, wait)
	}
	return why != ""
}

// suspend parks a queue that why keeps waiting. If why keeps all queues waiting, the queue stays in the order and the
// round ends.
func (d *Dispatcher) suspend(r *round, q *queueState, why Reason, wait time.Duration) {
	r.wait(wait)
	if keepsAll(why) {
		r.endedBy = why
		d.push(q)
		return
	}
	d.queues.park(q, why)
}

// read reads the next tasks of a queue and gates the queue. Tasks at its head that cannot run end, even if the queue
// waits.
func (d *Dispatcher) read(ctx context.Context, r *round, q *queueState) error {
	d.mu.Lock()
	limit := d.readSize(q, r.moment)
	after := q.from
	if len(q.tasks) > 0 {
		after = store.After(&q.tasks[len(q.tasks)-1])
	}
	d.mu.Unlock()
	page, err := d.store.Waiting(ctx, q.name, after, limit)
	if err != nil {
		return fmt.Errorf("read tasks that wait: %w", err)
	}
	d.logBad(page.Bad)
	d.mu.Lock()
	defer d.mu.Unlock()
	r.reads = append(r.reads, q)
	q.tasks, q.at, q.more, q.read = page.Tasks, 0, page.More, limit
	if len(page.Tasks) == 0 {
		if !page.More {
			d.queues.exhausted(q)
			return nil
		}
		r.out.More = true // none of them decoded
		return nil
	}
	q.learn(&page.Tasks[0])
	if q.in == &d.queues.unread {
		d.queues.move(q, &d.queues.open)
	}
	for len(q.remaining()) > 0 {
		c, ends := d.mustEnd(&q.remaining()[0], r.now)
		if !ends {
			break
		}
		r.ends = append(r.ends, c)
		r.looked++
		q.at++
	}
	if len(q.remaining()) > 0 {
		q.setHead(&q.remaining()[0])
	}
	if len(q.remaining()) > 0 || q.more { // if all of them end, others may be behind them
		d.enter(r, q)
	}
	return nil
}

// readSize returns how many tasks of a queue to read: its share of what capacity and tokens allow, but at least twice
// as many as last time in this round.
func (d *Dispatcher) readSize(q *queueState, now time.Time) int {
	slots, prefetch := d.picker.cluster.Free()
	size := (slots + prefetch) / max(q.request.Slots, 1)
	size = min(size/max(len(d.queues.byName), 1), d.gates.rates.all.tokens(now))
	if q.known {
		size = min(size, d.gates.rates.classes.of(q.class, now).tokens(now))
	}
	return min(max(size, 2*q.read, minRead), store.MaxBatch)
}

// advance moves a queue to its next task. If that has not been read yet, the queue keeps its place in the order.
func (d *Dispatcher) advance(q *queueState) {
	q.at++
	switch {
	case len(q.remaining()) > 0:
		q.setHead(&q.remaining()[0])
		d.push(q)
	case q.more:
		d.push(q)
	default:
		d.queues.exhausted(q)
	}
}

// reserve counts a task as claimed, before the claim is written.
func (d *Dispatcher) reserve(r *round, p pick, req *placement.Request, free permits) {
	to, ok := d.fleet.AssignTarget(p.dec.Node)
	if !ok { // impossible: only Changes removes a node, and only the dispatcher calls it
		panic(fmt.Sprintf("dispatcher: node %s was placed on, but takes no work", p.dec.Node))
	}
	t := p.task
	p.to, p.change = to, task.Claim(t, to.Node, to.Incarnation, d.claimer.nextID(), r.now)
	a := p.change.Assign
	a.KeyPermit, a.PoolPermit = free.key, free.pool
	p.claim = fleet.Claim{Key: to.Key, TaskID: t.ID, Attempt: a.Attempt, ID: a.ClaimID, Class: t.ClassName, Alone: req.Alone,
		Version: t.AttachmentsVersion, Slots: req.Slots, Namespace: t.Namespace, AntiAffinityKey: t.AntiAffinityKey,
		KeyPermit: free.key, PoolPermit: free.pool, Why: string(req.Strategy)}
	d.fleet.Reserve([]fleet.Claim{p.claim}, d.clock.Boot())
	r.picks = append(r.picks, p)
	d.gates.rates.add(-1, t.ClassName, p.dec.Node, r.moment)
	_, wait := d.picker.limitRate(p.dec.Node, r.moment)
	r.wait(wait)
}

// finish ends a round: it drops picks that were not written, releases the tasks that were read, and updates the status.
func (d *Dispatcher) finish(r *round) Outcome {
	d.claimer.drop(r.picks) // after an error, picks may be left
	if back := d.fleet.NextReturn(); back > 0 {
		r.wait(max(back-d.clock.Boot(), time.Millisecond))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, q := range r.reads {
		q.tasks, q.at, q.more, q.read = nil, 0, false, 0
	}
	d.queues.endedBy, d.queues.version = r.endedBy, r.version
	d.status.Rounds++
	d.status.Placed += int64(r.out.Placed)
	d.status.Failed += int64(r.out.Failed)
	d.status.Lost += int64(r.lost)
	d.status.LastRoundAt = r.now
	d.status.LastRound, d.status.LastTook = r.out, d.clock.Boot()-r.began
	d.metrics.setThrottle(d.fleet.Unstarted(), d.gates.throttle())
	return r.out
}
