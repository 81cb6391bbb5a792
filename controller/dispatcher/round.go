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
	now    int64 // epoch ms
	moment time.Time
	out    Outcome
	looked int // tasks
	lost   int // claims
	picks  []pick
	ends   []task.Change // of tasks that are not to run
	reads  []*line       // those that tasks were read of
	over   bool          // something keeps all that wait
}

// pick is a task, the node it goes to, and the line it came from.
type pick struct {
	task   *task.Task
	to     fleet.Target
	change task.Change
	claim  fleet.Claim
	line   *line
	dec    placement.Decision
}

// Round places what waits, as long as there is room. With list it looks for queues that it does not know; without, it goes on with those
// that it knows.
func (d *Dispatcher) Round(ctx context.Context, list bool) (Outcome, error) {
	if err := d.giveBack(ctx, nil); err != nil { // what is owed
		return Outcome{}, err
	}
	began := d.clock.Boot()
	r := round{now: d.clock.Now().UnixMilli(), moment: d.moment()}
	if list || d.lines.going {
		if err := d.list(ctx, list); err != nil {
			return r.out, err
		}
		r.out.More = d.lines.going && !d.lines.stuck
	}
	err := d.round(ctx, &r, list)
	d.drop(r.picks) // an error has come between
	if back := d.fleet.NextReturn(); back > 0 {
		r.wait(max(back-d.clock.Boot(), time.Millisecond))
	}
	d.note(&r, began)
	return r.out, err
}

func (d *Dispatcher) round(ctx context.Context, r *round, list bool) error {
	d.mu.Lock()
	r.wait(d.refresh())
	d.cluster.Begin()
	if slots, queue := d.room(); slots+queue == 0 && !list {
		d.mu.Unlock()
		return nil
	}
	unknown := d.enter(r)
	d.mu.Unlock()
	for _, l := range unknown {
		if err := d.read(ctx, r, l); err != nil {
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
		then, l := d.step(r)
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
			if err := d.read(ctx, r, l); err != nil {
				return err
			}
		}
	}
}

// read reads on in a line and puts it into the round.
func (d *Dispatcher) read(ctx context.Context, r *round, l *line) error {
	d.mu.Lock()
	limit := d.readSize(l, r.moment)
	d.mu.Unlock()
	if err := d.fetch(ctx, l, limit); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r.reads = append(r.reads, l)
	d.admit(r, l)
	return nil
}

// enter puts lines into the round that could be placed and are not in it since the last one, and gives those of which nothing is known yet.
func (d *Dispatcher) enter(r *round) []*line {
	goOn := d.cut
	d.cut = false
	if !goOn {
		for _, l := range d.lines.passing {
			l.from, l.passed = store.Place{}, false
		}
		clear(d.lines.passing)
		d.lines.passing = d.lines.passing[:0]
	}
	d.wake(r)
	if !d.order.Continue(r.now) {
		d.order.Begin(r.now)
		for _, l := range d.lines.ordered.lines {
			d.order.Push(&l.item)
		}
	}
	for _, l := range slices.Backward(d.lines.free.lines) { // from behind, where leave takes what it moves from
		if !l.passed {
			d.push(r, l)
		}
	}
	unknown := slices.Clone(d.lines.fresh.lines[:min(len(d.lines.fresh.lines), maxHeads)])
	if len(d.lines.fresh.lines) > maxHeads || len(unknown) > 0 && d.lines.stuck { // of these, some may make room
		r.out.More = true
	}
	return unknown
}

// push puts a line into the round, if it could be placed.
func (d *Dispatcher) push(r *round, l *line) {
	if !d.waits(r, l) {
		d.enqueue(l)
	}
}

// enqueue puts a line into the order.
func (d *Dispatcher) enqueue(l *line) {
	l.item.Of = l
	d.order.Push(&l.item)
	d.lines.move(l, &d.lines.ordered)
}

// waits says whether something keeps a line waiting, and puts it where it belongs then.
func (d *Dispatcher) waits(r *round, l *line) bool {
	why, wait := d.keeps(l, r.moment)
	if why != "" {
		d.keep(r, l, why, wait)
	}
	return why != ""
}

// keep deals with a line that something keeps waiting. With what keeps all, the round is at its end.
func (d *Dispatcher) keep(r *round, l *line, why Reason, wait time.Duration) {
	r.wait(wait)
	if ofAll(why) {
		r.over = true
		d.enqueue(l)
		return
	}
	d.lines.park(l, why)
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
func (d *Dispatcher) admit(r *round, l *line) {
	for len(l.left()) > 0 {
		c, never := d.never(&l.left()[0], r.now)
		if !never {
			break
		}
		r.ends = append(r.ends, c)
		r.looked++
		l.at++
	}
	switch {
	case len(l.left()) > 0:
		l.head(&l.left()[0])
		d.push(r, l)
	case l.more && len(l.tasks) > 0: // they all end: others may stand behind them
		d.push(r, l)
	case l.more: // none of them decoded
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
func (d *Dispatcher) step(r *round) (next, *line) {
	for {
		if len(r.picks) == store.MaxBatch || len(r.ends) >= store.MaxBatch {
			return flush, nil
		}
		slots, queue := d.cluster.Free()
		if slots+queue == 0 {
			return done, nil
		}
		if r.looked >= maxTasks {
			r.out.More, d.cut = true, true
			return done, nil
		}
		if r.over {
			return done, nil
		}
		it := d.order.Next()
		if it == nil {
			return done, nil
		}
		l, _ := it.Of.(*line)
		if l.in != &d.lines.ordered { // it was removed
			continue
		}
		d.lines.move(l, &d.lines.free)
		if len(l.left()) == 0 {
			if d.waits(r, l) { // since what came before it took what it needs
				continue
			}
			return fetch, l
		}
		if d.try(r, l, it) {
			d.advance(l)
		}
	}
}

// readSize is how many tasks to read of a line: what may have room and tokens, shared with the other lines, and twice as many each time that
// was not enough.
func (d *Dispatcher) readSize(l *line, now time.Time) int {
	slots, queue := d.cluster.Free()
	fit := (slots + queue) / max(l.request.Slots, 1)
	fit = min(fit/max(len(d.lines.byName), 1), d.buckets.all.tokens(now))
	if l.known {
		fit = min(fit, d.buckets.classes.of(l.class, now).tokens(now))
	}
	return min(max(fit, 2*l.read, minRead), store.MaxBatch)
}

// advance goes on to the next task of a line. One that is yet to be read stands where the last one stood, until its turn comes.
func (d *Dispatcher) advance(l *line) {
	l.at++
	switch {
	case len(l.left()) > 0:
		l.head(&l.left()[0])
		d.enqueue(l)
	case l.more:
		d.enqueue(l)
	case l.from.Set:
		l.passed = true
	default:
		d.lines.remove(l)
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
