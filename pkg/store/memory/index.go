package memory

import (
	"github.com/tidwall/btree"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// entry is one stored task.
type entry struct {
	t     task.Task
	queue *queue
}

// place is the position of an entry in an order by a time and the id. The time is in the tree, so that a comparison
// follows the pointer only where times are equal. The id is not, to give the garbage collector less to scan.
type place struct {
	at int64
	e  *entry
}

// at returns the place of a task that need not exist.
func at(time int64, id string) place { return place{at: time, e: &entry{t: task.Task{ID: id}}} }

func byPlace(a, b place) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	return a.e.t.ID < b.e.t.ID
}

// tree is an ordered set. The hint makes an operation cheap near the last one, as when tasks come in the order of their
// creation.
type tree[T any] struct {
	*btree.BTreeG[T]
	hint btree.PathHint
}

func newTree[T any](less func(a, b T) bool) *tree[T] {
	return &tree[T]{BTreeG: btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})}
}

func (t *tree[T]) add(item T)    { t.SetHint(item, &t.hint) }
func (t *tree[T]) remove(item T) { t.DeleteHint(item, &t.hint) }

// statuses is how many statuses there are.
const statuses = 7

// index is the stored tasks and every order in which they are read. Which of them serves what:
//
//	byID       Get, Apply, Purge
//	byKey      Create: idempotency keys
//	keyPermits, poolPermits  Apply: who holds them
//	queues     Queues, Waiting and, by their lengths, Depths: tasks that wait and are the controller's (see queues)
//	later      Promote: tasks that would wait, by (notBefore, id)
//	deadlines  Overdue: tasks that have not ended and have a deadline, by (deadlineDateTime, id)
//	byStatus   List, Active, and Counts by their lengths; each by (createDateTime, id)
//	byExecutor List of one executor, by (createDateTime, id)
//	ended      Expire and the bound on what is kept: by (updateDateTime, id)
//	desired    Desired
//
// The caller holds the lock.
type index struct {
	byID        map[string]*entry
	byKey       map[string]*entry
	keyPermits  map[string]*entry
	poolPermits map[string]*entry
	queues      *queues
	later       *tree[place]
	deadlines   *tree[place]
	byStatus    [statuses]*tree[place]
	byExecutor  map[string]*tree[place]
	ended       *tree[place]
	desired     map[*entry]struct{}
}

func newIndex() *index {
	x := &index{
		byID: map[string]*entry{}, byKey: map[string]*entry{}, keyPermits: map[string]*entry{}, poolPermits: map[string]*entry{}, desired: map[*entry]struct{}{},
		queues: newQueues(), byExecutor: map[string]*tree[place]{}, ended: newTree(byPlace),
		later: newTree(byPlace), deadlines: newTree(byPlace),
	}
	for i := range x.byStatus {
		x.byStatus[i] = newTree(byPlace)
	}
	return x
}

// of returns the tree of the tasks of a known status.
func (x *index) of(s task.Status) *tree[place] {
	for i, known := range order {
		if s == known {
			return x.byStatus[i]
		}
	}
	panic("memory store: a task of the unknown status " + string(s) + " came in")
}

var order = [statuses]task.Status(task.All())

func (e *entry) created() place { return place{e.t.CreateDateTime, e} }
func (e *entry) updated() place { return place{e.t.UpdateDateTime, e} }
func (e *entry) later() place   { return place{e.t.NotBefore, e} }
func (e *entry) due() place     { return place{e.t.DeadlineDateTime, e} }

func (e *entry) waits() bool {
	return e.t.LifecycleStatus == task.Created && e.t.Mode == task.ModePassive
}

// add stores a new task, whose queue has that name.
func (x *index) add(e *entry, queue string) {
	e.queue = x.queues.join(queue)
	x.byID[e.t.ID] = e
	if e.t.IdempotencyKey != "" {
		x.byKey[e.t.IdempotencyKey] = e
	}
	x.hold(e)
	x.link(e)
	x.addToExecutor(e)
	x.trackDesired(e)
}

// remove removes a task.
func (x *index) remove(e *entry) {
	delete(x.byID, e.t.ID)
	if e.t.IdempotencyKey != "" {
		delete(x.byKey, e.t.IdempotencyKey)
	}
	x.unlink(e)
	x.removeFromExecutor(e)
	x.release(e)
	x.queues.leave(e.queue)
	delete(x.desired, e)
}

// apply carries a change out and reports whether it applied. The id, the creation time, the priority, the key and the
// queue of a task never change.
func (x *index) apply(e *entry, c *task.Change) bool {
	if !c.Matches(&e.t) {
		return false
	}
	if key, pool := store.Permits(c); x.taken(e, key, pool) {
		return false
	}
	moves := c.To != e.t.LifecycleStatus || c.To.Terminal() || c.NotBefore != 0 || c.Reset
	if moves {
		x.unlink(e)
	}
	if c.Assign != nil || c.Unassign {
		x.removeFromExecutor(e)
	}
	x.release(e)
	c.Write(&e.t)
	x.hold(e)
	if c.Progress != nil {
		e.t.Progress = new(*c.Progress)
	}
	if c.Assign != nil || c.Unassign {
		x.addToExecutor(e)
	}
	if moves {
		x.link(e)
	}
	x.trackDesired(e)
	return true
}

// link puts e into the orders that depend on its status; unlink takes it out of them.
func (x *index) link(e *entry)   { x.eachOrder(e, (*tree[place]).add, x.queues.add) }
func (x *index) unlink(e *entry) { x.eachOrder(e, (*tree[place]).remove, x.queues.remove) }

// eachOrder calls do for the place of e in each of those orders, and inQueue if it waits in its queue.
func (x *index) eachOrder(e *entry, do func(*tree[place], place), inQueue func(*entry)) {
	do(x.of(e.t.LifecycleStatus), e.created())
	switch {
	case !e.waits():
	case e.t.NotBefore != 0:
		do(x.later, e.later())
	default:
		inQueue(e)
	}
	switch {
	case e.t.LifecycleStatus.Terminal():
		do(x.ended, e.updated())
	case e.t.DeadlineDateTime != 0:
		do(x.deadlines, e.due())
	}
}

// addToExecutor puts e among the tasks of its executor; removeFromExecutor takes it out.
func (x *index) addToExecutor(e *entry) {
	if e.t.Executor == "" {
		return
	}
	t, ok := x.byExecutor[e.t.Executor]
	if !ok {
		t = newTree(byPlace)
		x.byExecutor[e.t.Executor] = t
	}
	t.add(e.created())
}

func (x *index) removeFromExecutor(e *entry) {
	if e.t.Executor == "" {
		return
	}
	t := x.byExecutor[e.t.Executor]
	if t.remove(e.created()); t.Len() == 0 {
		delete(x.byExecutor, e.t.Executor)
	}
}

// taken reports whether another task than e holds one of the permits.
func (x *index) taken(e *entry, key, pool string) bool {
	ofKey, ofPool := x.keyPermits[key], x.poolPermits[pool]
	return ofKey != nil && ofKey != e || ofPool != nil && ofPool != e
}

// hold records the permits of e; release removes them.
func (x *index) hold(e *entry) {
	if e.t.KeyPermit != "" {
		x.keyPermits[e.t.KeyPermit] = e
	}
	if e.t.PoolPermit != "" {
		x.poolPermits[e.t.PoolPermit] = e
	}
}

func (x *index) release(e *entry) {
	if e.t.KeyPermit != "" {
		delete(x.keyPermits, e.t.KeyPermit)
	}
	if e.t.PoolPermit != "" {
		delete(x.poolPermits, e.t.PoolPermit)
	}
}

// trackDesired keeps the set of tasks that have not ended and have a desired state.
func (x *index) trackDesired(e *entry) {
	switch has := e.t.Desired != "" && !e.t.LifecycleStatus.Terminal(); {
	case has:
		x.desired[e] = struct{}{}
	case len(x.desired) > 0:
		delete(x.desired, e)
	}
}
