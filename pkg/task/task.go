// Package task is the task document and its life cycle. It is pure: no I/O, no clock, no goroutine, and it imports
// nothing else of Skalds.
//
// Three invariants hold for every task, whatever happens to it:
//
//   - A terminal status (Finished, Failed, Cancelled) is left only by [Retry], which a person asks for.
//   - The attempt never goes down, and goes up only with a claim. The pair (attempt, claim id) is the fencing token: a
//     change that carries another pair than the task's present one changes nothing.
//   - Every change of the status goes through the one table behind [Next].
//
// A change is data ([Change]): what the task must be for it to apply, and what it sets. The stores carry it out as one
// compare-and-set; [Change.Apply] says what that means.
package task

import (
	"encoding/json"
	"strconv"
)

// Mode is who dispatches a task.
type Mode string

const (
	// ModePassive tasks are dispatched by the system controller.
	ModePassive Mode = "Passive"
	// ModeActive tasks belong to an edge node, which runs them by itself.
	ModeActive Mode = "Active"
)

// Priority limits: 10 runs first.
const (
	MinPriority = 0
	MaxPriority = 10
)

// Task is the document in the collection `tasks`. The names, types and status values of the first group are those of
// the Python Skalds; a document written by a script may lack every field of the second. Times are epoch milliseconds.
type Task struct {
	ID               string          `bson:"id" json:"id"`
	ClassName        string          `bson:"className" json:"className"`
	Source           string          `bson:"source,omitempty" json:"source,omitempty"`
	Name             string          `bson:"name,omitempty" json:"name,omitempty"`
	Description      string          `bson:"description,omitempty" json:"description,omitempty"`
	Executor         string          `bson:"executor,omitempty" json:"executor,omitempty"` // node id; empty = none yet
	Dependencies     []string        `bson:"dependencies,omitempty" json:"dependencies,omitempty"`
	Mode             Mode            `bson:"mode" json:"mode"`
	IsPersistent     bool            `bson:"isPersistent" json:"isPersistent"`
	CreateDateTime   int64           `bson:"createDateTime" json:"createDateTime"`
	UpdateDateTime   int64           `bson:"updateDateTime" json:"updateDateTime"`
	DeadlineDateTime int64           `bson:"deadlineDateTime" json:"deadlineDateTime"` // 0 = none
	LifecycleStatus  Status          `bson:"lifecycleStatus" json:"lifecycleStatus"`
	Priority         int             `bson:"priority" json:"priority"`
	Attachments      json.RawMessage `bson:"attachments,omitempty" json:"attachments,omitempty"`

	Attempt            int64             `bson:"attempt,omitempty" json:"attempt"`
	ClaimID            string            `bson:"claimId,omitempty" json:"claimId,omitempty"`
	Incarnation        string            `bson:"incarnation,omitempty" json:"incarnation,omitempty"`
	Failures           int               `bson:"failures,omitempty" json:"failures,omitempty"`
	Crashes            int               `bson:"crashes,omitempty" json:"crashes,omitempty"`
	MaxAttempts        *int              `bson:"maxAttempts,omitempty" json:"maxAttempts,omitempty"` // 0 = without end
	MaxCrashes         *int              `bson:"maxCrashes,omitempty" json:"maxCrashes,omitempty"`   // 0 = never ends for it
	Backoff            *Backoff          `bson:"backoff,omitempty" json:"backoff,omitempty"`
	TimeoutMs          int64             `bson:"timeoutMs,omitempty" json:"timeoutMs,omitempty"` // 0 = none
	NotBefore          int64             `bson:"notBefore,omitempty" json:"notBefore,omitempty"`
	Labels             map[string]string `bson:"labels,omitempty" json:"labels,omitempty"`
	Selector           string            `bson:"selector,omitempty" json:"selector,omitempty"` // of nodes, beside labels; see ParseSelector
	Strategy           string            `bson:"strategy,omitempty" json:"strategy,omitempty"` // empty = the cluster's
	StickyKey          string            `bson:"stickyKey,omitempty" json:"stickyKey,omitempty"`
	AntiAffinityKey    string            `bson:"antiAffinityKey,omitempty" json:"antiAffinityKey,omitempty"` // not beside a task of the same key
	Slots              int               `bson:"slots,omitempty" json:"slots,omitempty"`                     // of its node's capacity that it takes; 0 = 1
	ConcurrencyKey     string            `bson:"concurrencyKey,omitempty" json:"concurrencyKey,omitempty"`
	ConcurrencyLimit   int               `bson:"concurrencyLimit,omitempty" json:"concurrencyLimit,omitempty"` // tasks of its key on nodes at once; 0 = 1
	Pool               string            `bson:"pool,omitempty" json:"pool,omitempty"`
	KeyPermit          string            `bson:"keyPermit,omitempty" json:"keyPermit,omitempty"`   // held while a node holds the task; unique in the store
	PoolPermit         string            `bson:"poolPermit,omitempty" json:"poolPermit,omitempty"` // likewise
	IdempotencyKey     string            `bson:"idempotencyKey,omitempty" json:"idempotencyKey,omitempty"`
	AssignedDateTime   int64             `bson:"assignedDateTime,omitempty" json:"assignedDateTime,omitempty"`
	StartDateTime      int64             `bson:"startDateTime,omitempty" json:"startDateTime,omitempty"`
	FinishDateTime     int64             `bson:"finishDateTime,omitempty" json:"finishDateTime,omitempty"`
	Result             json.RawMessage   `bson:"result,omitempty" json:"result,omitempty"`
	Error              string            `bson:"error,omitempty" json:"error,omitempty"`
	Progress           *Progress         `bson:"progress,omitempty" json:"progress,omitempty"`
	Attempts           []Run             `bson:"attempts,omitempty" json:"attempts,omitempty"` // the last 20
	Desired            Desired           `bson:"desired,omitempty" json:"desired,omitempty"`
	AttachmentsVersion int64             `bson:"attachmentsVersion,omitempty" json:"attachmentsVersion,omitempty"`
	Namespace          string            `bson:"namespace,omitempty" json:"namespace,omitempty"`
}

// Backoff is the wait before a failed task runs again: BaseMs * Factor^(failures-1), at most MaxMs.
type Backoff struct {
	BaseMs int64   `bson:"baseMs" json:"baseMs"`
	Factor float64 `bson:"factor" json:"factor"`
	MaxMs  int64   `bson:"maxMs" json:"maxMs"`
}

// Progress is the latest progress that a running task has reported.
type Progress struct {
	Percent float64 `bson:"percent" json:"percent"` // 0..100
	Message string  `bson:"message,omitempty" json:"message,omitempty"`
}

// Run is one ended attempt in a task's history.
type Run struct {
	Attempt        int64  `bson:"attempt" json:"attempt"`
	Executor       string `bson:"executor" json:"executor"`
	StartDateTime  int64  `bson:"startDateTime,omitempty" json:"startDateTime,omitempty"`
	FinishDateTime int64  `bson:"finishDateTime,omitempty" json:"finishDateTime,omitempty"`
	Outcome        string `bson:"outcome" json:"outcome"`
	Error          string `bson:"error,omitempty" json:"error,omitempty"`
}

// Desired is what a person has asked of a task that is on a node, until the node has carried it out.
type Desired string

// What a person may ask for.
const (
	// DesiredCancelled asks the node to end the run.
	DesiredCancelled Desired = "Cancelled"
	// DesiredPaused asks it to pause the run, or to return what has not started.
	DesiredPaused Desired = "Paused"
	// DesiredRunning asks it to go on with a paused run.
	DesiredRunning Desired = "Running"
)

// Held reports whether a node holds the task or is about to: it is assigned and its end is not known.
func (t *Task) Held() bool { return t.LifecycleStatus.Active() && t.Executor != "" }

// Width returns how many slots of its node the task takes.
func (t *Task) Width() int { return max(t.Slots, 1) }

// KeyLimit returns how many tasks of its concurrency key may be on nodes at once.
func (t *Task) KeyLimit() int { return max(t.ConcurrencyLimit, 1) }

// Permit returns the name of the n-th permit of a concurrency key or a pool. A claimed task with a key holds one of the
// permits 0..limit-1. The store lets no two tasks hold the same permit, so the limit holds whatever two leaders do at
// once.
func Permit(name string, n int) string { return name + "#" + strconv.Itoa(n) }
