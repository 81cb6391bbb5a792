// Package store is the interface to everything that is stored: the task documents, the leader's document, the positions
// of ingest and the settings that change at run time. Packages mongo, memory and sqlite implement it; package storetest
// holds the tests that each of them passes.
//
// Every implementation guarantees:
//
//   - The effect of a method that returned no error is on a majority of the machines: it survives the loss of any one.
//   - A method that returned an error may have had its effect or not. Calling it again with the same arguments does no
//     harm.
//   - Apply is one atomic compare-and-set per change. Nothing else changes a task's status.
//   - No two tasks hold the same KeyPermit, nor the same PoolPermit.
//   - Reads see every write that was acknowledged before they began.
//
// Callers declare interfaces of their own for the parts they use.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/skalds-go/skalds/pkg/task"
)

// MaxBatch is the largest number of tasks, changes or ids in one call.
const MaxBatch = 1000

// ErrUnavailable is wrapped by every error of a store that cannot be reached or does not answer in time. The outcome of
// a write is then unknown.
var ErrUnavailable = errors.New("store unavailable")

// Store is a whole store.
type Store interface {
	Tasks
	Queues
	Leases
	Positions
	Settings
	// Ping reports whether the store answers.
	Ping(ctx context.Context) error
	// Close releases what the store holds. It may be called more than once.
	Close(ctx context.Context) error
}

// Tasks are the task documents.
type Tasks interface {
	// Create stores new tasks, each on its own, and returns one outcome for each, in order. A task with a permit that
	// another task holds fails.
	Create(ctx context.Context, tasks []task.Task) ([]CreateOutcome, error)
	// Promote lets tasks wait whose notBefore has come: it removes the field where it is at or before now (epoch ms),
	// from at most limit tasks (1..MaxBatch). It returns their number and the earliest notBefore that is left; 0 =
	// none. A task with a notBefore is in no queue.
	Promote(ctx context.Context, now int64, limit int) (promoted int, next int64, err error)
	// Overdue reads tasks that have not ended by their deadline, which is at or before now (epoch ms): the earliest
	// first, at most limit of them (1..MaxBatch), without attachments and result. It also returns the earliest deadline
	// after now; 0 = none.
	Overdue(ctx context.Context, now int64, limit int) (tasks []task.Task, next int64, err error)
	// Apply carries out changes, each on its own, in any order, and returns how many applied. If it returns an error
	// other than ErrUnavailable, the changes that the error names can never be stored, and the others have been carried
	// out.
	//
	// A claim with a permit (see Permits) that another task holds does not apply. A change that frees the permit in the
	// same call may come too late for it.
	Apply(ctx context.Context, changes []task.Change) (int, error)
	// Get reads tasks by id, in any order. The answer lacks ids that do not exist.
	Get(ctx context.Context, ids []string) ([]task.Task, error)
	// Known reports for each task whether one with its id or its idempotency key is stored, so that Create would not
	// store it.
	Known(ctx context.Context, tasks []task.Task) ([]bool, error)
	// Active calls yield for each task that is Assigning, Running or Paused, in any order, without attachments and
	// result. It stops at the first error of yield and returns it. A task that changes meanwhile may be missing or come
	// twice. Yield may use the store.
	Active(ctx context.Context, yield func(*task.Task) error) error
	// Desired reads tasks that have not ended and have a Desired, at most limit of them (1..MaxBatch), without
	// attachments and result.
	Desired(ctx context.Context, limit int) ([]task.Task, error)
	// List reads tasks by filter, the newest first: (createDateTime descending, id descending).
	List(ctx context.Context, f Filter) (ListPage, error)
	// Counts returns the number of tasks of each status. A status without tasks may be missing.
	Counts(ctx context.Context) (map[task.Status]int64, error)
	// Purge removes an ended task. It reports false if there is no ended task of this id.
	Purge(ctx context.Context, id string) (bool, error)
	// Expire removes ended tasks whose last update was before the given time (epoch ms), at most limit of them
	// (1..MaxBatch), and returns how many. The last update is their end by the controller's clock; finishDateTime is by
	// the node's.
	Expire(ctx context.Context, endedBefore int64, limit int) (int, error)
}

// CreateStatus is the outcome of one task of a Create.
type CreateStatus uint8

const (
	// CreateOK means that the task is stored.
	CreateOK CreateStatus = iota
	// CreateExists means that a task with this id exists; it is in Existing.
	CreateExists
	// CreateSameKey means that a task with this idempotency key exists; it is in Existing.
	CreateSameKey
	// CreateFailed means that the task could not be stored; Err is the reason.
	CreateFailed
)

// CreateOutcome is the outcome of one task of a Create.
type CreateOutcome struct {
	Status   CreateStatus
	Existing *task.Task
	Err      error
}

// Place is a place in a queue, just behind the task it names. The zero value is the head of the queue.
type Place struct {
	Set            bool
	CreateDateTime int64
	ID             string
}

// After returns the place just behind t.
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

// ErrBadCursor is the error for a cursor that this store did not make.
var ErrBadCursor = errors.New("not a cursor of this list")

// Leader is the leader's document.
type Leader struct {
	Holder  string // run id of the controller that leads; empty = nobody, free to take
	Address string // where its API listens
	Mode    string // its SYSTEM_CONTROLLER_MODE: one that dispatches may take over from one that does not
	Term    int64  // higher at every change of holder
	Counter int64  // +1 at every renewal
}

// Leases gives access to the leader's document.
type Leases interface {
	// Leader returns it; the zero value if there is none yet.
	Leader(ctx context.Context) (Leader, error)
	// SwapLeader replaces old by next. It reports false if the document is not old any more.
	SwapLeader(ctx context.Context, old, next Leader) (bool, error)
}

// Position is how far a partition has been read. Check identifies the record before Offset, so that a recreated topic
// is noticed.
type Position struct {
	Offset int64
	Check  uint64
}

// Positions are the positions of ingest in the status topic.
type Positions interface {
	// Positions returns the positions of a topic; empty if there are none.
	Positions(ctx context.Context, topic string) (map[int]Position, error)
	// SavePositions writes the given ones; those of other partitions stay.
	SavePositions(ctx context.Context, topic string, positions map[int]Position) error
}

// OpTimeout is the longest time one call takes. Its context may end it sooner.
const OpTimeout = 5 * time.Second
