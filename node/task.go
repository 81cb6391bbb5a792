package node

import (
	"context"
	"encoding/json"
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
	Slots     int   // of the node's capacity that it takes, at least 1; 0 outside of a run

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

// Paused gives a channel that is closed while a person wants the task paused. A handler that sees it closed brings its work to a place where
// it can rest, and calls [Task.WaitWhilePaused]. After a pause there is a new channel.
func (t *Task) Paused() <-chan struct{} {
	if t.session == nil {
		return nil
	}
	return steered(t, func(s *steer) chan struct{} { return s.asked })
}

// WaitWhilePaused returns at once unless a person wants the task paused. Then the run counts as paused, and it waits until it may go on, or
// until ctx ends; it gives the cause of that. A handler calls it at the places where it can rest, such as between two steps. One that never
// calls it runs on, and its task stays Running with the wish in desired.
//
// A paused run keeps its slot. Its timeout stands still, its deadline does not. A pause that nobody has looked at may be undone unseen.
func (t *Task) WaitWhilePaused(ctx context.Context) error {
	for t.session != nil && ctx.Err() == nil {
		goOn, pause := t.session.rest(t.claim)
		if !pause {
			break
		}
		signal(t.session.wake)
		select {
		case <-goOn:
		case <-ctx.Done():
		}
	}
	return context.Cause(ctx) //nolint:wrapcheck // as documented
}

// Updates gives the task's new attachments when a person has replaced them; nil stands for none. The channel holds the newest ones only: a
// handler that is slow misses those in between, never the last. It is the same channel for the whole run, and is never closed.
func (t *Task) Updates() <-chan json.RawMessage {
	if t.session == nil {
		return nil
	}
	return steered(t, func(s *steer) chan json.RawMessage { return s.updates })
}

// steered reads a channel of a run; nil when it is over.
func steered[T any](t *Task, channel func(*steer) chan T) chan T {
	t.session.mu.Lock()
	defer t.session.mu.Unlock()
	if t.claim.state != running {
		return nil
	}
	return channel(t.claim.steering())
}

// Logger is the node's logger with the task's id, class and attempt.
func (t *Task) Logger() *slog.Logger {
	log := slog.Default()
	if t.session != nil {
		log = t.session.log
	}
	return log.With("task", t.ID, "class", t.ClassName, "attempt", t.Attempt)
}
