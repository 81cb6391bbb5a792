package node

import (
	"context"
	"errors"
	"log/slog"
	"math"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/pkg/task"
)

// The causes with which a handler's context ends (context.Cause).
var (
	// ErrCancelled says that a person cancelled the task.
	ErrCancelled = errors.New("task cancelled")
	// ErrLeaseLost says that nothing confirms this node any more: its tasks are about to run elsewhere, and no result counts.
	ErrLeaseLost = errors.New("lease lost")
	// ErrDraining says that the node stops; the task runs elsewhere, as interrupted.
	ErrDraining = errors.New("node is draining")
	// ErrTimeout says that this run has taken longer than the task's timeoutMs. It counts as a failure.
	ErrTimeout = errors.New("the run took longer than the task's timeoutMs")
	// ErrDeadline says that the task's deadlineDateTime has come. It is not tried again.
	ErrDeadline = errors.New("the task's deadline has passed")
)

// maxProgressBytes is what a progress message is cut to.
const maxProgressBytes = 1 << 10

// Task is the run that a handler is called for.
type Task struct {
	ID        string
	ClassName string
	Attempt   int64 // 1 at the first run; carry it in side effects, so that those of an older run can be told apart
	Priority  int   // 0..10, 10 first

	session *session
	claim   *claim
}

type taskKey struct{}

// TaskFrom gives the run that the handler's context belongs to. For any other context, as in a handler's unit test, it gives an
// empty Task that can be used like any.
func TaskFrom(ctx context.Context) *Task {
	if t, ok := ctx.Value(taskKey{}).(*Task); ok {
		return t
	}
	return &Task{}
}

// Progress tells how far the run is: percent is brought into 0..100, and the message is cut to 1 KiB. It is cheap and never waits:
// the newest word wins, and a task's words go out at most about four times a second.
func (t *Task) Progress(percent float64, message string) {
	if t.session == nil {
		return
	}
	if math.IsNaN(percent) {
		percent = 0
	}
	t.session.say(t.claim, task.Progress{Percent: min(max(percent, 0), 100), Message: events.Clip(message, maxProgressBytes)})
}

// Logger is the node's logger with the task's id, class and attempt.
func (t *Task) Logger() *slog.Logger {
	log := slog.Default()
	if t.session != nil {
		log = t.session.log
	}
	return log.With("task", t.ID, "class", t.ClassName, "attempt", t.Attempt)
}
