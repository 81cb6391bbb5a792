package node

import (
	"context"
	"encoding/json"
	"log/slog"
	"math"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/node/session"
	"github.com/skalds-go/skalds/pkg/task"
)

// The causes with which a handler's context ends (context.Cause).
var (
	// ErrCancelled says that a person cancelled the task.
	ErrCancelled = session.ErrCancelled
	// ErrLeaseLost says that nothing confirms this node any more: its tasks are about to run elsewhere, and no result
	// counts.
	ErrLeaseLost = session.ErrLeaseLost
	// ErrDraining says that the node stops; the task runs elsewhere, as interrupted.
	ErrDraining = session.ErrDraining
	// ErrTimeout says that this run has taken longer than the task's timeoutMs. It counts as a failure.
	ErrTimeout = session.ErrTimeout
	// ErrDeadline says that the task's deadlineDateTime has come. It is not tried again.
	ErrDeadline = session.ErrDeadline
)

// maxProgressBytes is what a progress message is cut to.
const maxProgressBytes = 1 << 10

// Task is the run that a handler is called for.
type Task struct {
	ID        string
	ClassName string
	Attempt   int64 // 1 at the first run; carry it in side effects, so that those of an older run can be told apart
	Priority  int   // 0..10, 10 first
	Slots     int   // of the node's capacity that it takes, at least 1; 0 outside of a run

	run *session.Run
}

type taskKey struct{}

// withTask returns the context of a handler that is called for a run.
func withTask(ctx context.Context, run *session.Run) context.Context {
	t := run.Task()
	return context.WithValue(ctx, taskKey{}, &Task{
		ID: t.ID, ClassName: t.ClassName, Attempt: t.Attempt, Priority: t.Priority, Slots: t.Width(), run: run,
	})
}

// TaskFrom returns the run that the handler's context belongs to. For any other context, as in a handler's unit test,
// it returns an empty Task that can be used like any.
func TaskFrom(ctx context.Context) *Task {
	if t, ok := ctx.Value(taskKey{}).(*Task); ok {
		return t
	}
	return &Task{}
}

// Progress reports how far the run is. Percent is brought into 0..100, and the message is cut to 1 KiB. Progress is
// cheap and never blocks. Only the newest progress counts; it is sent at most about four times a second.
func (t *Task) Progress(percent float64, message string) {
	if t.run == nil {
		return
	}
	if math.IsNaN(percent) {
		percent = 0
	}
	t.run.SetProgress(task.Progress{Percent: min(max(percent, 0), 100), Message: events.Clip(message, maxProgressBytes)})
}

// Paused returns a channel that is closed while a person wants the task paused. A handler that finds it closed brings
// its work to a point where it can stop, and calls [Task.WaitWhilePaused]. After a pause there is a new channel.
func (t *Task) Paused() <-chan struct{} {
	if t.run == nil {
		return nil
	}
	return t.run.PauseRequested()
}

// WaitWhilePaused returns at once unless a person wants the task paused. Otherwise the run counts as paused, and
// WaitWhilePaused blocks until it may go on, or until ctx ends; it returns the cause of that. A handler calls it where
// its work can stop, such as between two steps. The task of a handler that never calls it stays Running, with the
// request in desired.
//
// A paused run keeps its slot. Its timeout stands still, its deadline does not. A pause that the handler has not looked
// at may be undone without its notice.
func (t *Task) WaitWhilePaused(ctx context.Context) error {
	if t.run != nil {
		t.run.WaitWhilePaused(ctx)
	}
	return context.Cause(ctx) //nolint:wrapcheck // as documented
}

// Updates returns a channel with the task's new attachments when a person has replaced them; nil stands for none. The
// channel holds only the newest: a slow handler misses those in between, never the last. It is the same channel for the
// whole run, and is never closed.
func (t *Task) Updates() <-chan json.RawMessage {
	if t.run == nil {
		return nil
	}
	return t.run.Updates()
}

// Logger returns the node's logger with the task's id, class and attempt.
func (t *Task) Logger() *slog.Logger {
	log := slog.Default()
	if t.run != nil {
		log = t.run.Logger()
	}
	return log.With("task", t.ID, "class", t.ClassName, "attempt", t.Attempt)
}
