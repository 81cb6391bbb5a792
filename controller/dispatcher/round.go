package dispatcher

import (
	"context"
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

// round is what one round goes by.
type round struct {
	now     int64 // epoch ms
	moment  time.Time
	out     Outcome
	looked  int // tasks
	lost    int // claims
	picks   []pick
	ends    []task.Change // of tasks that are not to run
	reads   []*queueState // those that tasks were read of
	endedBy Reason        // what keeps all that are left waiting
}

// pick is a task, the node it goes to, and the line it came from.
type pick struct {
	task   *task.Task
	to     fleet.Target
	change task.Change
	claim  fleet.Claim
	queue  *queueState
	dec    placement.Decision
}

// Round places what waits, as long as there is room. With list it looks for queues that it does not know; without, it goes on with those
// that it knows.
func (d *Dispatcher) Round(ctx context.Context, list bool) (Outcome, error) {
	if err := d.unclaim(ctx, nil); err != nil { // what is owed
		return Outcome{}, err
	}
	began := d.clock.Boot()
	r := round{now: d.clock.Now().UnixMilli(), moment: d.gates.moment()}
	if list || d.queues.going {
		if err := d.list(ctx, list); err != nil {
			return r.out, err
		}
		r.out.More = d.queues.going && !d.queues.stuck
	}
	err := d.round(ctx, &r, list)
	d.drop(r.picks) // an error has come between
	if back := d.fleet.NextReturn(); back > 0 {
		r.wait(max(back-d.clock.Boot(), time.Millisecond))
	}
	d.finishRound(&r, began)
	return r.out, err
}

func (d *Dispatcher) round(ctx context.Context, r *round, list bool) error {
	d.mu.Lock()
	r.wait(d.picker.refresh())
	d.picker.cluster.Begin()
	if slots, prefetch := d.picker.capacity(); slots+prefetch == 0 && !list {
		r.endedBy = placement.NodesFull
		d.mu.Unlock()
		return nil
	}
	unknown := d.enterQueues(r)
	d.mu.Unlock()
	for _, queue := range unknown {
		if err := d.read(ctx, r, queue); err != nil {
			return err
		}
		if len(r.ends) >= store.MaxBatch {
			if err := d.flush(ctx, r); err != nil {
				return err
			}
		}
	}
	for {
		d.mu.Lock()
		then, queue := d.step(r)
		d.mu.Unlock()
		switch then {
		case done:
			return d.flush(ctx, r)
		case flush:
			if err := d.flush(ctx, r); err != nil {
				return err
			}
			if r.out.Failed > 0 {
				return nil
			}
		case fetch:
			if err := d.read(ctx, r, queue); err != nil {
				return err
			}
		}
	}
}

// read reads on in a line and puts it into the round.
func (d *Dispatcher) read(ctx context.Context, r *round, queue *queueState) error {
	d.mu.Lock()
	limit := d.readSize(queue, r.moment)
	d.mu.Unlock()
	if err := d.fetch(ctx, queue, limit); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r.reads = append(r.reads, queue)
	d.admit(r, queue)
	return nil
}

// enterQueues puts lines into the round that could be placed and are not in it since the last one, and gives those of which nothing is known yet.
func (d *Dispatcher) enterQueues(r *round) []*queueState {
	goOn := d.cut
	d.cut = false
	if !goOn {
		for _, queue := range d.queues.passing {
			queue.from, queue.passed = store.Place{}, false
		}
		clear(d.queues.passing)
		d.queues.passing = d.queues.passing[:0]
	}
	d.unpark(r)
	if !d.order.Continue(r.now) {
		d.order.Begin(r.now)
		for _, queue := range d.queues.ordered.queues {
			d.order.Push(&queue.item)
		}
	}
	for _, queue := range slices.Backward(d.queues.free.queues) { // from behind, where leave takes what it moves from
		if !queue.passed {
			d.push(r, queue)
		}
	}
	unknown := slices.Clone(d.queues.fresh.queues[:min(len(d.queues.fresh.queues), maxHeads)])
	if len(d.queues.fresh.queues) > maxHeads || len(unknown) > 0 && d.queues.stuck { // of these, some may make room
		r.out.More = true
	}
	return unknown
}

// push puts a line into the round, if it could be placed.
func (d *Dispatcher) push(r *round, queue *queueState) {
	if !d.parkIfBlocked(r, queue) {
		d.enqueue(queue)
	}
}

// enqueue puts a line into the order.
func (d *Dispatcher) enqueue(queue *queueState) {
	queue.item.Of = queue
	d.order.Push(&queue.item)
	d.queues.move(queue, &d.queues.ordered)
}

// parkIfBlocked says whether something keeps a line waiting, and puts it where it belongs then.
func (d *Dispatcher) parkIfBlocked(r *round, queue *queueState) bool {
	why, wait := d.picker.blocked(queue, r.moment)
	if why != "" {
		d.park(r, queue, why, wait)
	}
	return why != ""
}

// park deals with a line that something keeps waiting. With what keeps all, the round is at its end.
func (d *Dispatcher) park(r *round, queue *queueState, why Reason, wait time.Duration) {
	r.wait(wait)
	if blocksAll(why) {
		r.endedBy = why
		d.enqueue(queue)
		return
	}
	d.queues.park(queue, why)
}

// wait notes that tasks wait for a token.
func (r *round) wait(d time.Duration) { r.out.Next = sooner(r.out.Next, d) }

// sooner is the shorter of two waits, of which 0 is not known.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// admit puts a line into the round whose tasks were read, if there are any. Those that can never run end here, even if the line waits.
func (d *Dispatcher) admit(r *round, queue *queueState) {
	for len(queue.left()) > 0 {
		c, never := d.cannotRun(&queue.left()[0], r.now)
		if !never {
			break
		}
		r.ends = append(r.ends, c)
		r.looked++
		queue.at++
	}
	switch {
	case len(queue.left()) > 0:
		queue.setHead(&queue.left()[0])
		d.push(r, queue)
	case queue.more && len(queue.tasks) > 0: // they all end: others may stand behind them
		d.push(r, queue)
	case queue.more: // none of them decoded
		r.out.More = true
	}
}

// next is what a round has to do now.
type next uint8

const (
	done next = iota
	fetch
	flush
)

// step goes on with the line that comes next until something has to be read or written.
func (d *Dispatcher) step(r *round) (next, *queueState) {
	for {
		if len(r.picks) == store.MaxBatch || len(r.ends) >= store.MaxBatch {
			return flush, nil
		}
		slots, prefetch := d.picker.cluster.Free()
		if slots+prefetch == 0 {
			r.endedBy = placement.NodesFull
			return done, nil
		}
		if r.looked >= maxTasks {
			r.out.More, d.cut = true, true
			return done, nil
		}
		if r.endedBy != "" {
			return done, nil
		}
		it := d.order.Next()
		if it == nil {
			return done, nil
		}
		queue, _ := it.Of.(*queueState)
		if queue.in != &d.queues.ordered { // it was removed
			continue
		}
		d.queues.move(queue, &d.queues.free)
		if len(queue.left()) == 0 {
			if d.parkIfBlocked(r, queue) { // since what came before it took what it needs
				continue
			}
			return fetch, queue
		}
		if d.placeHead(r, queue, it) {
			d.advance(queue)
		}
	}
}

// readSize is how many tasks to read of a line: what may have room and tokens, shared with the other lines, and twice as many each time that
// was not enough.
func (d *Dispatcher) readSize(queue *queueState, now time.Time) int {
	slots, prefetch := d.picker.cluster.Free()
	fit := (slots + prefetch) / max(queue.request.Slots, 1)
	fit = min(fit/max(len(d.queues.byName), 1), d.gates.buckets.all.tokens(now))
	if queue.known {
		fit = min(fit, d.gates.buckets.classes.of(queue.class, now).tokens(now))
	}
	return min(max(fit, 2*queue.read, minRead), store.MaxBatch)
}

// advance goes on to the next task of a line. One that is yet to be read stands where the last one stood, until its turn comes.
func (d *Dispatcher) advance(queue *queueState) {
	queue.at++
	switch {
	case len(queue.left()) > 0:
		queue.setHead(&queue.left()[0])
		d.enqueue(queue)
	case queue.more:
		d.enqueue(queue)
	case queue.from.Set:
		queue.passed = true
	default:
		d.queues.remove(queue)
	}
}

// flush ends what is to be ended, and claims and publishes what was picked.
func (d *Dispatcher) flush(ctx context.Context, r *round) error {
	if d.lease.Remaining() <= 0 {
		return ErrNotLeading
	}
	if err := d.end(ctx, r.ends); err != nil {
		return err
	}
	r.ends = r.ends[:0]
	if len(r.picks) == 0 {
		return nil
	}
	picks := r.picks
	r.picks = nil
	won, err := d.claim(ctx, r, picks)
	if err != nil {
		return err
	}
	return d.publish(ctx, r, won)
}
