package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/skalds-go/skalds/pkg/task"
)

// Handler runs one claim: attachments in, result out, both JSON. The context ends when the run should end, with the
// cause [ErrCancelled], [ErrTimeout], [ErrDeadline], [ErrLeaseLost] or [ErrDraining].
type Handler func(ctx context.Context, run *Run, attachments json.RawMessage) (json.RawMessage, error)

// executor runs handlers for queued claims while slots are free.
type executor struct {
	*core
	handlers map[string]Handler // by class
	runs     map[*claim]*Run
}

// startLocked starts queued claims while slots are free.
func (e *executor) startLocked(now int64) {
	for r := e.nextLocked(now); r != nil; r = e.nextLocked(now) {
		e.spawn(r)
	}
}

func (e *executor) spawn(r *Run) { e.driver.Go("handler", func() { e.work(r) }) }

// nextLocked takes the next queued claim to be run, if slots are free and the lease holds. The caller runs it.
func (e *executor) nextLocked(now int64) *Run {
	if !e.lease.holds() {
		return nil
	}
	c, attachments, ok := e.claims.startNext(now, e.clock.Boot())
	if !ok {
		return nil
	}
	r := &Run{executor: e, claim: c, handler: e.handlers[c.task.ClassName], attachments: attachments}
	r.ctx, r.cancel = context.WithCancelCause(e.base)
	if ms := c.task.TimeoutMs; ms > 0 {
		e.setTimeoutLocked(r, millis(ms))
	}
	if at := c.task.DeadlineDateTime; at > 0 {
		e.endAfterLocked(r, millis(at-now), ErrDeadline)
	}
	e.runs[c] = r
	return r
}

// work runs one claim, and then the queued ones that get its place.
func (e *executor) work(r *Run) {
	for r != nil {
		r = e.runOne(r)
	}
}

// runOne runs one handler. It returns the run that gets its place, if there is one.
func (e *executor) runOne(r *Run) (next *Run) {
	var out json.RawMessage
	var err error
	returned := false
	defer func() {
		exit := false
		if !returned {
			if v := recover(); v != nil {
				err = newPanicError(v)
				e.log.Error("a handler panicked", "task", r.claim.task.ID, "class", r.claim.task.ClassName, "panic", fmt.Sprint(v))
			} else {
				err, exit = errGoexit, true
			}
		}
		next = e.returned(r, out, err)
		if exit && next != nil {
			e.spawn(next) // this goroutine is at its end
		}
	}()
	out, err = r.handler(r.ctx, r, r.attachments)
	returned = true
	return nil
}

// returned records how a handler ended, and takes the next run for its place.
func (e *executor) returned(r *Run, out json.RawMessage, err error) *Run {
	o := outcomeOf(context.Cause(r.ctx), out, err, e.cfg.ResultMaxBytes, e.now())
	r.cancel(nil)
	e.mu.Lock()
	for _, t := range r.timers {
		t.Stop()
	}
	delete(e.runs, r.claim)
	if len(e.runs) == 0 {
		e.idle.Signal()
	}
	if e.lease.phase == over {
		e.mu.Unlock()
		return nil
	}
	now := e.now()
	e.claims.end(r.claim, o, now)
	next := e.nextLocked(now)
	if next != nil {
		e.startLocked(now) // it may have freed slots for more than one
	}
	e.mu.Unlock()
	e.flushNow.Signal()
	return next
}

// endAfterLocked ends the run's context after d.
func (e *executor) endAfterLocked(r *Run, d time.Duration, cause error) *time.Timer {
	timer := time.AfterFunc(d, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.endLocked(r, cause)
	})
	r.timers = append(r.timers, timer)
	return timer
}

// setTimeoutLocked ends the run's context after d, not counting pauses.
func (e *executor) setTimeoutLocked(r *Run, d time.Duration) {
	r.timeoutAt = e.clock.Boot() + d
	if r.timeoutLeft = 0; r.timeout != nil {
		r.timeout.Reset(d)
		return
	}
	r.timeout = e.endAfterLocked(r, d, ErrTimeout)
}

// resumeLocked lets a paused run go on.
func (e *executor) resumeLocked(claimID string) {
	e.claims.resume(claimID)
	if r := e.runs[e.claims.byID[claimID]]; r != nil && r.timeoutLeft > 0 {
		e.setTimeoutLocked(r, r.timeoutLeft)
	}
}

func millis(ms int64) time.Duration {
	return time.Duration(min(max(ms, 0), maxLimitMs)) * time.Millisecond
}

// maxLimitMs is the longest timeout; a longer one is none.
const maxLimitMs = math.MaxInt64 / int64(time.Millisecond)

// endLocked ends a run's context. A handler that does not return within CANCEL_GRACE is abandoned. After a drain has
// ended the context, the handler may take as long as it likes, unless a person cancels its task.
func (e *executor) endLocked(r *Run, cause error) {
	if e.runs[r.claim] != r || r.graced || r.ctx.Err() != nil && !errors.Is(cause, ErrCancelled) {
		return
	}
	r.graced = true
	r.cancel(cause)
	r.timers = append(r.timers, time.AfterFunc(e.cfg.CancelGrace, func() { e.abandon(r, cause) }))
}

// abandon gives up waiting for a handler that ignores the end of its context.
func (e *executor) abandon(r *Run, cause error) {
	e.mu.Lock()
	if e.runs[r.claim] == r && e.lease.holds() {
		e.log.Error("a handler ignores the end of its context; its slot is lost until it returns",
			"task", r.claim.task.ID, "class", r.claim.task.ClassName, "cause", cause, "grace", e.cfg.CancelGrace)
		e.claims.abandon(r.claim, abandoned(cause, e.cfg.CancelGrace), e.now())
	}
	e.mu.Unlock()
	e.flushNow.Signal()
}

// abandoned is the outcome of such a run. It may still be at work, so it must not be tried again elsewhere.
func abandoned(cause error, grace time.Duration) outcome {
	o := outcome{kind: task.ReportFailed, permanent: true}
	if errors.Is(cause, ErrCancelled) {
		o.kind = task.ReportCancelled
	}
	o.text = fmt.Sprintf("%v, and the handler did not return within %s (CANCEL_GRACE): it was abandoned and may still be at work",
		cause, grace)
	return o
}

// drainLocked releases what is queued and what pauses: a pause does not end by itself.
func (e *executor) drainLocked() {
	e.claims.drain(e.now())
	for _, c := range e.claims.paused() {
		if r := e.runs[c]; r != nil {
			r.cancel(ErrDraining)
		}
	}
}

// cancelAllLocked ends the contexts of all handlers.
func (e *executor) cancelAllLocked(cause error) {
	for _, r := range e.runs {
		r.cancel(cause)
	}
}

// running returns the claims whose handlers have not returned.
func (e *executor) running() unreturned {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := make(unreturned, 0, len(e.runs))
	for c := range e.runs {
		list = append(list, c)
	}
	return list
}

// unreturned is claims whose handlers have not returned.
type unreturned []*claim

// maxNames bounds how many tasks an error or a log line names.
const maxNames = 10

func (list unreturned) String() string {
	var all []string
	for _, c := range list {
		all = append(all, fmt.Sprintf("%s (%s)", c.task.ID, c.task.ClassName))
	}
	slices.Sort(all)
	if n := len(all); n > maxNames {
		all = append(all[:maxNames], fmt.Sprintf("and %d more", n-maxNames))
	}
	return strings.Join(all, ", ")
}

// err says that the handlers did not return.
func (list unreturned) err(what string) error {
	return fmt.Errorf("node: %s: %d still run: %s", what, len(list), list)
}
