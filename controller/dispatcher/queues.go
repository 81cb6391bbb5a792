package dispatcher

import (
	"slices"

	"github.com/skalds-go/skalds/controller/fairqueue"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// queueState is what the dispatcher knows of a queue: the requirements of its tasks and the order of its head. It holds
// tasks only during a round.
type queueState struct {
	name    string
	index   int // in queues.all
	in      *queueSet
	pos     int // in it
	item    fairqueue.Item
	request placement.Request // of a task that need not be alone and avoids no node

	class, key, pool, anti string
	keyLimit               int

	known bool  // a task has been read, so the fields above are set
	seen  int64 // the pass of the listing that showed it last

	tasks []task.Task // read in this round
	at    int         // index of the first one that is not dealt with
	more  bool        // the store may have others behind them
	read  int         // limit of the last read

	// What a round keeps for the next one if it was cut short (see queues.cut). Otherwise each round begins at the
	// head: a task that was passed over is tried first again, or the tasks behind it would take each slot that it waits
	// for.
	from   store.Place // the last passed over task: it cannot be placed now, though others of the queue may be
	passed bool        // no other task is behind it
}

// learn takes the requirements of the queue from one of its tasks.
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

// setHead makes a task the one by which the queue is ordered.
func (q *queueState) setHead(t *task.Task) { q.item.Created, q.item.ID = t.CreateDateTime, t.ID }

// remaining returns the tasks that were read in this round and not dealt with.
func (q *queueState) remaining() []task.Task { return q.tasks[q.at:] }

// Limits of the known queues.
const (
	maxQueues = 100_000 // known at once; beyond it, a queue that cannot be placed makes room for each new one
	maxPages  = 10      // pages of names that a round lists
)

// queues holds the known queues. Each is in exactly one set.
type queues struct {
	byName map[string]*queueState
	all    []*queueState // their order depends on history only, so the same history leads to the same decisions
	limit  int           // how many, at most

	pass    int64         // number of the pass through the listing
	next    string        // last name that the pass has added
	listing bool          // a pass has begun and has not ended
	relist  bool          // another pass must follow: new queues may be where this one has been
	full    bool          // the pass waits until a queue makes room
	evict   []*queueState // queues that may make room

	unread      queueSet      // no task has been read
	open        queueSet      // the next round gates them
	ordered     queueSet      // in the order: nothing kept them waiting when they were gated
	parked      []*queueSet   // waiting, by condition
	passedOver  []*queueState // queues with passed over tasks
	byCondition map[condition]*queueSet

	endedBy Reason // what ended the last round before all queues were looked at; empty = nothing
	version int64  // of the settings that the last round used
	cut     bool   // the last round reached maxTasks: the next one continues where it ended
}

func newQueues() queues {
	return queues{byName: make(map[string]*queueState), limit: maxQueues, byCondition: make(map[condition]*queueSet)}
}

// startPass begins a pass of the listing, or continues the current one.
func (qs *queues) startPass(wanted bool) {
	qs.full, qs.evict = false, nil
	if qs.listing {
		qs.relist = qs.relist || wanted
		return
	}
	qs.listing, qs.relist, qs.next = true, false, ""
	qs.pass++
}

// addPage adds a page of names. If there is no room for one, the next round continues with it.
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

// makeRoom forgets a queue that cannot be placed, and reports whether there was one. The next pass adds it again.
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

// endPass ends a pass. Queues that it has not shown are empty.
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

// passOver skips a task that cannot be placed now, though others of its queue may be.
func (qs *queues) passOver(q *queueState, t *task.Task) {
	if !q.from.Set {
		qs.passedOver = append(qs.passedOver, q)
	}
	q.from = store.After(t)
}

// exhausted forgets a queue of which the store has no more tasks, unless some were passed over.
func (qs *queues) exhausted(q *queueState) {
	if q.from.Set {
		q.passed = true
		return
	}
	qs.remove(q)
}
