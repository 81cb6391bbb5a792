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

// queueState is what the dispatcher knows of a queue: what its tasks ask for, and where its head stands. It holds tasks only within a round.
type queueState struct {
	name    string
	index   int // in lines.all
	in      *queueSet
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
func (queue *queueState) learn(t *task.Task) {
	queue.known = true
	queue.class, queue.key, queue.keyLimit, queue.pool, queue.anti = t.ClassName, t.ConcurrencyKey, t.KeyLimit(), t.Pool, t.AntiAffinityKey
	selector, err := t.NodeSelector()
	if err != nil {
		selector = task.Selector{} // the task is refused before it is placed
	}
	queue.request = placement.Request{Class: t.ClassName, Selector: selector, Slots: t.Width()}
	queue.item.Priority, queue.item.Namespace, queue.item.Slots = t.Priority, t.Namespace, t.Width()
	queue.setHead(t)
}

// setHead notes where the line's setHead stands.
func (queue *queueState) setHead(t *task.Task) {
	queue.item.Created, queue.item.ID = t.CreateDateTime, t.ID
}

// left is the tasks of the line that were read in this round and not dealt with.
func (queue *queueState) left() []task.Task { return queue.tasks[queue.at:] }

// Limits of what is known of the queues.
const (
	maxLines = 100_000 // queues that are known at once: beyond it, those that cannot be placed make room for others, as they are listed
	maxLists = 10      // pages of names that a round reads
)

// queues is the queues that are known.
type queues struct {
	byName map[string]*queueState
	all    []*queueState // in an order that depends on what has happened alone, so that the same history has the same decisions
	limit  int           // how many at the most
	pass   int64         // of the listing
	next   string        // where the listing goes on
	going  bool          // a pass has begun and has not ended
	again  bool          // there may be new queues where it has been already: another follows
	stuck  bool          // it waits for queues that make room
	evict  []*queueState

	endedBy Reason // what ended the last round before all queues were looked at; empty = nothing

	fresh       queueSet      // of which nothing is known
	free        queueSet      // that the next round is to look at
	ordered     queueSet      // that stand in the order, since nothing kept them waiting when they came there
	parked      []*queueSet   // that something keeps waiting
	passing     []*queueState // of which tasks were passed over
	byCondition map[condition]*queueSet
}

func newQueues() queues {
	return queues{byName: make(map[string]*queueState), limit: maxLines, byCondition: make(map[condition]*queueSet)}
}

// list reads which queues there are: a page after the other, in one pass through all of them, that may take several rounds.
func (d *Dispatcher) list(ctx context.Context, wanted bool) error {
	d.queues.beginPass(wanted)
	for range maxLists {
		page, err := d.store.Queues(ctx, d.queues.next, store.MaxBatch)
		if err != nil {
			return fmt.Errorf("list the queues: %w", err)
		}
		d.logUndecodable(page.Bad)
		d.mu.Lock()
		d.queues.addPage(&page)
		d.mu.Unlock()
		if d.queues.stuck || !page.More {
			return nil
		}
	}
	return nil
}

// beginPass begins a pass, or goes on with the one that has begun.
func (qs *queues) beginPass(wanted bool) {
	qs.stuck, qs.evict = false, nil
	if qs.going {
		qs.again = qs.again || wanted
		return
	}
	qs.going, qs.again, qs.next = true, false, ""
	qs.pass++
}

// addPage takes in a page of names. Where there is no room for one, the listing goes on with it next time.
func (qs *queues) addPage(page *store.QueuePage) {
	for _, name := range page.Names {
		if !qs.add(name) {
			qs.stuck = true
			return
		}
		qs.next = name
	}
	if !page.More {
		qs.endPass()
	}
}

func (d *Dispatcher) logUndecodable(list []store.BadDocument) {
	for _, b := range list {
		d.log.Warn("a task's document does not decode and was marked Failed", "task", b.ID, "reason", b.Reason)
	}
}

// add notes that a queue is there. It reports false if there is no room for it.
func (qs *queues) add(name string) bool {
	if known, ok := qs.byName[name]; ok {
		known.seen = qs.pass
		return true
	}
	if len(qs.byName) >= qs.limit && !qs.makeRoom() {
		return false
	}
	fresh := &queueState{name: name, index: len(qs.all), seen: qs.pass}
	qs.byName[name] = fresh
	qs.all = append(qs.all, fresh)
	qs.move(fresh, &qs.fresh)
	return true
}

// remove forgets a queue.
func (qs *queues) remove(known *queueState) {
	last := len(qs.all) - 1
	moved := qs.all[last]
	qs.all[known.index], moved.index = moved, known.index
	qs.all[last] = nil
	qs.all = qs.all[:last]
	delete(qs.byName, known.name)
	qs.leave(known) // where it stands in the order it is passed over
}

// makeRoom forgets a queue that cannot be placed. The next pass shows it again.
func (qs *queues) makeRoom() bool {
	if qs.evict == nil {
		for _, other := range qs.all {
			if other.isParked() || other.passed {
				qs.evict = append(qs.evict, other)
			}
		}
	}
	last := len(qs.evict) - 1
	if last < 0 {
		return false
	}
	qs.remove(qs.evict[last])
	qs.evict = qs.evict[:last]
	return true
}

// endPass ends a pass: what it has not shown is empty.
func (qs *queues) endPass() {
	for _, known := range slices.Backward(qs.all) { // from behind, where remove takes what it moves from
		if known.seen != qs.pass {
			qs.remove(known)
		}
	}
	qs.going = false
	if qs.again {
		qs.beginPass(false)
	}
}

// fetch reads on in a line.
func (d *Dispatcher) fetch(ctx context.Context, queue *queueState, limit int) error {
	after := queue.from
	if len(queue.tasks) > 0 {
		after = store.After(&queue.tasks[len(queue.tasks)-1])
	}
	page, err := d.store.Waiting(ctx, queue.name, after, limit)
	if err != nil {
		return fmt.Errorf("read tasks that wait: %w", err)
	}
	d.logUndecodable(page.Bad)
	d.mu.Lock()
	defer d.mu.Unlock()
	queue.tasks, queue.at, queue.more, queue.read = page.Tasks, 0, page.More, limit
	switch {
	case len(page.Tasks) > 0:
		queue.learn(&page.Tasks[0])
		if queue.in == &d.queues.fresh {
			d.queues.move(queue, &d.queues.free)
		}
	case page.More:
	case queue.from.Set:
		queue.passed = true
	default:
		d.queues.remove(queue)
	}
	return nil
}
