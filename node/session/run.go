package session

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/pkg/loop"
	"github.com/skalds-go/skalds/pkg/task"
)

// Run is one call of a handler.
type Run struct {
	executor    *executor
	claim       *claim
	handler     Handler
	attachments json.RawMessage
	ctx         context.Context
	cancel      context.CancelCauseFunc
	timers      []*time.Timer // of its timeout, its deadline, and the grace after its context's end

	timeout     *time.Timer   // one of timers; nil = none
	timeoutAt   time.Duration // when it fires, by the boot clock
	timeoutLeft time.Duration // what was left of it when the run was paused; 0 = it runs

	graced bool // its handler is abandoned if it does not return in time
}

// Task returns what the run was assigned, without the attachments. It must not be changed.
func (r *Run) Task() *events.AssignedTask { return &r.claim.task }

// Logger returns the node's logger.
func (r *Run) Logger() *slog.Logger { return r.executor.log }

// SetProgress reports how far the run is. It never blocks.
func (r *Run) SetProgress(p task.Progress) {
	e := r.executor
	e.mu.Lock()
	if e.lease.phase != over {
		e.claims.setProgress(r.claim, p, e.clock.Boot())
	}
	e.mu.Unlock()
	e.flushNow.Signal()
}

// PauseRequested returns a channel that is closed while a person wants the task paused; nil when the run is over. After
// a pause there is a new channel.
func (r *Run) PauseRequested() <-chan struct{} {
	return signalOf(r, func(s *handlerSignals) <-chan struct{} { return s.requested })
}

// Updates returns a channel that holds the newest attachments that the handler has not taken; nil when the run is over.
func (r *Run) Updates() <-chan json.RawMessage {
	return signalOf(r, func(s *handlerSignals) <-chan json.RawMessage { return s.updates })
}

func signalOf[T any](r *Run, channel func(*handlerSignals) <-chan T) <-chan T {
	r.executor.mu.Lock()
	defer r.executor.mu.Unlock()
	if r.claim.state != running {
		return nil
	}
	return channel(r.claim.handlerSignals())
}

// Pause has the run count as paused if a person wants that, and reports whether it is. The run may go on once the wake
// fires.
func (r *Run) Pause() (resumed loop.Wake, paused bool) {
	e := r.executor
	e.mu.Lock()
	defer e.mu.Unlock()
	resumed, paused = e.claims.enterPause(r.claim)
	if !paused {
		return resumed, false
	}
	e.flushNow.Signal()
	if e.runs[r.claim] == r {
		if e.claims.draining { // the drain would wait for it
			r.cancel(ErrDraining)
		}
		if r.timeout != nil && r.timeout.Stop() {
			r.timeoutLeft = max(r.timeoutAt-e.clock.Boot(), 1)
		}
	}
	return resumed, true
}

// WaitWhilePaused returns when no person wants the task paused, or when ctx ends.
func (r *Run) WaitWhilePaused(ctx context.Context) {
	for ctx.Err() == nil {
		resumed, paused := r.Pause()
		if !paused {
			return
		}
		r.executor.driver.Wait(ctx, loop.Forever, resumed)
	}
}
