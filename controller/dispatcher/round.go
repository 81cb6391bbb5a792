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

// Outcome is what one round did.
type Outcome struct {
	Placed int
	Failed int           // claimed, but not published
	More   bool          // there is more to look at
	Next   time.Duration // until a token comes that tasks wait for, or a node may take work again; 0 = not known
}

// Limits of a round.
const (
	maxTasks = 10_000 // that it looks at
	maxHeads = 1000   // queues whose first task it reads to know what they ask for
	minRead  = 4      // tasks that are read of a queue at the least
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
	ends    []task.Change // of tasks that are not to run
	reads   []*queueState // those that tasks were read of
	endedBy Reason        // what keeps all waiting that are left
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

// wait notes when tasks that wait may go on.
func (r *round) wait(d time.Duration) { r.out.Next = sooner(r.out.Next, d) }

// sooner returns the shorter of two waits, of which 0 is not known.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// Round places what waits, as long as there is capacity. With list it looks for new queues; without, it goes on with
// those that it knows.
func (d *Dispatcher) Round(ctx context.Context, list bool) (out Outcome, err error) {
	if err := d.unclaim(ctx, nil); err != nil { // what is owed
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
		todo, q := d.pick(r)
		if todo == read {
			if err := d.read(ctx, r, q); err != nil {
				return r.out, err
			}
			continue
		}
		if err := d.writeEnds(ctx, r); err != nil {
			return r.out, err
		}
		// Claim.
		won, err := d.claim(ctx, r)
		if err != nil {
			return r.out, err
		}
		// Publish.
		if err := d.publish(ctx, r, won); err != nil || todo == done || r.out.Failed > 0 {
			return r.out, err
		}
	}
}

// todo is what a round has to do next.
type todo uint8

const (
	done  todo = iota // write what was picked, and end the round
	read              // read on in a queue
	write             // write what was picked, and go on
)

// pick picks nodes for tasks in their order, until something has to be read or written.
func (d *Dispatcher) pick(r *round) (todo, *queueState) {
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
		if len(q.left()) == 0 {
			if d.keepWaiting(r, q) { // the tasks before it may have taken what it needs
				continue
			}
			return read, q
		}

		// Gate.
		t := &q.left()[0]
		r.looked++
		if c, ends := d.mustEnd(t, r.now); ends {
			r.ends = append(r.ends, c)
			d.advance(q)
			continue
		}
		free, why, wait := d.gates.check(q, r.moment) // again, since the round may have taken what it needs
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
			d.queues.passOver(q, t) // what keeps this task does not keep the others of its queue
			d.advance(q)
			continue
		}

		// Reserve.
		d.reserve(r, pick{task: t, queue: q, dec: dec}, &req, free)
		d.order.Served(it)
		d.advance(q)
	}
}

// list reads the names of the queues: page after page, in a pass through all of them that may take several rounds.
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

// gate puts the queues into the order that nothing keeps waiting and that are not in it since the last round. It
// returns queues of which nothing is known yet, and reports false if the round is at its end, since no capacity is
// free.
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
	if len(d.queues.unread.queues) > maxHeads || len(unread) > 0 && d.queues.full { // some of them may make room for others
		r.out.More = true
	}
	return unread, true
}

// enter puts a queue into the order, if nothing keeps it waiting.
func (d *Dispatcher) enter(r *round, q *queueState) {
	if !d.keepWaiting(r, q) {
		d.push(q)
	}
}

// push puts a queue into the order.
func (d *Dispatcher) push(q *queueState) {
	q.item.Of = q
	d.order.Push(&q.item)
	d.queues.move(q, &d.queues.ordered)
}

// keepWaiting reports whether something keeps a queue waiting, and suspends it then.
func (d *Dispatcher) keepWaiting(r *round, q *queueState) bool {
	why, wait := d.picker.blocked(q, r.moment)
	if why != "" {
		d.suspend(r, q, why, wait)
	}
	return why != ""
}

// suspend parks a queue that something keeps waiting. If it keeps all queues waiting, the round is at its end.
func (d *Dispatcher) suspend(r *round, q *queueState, why Reason, wait time.Duration) {
	r.wait(wait)
	if keepsAll(why) {
		r.endedBy = why
		d.push(q)
		return
	}
	d.queues.park(q, why)
}

// read reads on in a queue and puts it into the order, if it has tasks. Tasks that cannot run end, even if the queue
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
	for len(q.left()) > 0 {
		c, ends := d.mustEnd(&q.left()[0], r.now)
		if !ends {
			break
		}
		r.ends = append(r.ends, c)
		r.looked++
		q.at++
	}
	if len(q.left()) > 0 {
		q.setHead(&q.left()[0])
	}
	if len(q.left()) > 0 || q.more { // if all of them end, others may stand behind them
		d.enter(r, q)
	}
	return nil
}

// readSize returns how many tasks to read of a queue: as many as may find capacity and tokens, shared with the other
// queues, and twice as many each time that was not enough.
func (d *Dispatcher) readSize(q *queueState, now time.Time) int {
	slots, prefetch := d.picker.cluster.Free()
	fit := (slots + prefetch) / max(q.request.Slots, 1)
	fit = min(fit/max(len(d.queues.byName), 1), d.gates.rates.all.tokens(now))
	if q.known {
		fit = min(fit, d.gates.rates.classes.of(q.class, now).tokens(now))
	}
	return min(max(fit, 2*q.read, minRead), store.MaxBatch)
}

// advance goes on to the next task of a queue. A task that is yet to be read stands where the last one stood, until its
// turn comes.
func (d *Dispatcher) advance(q *queueState) {
	q.at++
	switch {
	case len(q.left()) > 0:
		q.setHead(&q.left()[0])
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
	if !ok { // it cannot be: only Changes takes a node out, and only the dispatcher calls it
		panic(fmt.Sprintf("dispatcher: node %s was placed on, but takes no work", p.dec.Node))
	}
	t := p.task
	p.to, p.change = to, task.Claim(t, to.Node, to.Incarnation, d.claimID(), r.now)
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

// finish ends a round: it takes back what was picked and not written, lets go of the tasks that were read, and counts
// what was done.
func (d *Dispatcher) finish(r *round) Outcome {
	d.drop(r.picks) // an error has come between
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
		d.gates.rates.add(1, p.claim.Class, p.dec.Node, d.gates.moment())
	}
	d.fleet.Drop(ids)
}
