package dispatcher

import (
	"slices"

	"github.com/skalds-go/skalds/controller/fairqueue"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// queueState is what the dispatcher knows of a queue: what its tasks ask for, and where its head stands. It holds tasks
// only within a round.
type queueState struct {
	name    string
	index   int // in queues.all
	in      *queueSet
	pos     int // in it
	item    fairqueue.Item
	request placement.Request // of a task of the queue that must not be alone and avoids nothing

	class, key, pool, anti string
	keyLimit               int

	known bool  // the above is known: a task of the queue has been read
	seen  int64 // the pass of the listing that showed it last

	tasks []task.Task // read in this round
	at    int         // the first of them that is left
	more  bool        // the store may have others behind them
	read  int         // how many were read last

	// What a round keeps for the next one if it was cut short (see queues.cut). Otherwise each round begins at the
	// head: a task that was passed over is tried first again, or the tasks behind it would take each slot that it waits
	// for.
	from   store.Place // the last task that was passed over: it cannot be placed now, though others of the queue could
	passed bool        // no task is left behind it
}

// learn takes in what a task of the queue asks for.
func (q *queueState) learn(t *task.Task) {
	q.known = true
	q.class, q.key, q.keyLimit, q.pool, q.anti = t.ClassName, t.ConcurrencyKey, t.KeyLimit(), t.Pool, t.AntiAffinityKey
	selector, err := t.NodeSelector()
	if err != nil {
		selector = task.Selector{} // the task is refused before it is placed
	}
	q.request = placement.Request{Class: t.ClassName, Selector: selector, Slots: t.Width()}
	q.item.Priority, q.item.Namespace, q.item.Slots = t.Priority, t.Namespace, t.Width()
	q.setHead(t)
}

// setHead moves the queue's place in the order to that of a task.
func (q *queueState) setHead(t *task.Task) { q.item.Created, q.item.ID = t.CreateDateTime, t.ID }

// left returns the tasks that were read in this round and not dealt with.
func (q *queueState) left() []task.Task { return q.tasks[q.at:] }

// Limits of what is known of the queues.
const (
	maxQueues = 100_000 // that are known at once; beyond it, those that cannot be placed make room for others as they are listed
	maxPages  = 10      // of names, that a round lists
)

// queues is the queues that are known. Each stands in one set.
type queues struct {
	byName map[string]*queueState
	all    []*queueState // in an order that depends only on what has happened, so that the same history has the same decisions
	limit  int           // how many, at most

	pass    int64         // number of the pass through the listing
	next    string        // where the listing goes on
	listing bool          // a pass has begun and has not ended
	relist  bool          // another pass follows: there may be new queues where this one has been
	full    bool          // the pass cannot go on, since no queue made room
	evict   []*queueState // those that may make room

	unread      queueSet      // of which nothing is known
	open        queueSet      // that the next round looks at
	ordered     queueSet      // that stand in the order, since nothing kept them waiting when they entered it
	parked      []*queueSet   // that wait, by reason
	passedOver  []*queueState // of which tasks were passed over
	byCondition map[condition]*queueSet

	endedBy Reason // what ended the last round before all queues were looked at; empty = nothing
	version int64  // of the settings that the last round went by
	cut     bool   // the last round looked at as many tasks as it may: the next one goes on where it ended
}

func newQueues() queues {
	return queues{byName: make(map[string]*queueState), limit: maxQueues, byCondition: make(map[condition]*queueSet)}
}

// startPass begins a pass through the listing, or goes on with the one that has begun.
func (qs *queues) startPass(wanted bool) {
	qs.full, qs.evict = false, nil
	if qs.listing {
		qs.relist = qs.relist || wanted
		return
	}
	qs.listing, qs.relist, qs.next = true, false, ""
	qs.pass++
}

// addPage takes in a page of names. If there is no room for one, the listing goes on with it in the next round.
func (qs *queues) addPage(page *store.QueuePage) {
	for _, name := range page.Names {
		if !qs.see(name) {
			qs.full = true
			return
		}
		qs.next = name
	}
	if !page.More {
		qs.endPass()
	}
}

// see marks a queue as listed. It reports false if there is no room for it.
func (qs *queues) see(name string) bool {
	if known, ok := qs.byName[name]; ok {
		known.seen = qs.pass
		return true
	}
	if len(qs.byName) >= qs.limit && !qs.makeRoom() {
		return false
	}
	q := &queueState{name: name, index: len(qs.all), seen: qs.pass}
	qs.byName[name] = q
	qs.all = append(qs.all, q)
	qs.move(q, &qs.unread)
	return true
}

// remove forgets a queue.
func (qs *queues) remove(q *queueState) {
	last := len(qs.all) - 1
	moved := qs.all[last]
	qs.all[q.index], moved.index = moved, q.index
	qs.all[last] = nil
	qs.all = qs.all[:last]
	delete(qs.byName, q.name)
	qs.leave(q) // its item in the order is skipped
}

// makeRoom forgets a queue that cannot be placed, if there is one. The next pass shows it again.
func (qs *queues) makeRoom() bool {
	if qs.evict == nil {
		for _, q := range qs.all {
			if q.waits() || q.passed {
				qs.evict = append(qs.evict, q)
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

// endPass ends a pass: the queues that it has not shown are empty.
func (qs *queues) endPass() {
	for _, q := range slices.Backward(qs.all) { // backward, as remove fills a gap from the end
		if q.seen != qs.pass {
			qs.remove(q)
		}
	}
	qs.listing = false
	if qs.relist {
		qs.startPass(false)
	}
}

// restart makes each queue begin at its head again, unless the last round was cut short.
func (qs *queues) restart() {
	cut := qs.cut
	qs.cut = false
	if cut {
		return
	}
	for _, q := range qs.passedOver {
		q.from, q.passed = store.Place{}, false
	}
	clear(qs.passedOver)
	qs.passedOver = qs.passedOver[:0]
}

// passOver skips a task that cannot be placed although others of its queue may be.
func (qs *queues) passOver(q *queueState, t *task.Task) {
	if !q.from.Set {
		qs.passedOver = append(qs.passedOver, q)
	}
	q.from = store.After(t)
}

// exhausted deals with a queue that the store has no further tasks of.
func (qs *queues) exhausted(q *queueState) {
	if q.from.Set {
		q.passed = true
		return
	}
	qs.remove(q)
}
