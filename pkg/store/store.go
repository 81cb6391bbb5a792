// Package store is the seam to where the truth is: the task documents, the leader's document, the positions of ingest
// and the settings that change at run time. The implementations are in mongo, memory and sqlite; package storetest
// holds the suite that each passes.
//
// What every implementation promises:
//
//   - A method that returned without an error has its effect on a majority: it outlives any one machine.
//   - A method that returned an error may have had its effect or not; each may be called again with the same arguments
//     without harm.
//   - Apply is one atomic compare-and-set per change. Nothing else changes a task's status.
//   - No two tasks hold the same KeyPermit, nor the same PoolPermit.
//   - Reads see every write that was acknowledged before they began.
//
// Callers declare the part of it that they use as an interface of their own; the sets here are for composition.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/skalds-go/skalds/pkg/task"
)

// MaxBatch is the largest number of tasks, changes or ids in one call.
const MaxBatch = 1000

// ErrUnavailable is in the chain of every error that says that the store cannot be reached or does not answer in time,
// so that the outcome of a write is unknown.
var ErrUnavailable = errors.New("store unavailable")

// Store is everything.
type Store interface {
	Tasks
	Queues
	Leases
	Positions
	Settings
	// Ping reports whether the store answers.
	Ping(ctx context.Context) error
	// Close frees what the store holds. It is idempotent.
	Close(ctx context.Context) error
}

// Tasks are the task documents.
type Tasks interface {
	// Create stores new tasks, each for itself, and gives one outcome for each, in order. One with a permit that
	// another task holds fails.
	Create(ctx context.Context, tasks []task.Task) ([]CreateOutcome, error)
	// Promote lets tasks wait whose notBefore has come: it removes the field from those that have it at or before now
	// (epoch ms), at most limit of them (1..MaxBatch), and says how many those were, and the earliest notBefore that is
	// left among tasks that wait; 0 = none. A task that has the field is in no queue.
	Promote(ctx context.Context, now int64, limit int) (promoted int, next int64, err error)
	// Overdue reads tasks that have not ended and whose deadlineDateTime has come by now (epoch ms), the earliest
	// first, at most limit of them (1..MaxBatch), without attachments and result. It says the earliest deadline after
	// now, too; 0 = none.
	Overdue(ctx context.Context, now int64, limit int) (tasks []task.Task, next int64, err error)
	// Apply carries out changes, each for itself, in no certain order, and says how many applied. With an error that is
	// not ErrUnavailable, the changes that it names will never be taken, and the others have been carried out. A claim
	// with a permit (see Permits) that another task holds does not apply, like one of a task that is not as it was
	// read; a change that frees the permit in the same call may come too late for it.
	Apply(ctx context.Context, changes []task.Change) (int, error)
	// Get reads tasks by id; an id that does not exist is missing in the answer. The order is not defined.
	Get(ctx context.Context, ids []string) ([]task.Task, error)
	// Known says of each task whether one of its id or its idempotency key is stored, so that Create would not store
	// it.
	Known(ctx context.Context, tasks []task.Task) ([]bool, error)
	// Active calls yield for each task that is Assigning, Running or Paused, in no certain order, without attachments
	// and result, until yield returns an error, which it returns. A task that changes meanwhile may be missing or come
	// twice. Yield may use the store.
	Active(ctx context.Context, yield func(*task.Task) error) error
	// Desired reads tasks that have not ended and carry a Desired, at most limit of them (1..MaxBatch), without
	// attachments and result.
	Desired(ctx context.Context, limit int) ([]task.Task, error)
	// List reads tasks by filter, the newest first: (createDateTime descending, id descending).
	List(ctx context.Context, f Filter) (ListPage, error)
	// Counts says how many tasks there are of each status; a status without tasks may be missing.
	Counts(ctx context.Context) (map[task.Status]int64, error)
	// Purge removes an ended task. It reports false if there is no ended task of this id.
	Purge(ctx context.Context, id string) (bool, error)
	// Expire removes ended tasks whose last update was before the given time (epoch ms), at most limit of them
	// (1..MaxBatch), and says how many it removed. The last update is their end by the controller's clock;
	// finishDateTime is by the node's.
	Expire(ctx context.Context, endedBefore int64, limit int) (int, error)
}

// CreateStatus is what became of one task of a Create.
type CreateStatus uint8

const (
	// CreateOK says that the task is stored.
	CreateOK CreateStatus = iota
	// CreateExists says that there is a task of this id already; it is in Existing.
	CreateExists
	// CreateSameKey says that there is a task with this idempotency key already; it is in Existing.
	CreateSameKey
	// CreateFailed says that this task could not be stored; Err reports why.
	CreateFailed
)

// CreateOutcome is what became of one task of a Create.
type CreateOutcome struct {
	Status   CreateStatus
	Existing *task.Task
	Err      error
}

// Place is a place in a queue: just behind the task it names. The zero value is the head.
type Place struct {
	Set            bool
	CreateDateTime int64
	ID             string
}

// After is the place just behind t.
func After(t *task.Task) Place {
	return Place{Set: true, CreateDateTime: t.CreateDateTime, ID: t.ID}
}

// PendingPage is a page of tasks that wait.
type PendingPage struct {
	Tasks []task.Task
	Bad   []BadDocument
	More  bool // whether there may be a next page, behind the last task
}

// BadDocument is a document that did not decode. It has been marked Failed.
type BadDocument struct {
	ID     string // its id, or what else names it
	Reason string
}

// Filter selects tasks for List. Empty fields do not filter.
type Filter struct {
	Status    []task.Status
	ClassName string
	Executor  string
	IDPrefix  string
	Limit     int    // 1..MaxBatch
	Skip      int    // tasks to pass over, for numbered pages; not with a cursor
	Cursor    string // NextCursor of the page before
	Total     bool   // count all that match, too
}

// ListPage is a page of a List.
type ListPage struct {
	Tasks      []task.Task
	Total      int64  // only if it was asked for
	NextCursor string // empty on the last page
}

// ErrBadCursor says that a cursor was not made by this store.
var ErrBadCursor = errors.New("not a cursor of this list")

// Leader is the leader's document.
type Leader struct {
	Holder  string // run id of the controller that leads; empty = nobody, free to take
	Address string // where its API listens
	Mode    string // its SYSTEM_CONTROLLER_MODE: one that dispatches may take over from one that does not
	Term    int64  // higher at every change of holder
	Counter int64  // +1 at every renewal
}

// Leases is the leader's document.
type Leases interface {
	// Leader reads it; the zero value where there is none yet.
	Leader(ctx context.Context) (Leader, error)
	// SwapLeader replaces old by next, if it is still old. It reports false if it is not.
	SwapLeader(ctx context.Context, old, next Leader) (bool, error)
}

// Position says how far a partition has been read. Check identifies the record before Offset, so that a recreated topic
// is noticed.
type Position struct {
	Offset int64
	Check  uint64
}

// Positions are the positions of ingest in the status topic.
type Positions interface {
	// Positions reads those of a topic; empty where there are none.
	Positions(ctx context.Context, topic string) (map[int]Position, error)
	// SavePositions writes the given ones; those of other partitions stay.
	SavePositions(ctx context.Context, topic string, positions map[int]Position) error
}

// OpTimeout is how long one call may take, if its context does not end earlier.
const OpTimeout = 5 * time.Second
