package dispatcher

import (
	"context"
	"fmt"
	"slices"

	"github.com/skalds-go/skalds/controller/fairqueue"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// line is what the dispatcher knows of a queue: what its tasks ask for, and where its head stands. It holds tasks only within a round.
type line struct {
	name    string
	index   int // in lines.all
	in      *group
	place   int // in it
	item    fairqueue.Item
	request placement.Request // of a task of the line that must not be alone and avoids nothing

	class, key, pool, anti string
	keyLimit               int

	known bool  // the above is known: a task of it has been read
	seen  int64 // the pass of the listing that showed it last

	tasks []task.Task // read in this round
	at    int         // the first of them that is left
	more  bool        // there may be others behind them
	read  int         // how many were read last

	// What a round is to know of the one before that was cut short (see Dispatcher.cut). Else each begins anew: a task that was passed over is
	// asked first again, or those behind it would take each slot that it waits for.
	from   store.Place // the last task that was passed over: it cannot be placed now, though the line could
	passed bool        // and none is left behind it
}

// learn takes in what a task of the line asks for.
func (l *line) learn(t *task.Task) {
	l.known = true
	l.class, l.key, l.keyLimit, l.pool, l.anti = t.ClassName, t.ConcurrencyKey, t.KeyLimit(), t.Pool, t.AntiAffinityKey
	selector, err := t.NodeSelector()
	if err != nil {
		selector = task.Selector{} // the task is refused before it is placed
	}
	l.request = placement.Request{Class: t.ClassName, Selector: selector, Slots: t.Width()}
	l.item.Priority, l.item.Namespace, l.item.Slots = t.Priority, t.Namespace, t.Width()
	l.head(t)
}

// head notes where the line's head stands.
func (l *line) head(t *task.Task) { l.item.Created, l.item.ID = t.CreateDateTime, t.ID }

// left is the tasks of the line that were read in this round and not dealt with.
func (l *line) left() []task.Task { return l.tasks[l.at:] }

// Limits of what is known of the queues.
const (
	maxLines = 100_000 // queues that are known at once: beyond it, those that cannot be placed make room for others, as they are listed
	maxLists = 10      // pages of names that a round reads
)

// lines is the queues that are known.
type lines struct {
	byName map[string]*line
	all    []*line // in an order that depends on what has happened alone, so that the same history has the same decisions
	limit  int     // how many at the most
	pass   int64   // of the listing
	next   string  // where the listing goes on
	going  bool    // a pass has begun and has not ended
	again  bool    // there may be new queues where it has been already: another follows
	stuck  bool    // it waits for queues that make room
	evict  []*line

	fresh       group    // of which nothing is known
	free        group    // that the next round is to look at
	ordered     group    // that stand in the order, since nothing kept them waiting when they came there
	waiting     []*group // that something keeps waiting
	passing     []*line  // of which tasks were passed over
	byCondition map[condition]*group
}

// list reads which queues there are: a page after the other, in one pass through all of them, that may take several rounds.
func (d *Dispatcher) list(ctx context.Context, wanted bool) error {
	d.lines.begin(wanted)
	for range maxLists {
		page, err := d.store.Queues(ctx, d.lines.next, store.MaxBatch)
		if err != nil {
			return fmt.Errorf("list the queues: %w", err)
		}
		d.bad(page.Bad)
		d.mu.Lock()
		d.lines.take(&page)
		d.mu.Unlock()
		if d.lines.stuck || !page.More {
			return nil
		}
	}
	return nil
}

// begin begins a pass, or goes on with the one that has begun.
func (l *lines) begin(wanted bool) {
	l.stuck, l.evict = false, nil
	if l.going {
		l.again = l.again || wanted
		return
	}
	l.going, l.again, l.next = true, false, ""
	l.pass++
}

// take takes in a page of names. Where there is no room for one, the listing goes on with it next time.
func (l *lines) take(page *store.QueuePage) {
	for _, name := range page.Names {
		if !l.see(name) {
			l.stuck = true
			return
		}
		l.next = name
	}
	if !page.More {
		l.end()
	}
}

func (d *Dispatcher) bad(list []store.BadDocument) {
	for _, b := range list {
		d.log.Warn("a task's document does not decode and was marked Failed", "task", b.ID, "reason", b.Reason)
	}
}

// see notes that a queue is there. It reports false if there is no room for it.
func (l *lines) see(name string) bool {
	if known, ok := l.byName[name]; ok {
		known.seen = l.pass
		return true
	}
	if len(l.byName) >= l.limit && !l.makeRoom() {
		return false
	}
	fresh := &line{name: name, index: len(l.all), seen: l.pass}
	l.byName[name] = fresh
	l.all = append(l.all, fresh)
	l.move(fresh, &l.fresh)
	return true
}

// remove forgets a queue.
func (l *lines) remove(known *line) {
	last := len(l.all) - 1
	moved := l.all[last]
	l.all[known.index], moved.index = moved, known.index
	l.all[last] = nil
	l.all = l.all[:last]
	delete(l.byName, known.name)
	l.leave(known) // where it stands in the order it is passed over
}

// makeRoom forgets a queue that cannot be placed. The next pass shows it again.
func (l *lines) makeRoom() bool {
	if l.evict == nil {
		for _, other := range l.all {
			if other.waits() || other.passed {
				l.evict = append(l.evict, other)
			}
		}
	}
	last := len(l.evict) - 1
	if last < 0 {
		return false
	}
	l.remove(l.evict[last])
	l.evict = l.evict[:last]
	return true
}

// end ends a pass: what it has not shown is empty.
func (l *lines) end() {
	for _, known := range slices.Backward(l.all) { // from behind, where remove takes what it moves from
		if known.seen != l.pass {
			l.remove(known)
		}
	}
	l.going = false
	if l.again {
		l.begin(false)
	}
}

// fetch reads on in a line.
func (d *Dispatcher) fetch(ctx context.Context, l *line, limit int) error {
	after := l.from
	if len(l.tasks) > 0 {
		after = store.After(&l.tasks[len(l.tasks)-1])
	}
	page, err := d.store.Waiting(ctx, l.name, after, limit)
	if err != nil {
		return fmt.Errorf("read tasks that wait: %w", err)
	}
	d.bad(page.Bad)
	d.mu.Lock()
	defer d.mu.Unlock()
	l.tasks, l.at, l.more, l.read = page.Tasks, 0, page.More, limit
	switch {
	case len(page.Tasks) > 0:
		l.learn(&page.Tasks[0])
		if l.in == &d.lines.fresh {
			d.lines.move(l, &d.lines.free)
		}
	case page.More:
	case l.from.Set:
		l.passed = true
	default:
		d.lines.remove(l)
	}
	return nil
}
