package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/skalds-go/skalds/pkg/task"
)

// run is one handler that runs.
type run struct {
	claim   *claim
	handler Handler
	in      json.RawMessage
	ctx     context.Context
	cancel  context.CancelCauseFunc
	limits  []*time.Timer // of its timeout, its deadline, and the grace after its context's end

	timeout   *time.Timer   // one of limits; nil = none
	timeoutAt time.Duration // when it ends, by the boot clock
	left      time.Duration // what was left of it when the run was paused; 0 = it goes on

	graced bool // its handler is abandoned if it does not return in time
}

// nextLocked takes the next queued claim to be run, if there is room and the session trusts itself. The caller runs it.
func (s *session) nextLocked(now int64) *run {
	if !s.checkLocked() {
		return nil
	}
	c, in, ok := s.claims.next(now, s.clock.Boot())
	if !ok {
		return nil
	}
	t := &Task{ID: c.task.ID, ClassName: c.task.ClassName, Attempt: c.task.Attempt, Priority: c.task.Priority, Slots: c.task.Width(), session: s, claim: c}
	ctx, cancel := context.WithCancelCause(context.WithValue(s.base, taskKey{}, t))
	r := &run{claim: c, handler: s.handlers[c.task.ClassName], in: in, ctx: ctx, cancel: cancel}
	if ms := c.task.TimeoutMs; ms > 0 {
		s.timeoutLocked(r, millis(ms))
	}
	if at := c.task.DeadlineDateTime; at > 0 {
		s.limitLocked(r, millis(at-now), ErrDeadline)
	}
	s.runs[c] = r
	return r
}

// limitLocked ends the run's context after d.
func (s *session) limitLocked(r *run, d time.Duration, cause error) *time.Timer {
	timer := time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.endLocked(r, cause)
	})
	r.limits = append(r.limits, timer)
	return timer
}

// timeoutLocked ends the run's context after d, not counting pauses.
func (s *session) timeoutLocked(r *run, d time.Duration) {
	r.timeoutAt = s.clock.Boot() + d
	if r.left = 0; r.timeout != nil {
		r.timeout.Reset(d)
		return
	}
	r.timeout = s.limitLocked(r, d, ErrTimeout)
}

// rest notes that a handler pauses, if that is wished for. What it gives is closed when the run may go on.
func (s *session) rest(c *claim) (goOn <-chan struct{}, pause bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	goOn, pause = s.claims.rest(c)
	r := s.runs[c]
	if !pause || r == nil {
		return goOn, pause
	}
	if s.claims.draining { // the drain would wait for it
		r.cancel(ErrDraining)
	}
	if r.timeout != nil && r.timeout.Stop() {
		r.left = max(r.timeoutAt-s.clock.Boot(), 1)
	}
	return goOn, pause
}

// goOnLocked lets a paused run go on.
func (s *session) goOnLocked(claimID string) {
	s.claims.goOn(claimID)
	if r := s.runs[s.claims.byID[claimID]]; r != nil && r.left > 0 {
		s.timeoutLocked(r, r.left)
	}
}

func millis(ms int64) time.Duration {
	return time.Duration(min(max(ms, 0), maxLimitMs)) * time.Millisecond
}

// maxLimitMs is the longest timeout; what is longer is none.
const maxLimitMs = math.MaxInt64 / int64(time.Millisecond)

// endLocked ends a run's context. A handler that does not return within CANCEL_GRACE is abandoned; one whose context a drain has ended, and which
// may take as long as it likes, only if a person cancels its task.
func (s *session) endLocked(r *run, cause error) {
	if s.runs[r.claim] != r || r.graced || r.ctx.Err() != nil && !errors.Is(cause, ErrCancelled) {
		return
	}
	r.graced = true
	r.cancel(cause)
	r.limits = append(r.limits, time.AfterFunc(s.cfg.CancelGrace, func() { s.abandon(r, cause) }))
}

// abandon gives up waiting for a handler that ignores the end of its context.
func (s *session) abandon(r *run, cause error) {
	s.mu.Lock()
	if s.runs[r.claim] == r && s.checkLocked() {
		s.log.Error("a handler ignores the end of its context; its slot is lost until it returns",
			"task", r.claim.task.ID, "class", r.claim.task.ClassName, "cause", cause, "grace", s.cfg.CancelGrace)
		s.claims.abandon(r.claim, abandoned(cause, s.cfg.CancelGrace), s.now())
	}
	s.mu.Unlock()
	signal(s.wake)
}

// abandoned is what is reported of such a run. It may still be at work, so that it must not be tried again elsewhere.
func abandoned(cause error, grace time.Duration) outcome {
	o := outcome{kind: task.ReportFailed, permanent: true}
	if errors.Is(cause, ErrCancelled) {
		o.kind = task.ReportCancelled
	}
	o.text = fmt.Sprintf("%v, and the handler did not return within %s (CANCEL_GRACE): it was abandoned and may still be at work", cause, grace)
	return o
}

// startLocked starts queued claims while there is room.
func (s *session) startLocked(now int64) {
	for r := s.nextLocked(now); r != nil; r = s.nextLocked(now) {
		s.spawn(func() { s.work(r) })
	}
}

// work runs one claim, and then the queued ones that get its place.
func (s *session) work(r *run) {
	for r != nil {
		r = s.step(r)
	}
}

// step runs one handler and gives the run that gets its place, if there is one.
func (s *session) step(r *run) (next *run) {
	var out json.RawMessage
	var err error
	returned := false
	defer func() {
		exit := false
		if !returned {
			if v := recover(); v != nil {
				err = newPanicError(v)
				s.log.Error("a handler panicked", "task", r.claim.task.ID, "class", r.claim.task.ClassName, "panic", fmt.Sprint(v))
			} else {
				err, exit = errGoexit, true
			}
		}
		next = s.returned(r, out, err)
		if exit && next != nil {
			s.spawn(func() { s.work(next) }) // this goroutine is at its end
		}
	}()
	out, err = r.handler(r.ctx, r.in)
	returned = true
	return nil
}

// returned notes how a handler ended, and takes the next run for its place.
func (s *session) returned(r *run, out json.RawMessage, err error) *run {
	e := s.judge(context.Cause(r.ctx), out, err)
	r.cancel(nil)
	s.mu.Lock()
	for _, t := range r.limits {
		t.Stop()
	}
	delete(s.runs, r.claim)
	if len(s.runs) == 0 {
		signal(s.idle)
	}
	if s.phase == over {
		s.mu.Unlock()
		return nil
	}
	now := s.now()
	s.claims.end(r.claim, e, now)
	next := s.nextLocked(now)
	if next != nil {
		s.startLocked(now) // it may have made room for more than one
	}
	s.mu.Unlock()
	signal(s.wake)
	return next
}

// say passes a running task's progress on.
func (s *session) say(c *claim, p task.Progress) {
	s.mu.Lock()
	if s.phase != over {
		s.claims.say(c, p, s.clock.Boot())
	}
	s.mu.Unlock()
	signal(s.wake)
}

// outcome is what is reported of a run's end.
type outcome struct {
	kind      task.Kind
	result    json.RawMessage
	text      string
	permanent bool  // of a failure: not to be tried again
	retryAt   int64 // of a failure: not before this time, epoch ms; 0 = as the task's backoff says
}

// judge says what a handler's end means. One that ended well has finished, even if its context had ended.
func (s *session) judge(cause error, out json.RawMessage, err error) outcome {
	if err == nil {
		if len(out) > s.cfg.ResultMaxBytes {
			return outcome{kind: task.ReportFailed, permanent: true, text: fmt.Sprintf(
				"the result has %d bytes, RESULT_MAX_BYTES is %d: store it elsewhere and return where it is", len(out), s.cfg.ResultMaxBytes)}
		}
		if len(out) == 0 || string(out) == "null" {
			return outcome{kind: task.ReportFinished}
		}
		if !json.Valid(out) {
			return outcome{kind: task.ReportFailed, permanent: true, text: "the result is not JSON"}
		}
		if nestedDeeper(out, maxNesting) {
			return outcome{kind: task.ReportFailed, permanent: true, text: fmt.Sprintf("the result is nested more than %d deep", maxNesting)}
		}
		return outcome{kind: task.ReportFinished, result: out}
	}
	switch {
	case errors.Is(cause, ErrCancelled):
		return outcome{kind: task.ReportCancelled, text: endText(err)}
	case errors.Is(cause, ErrDraining):
		return outcome{kind: task.ReportReleased}
	case errors.Is(cause, ErrDeadline):
		return outcome{kind: task.ReportFailed, permanent: true, text: ErrDeadline.Error()}
	case errors.Is(cause, ErrTimeout):
		return outcome{kind: task.ReportFailed, text: ErrTimeout.Error()}
	default:
		return failure(err, s.now())
	}
}

// failure is a handler's error as a failure.
func failure(err error, now int64) outcome {
	o := outcome{kind: task.ReportFailed, text: errorText(err)}
	if _, ok := errors.AsType[*permanentError](err); ok {
		o.permanent = true
	} else if later, ok := errors.AsType[*laterError](err); ok {
		o.retryAt = now + later.after.Milliseconds()
	}
	return o
}

// maxNesting is how deep a result may be nested. Go reads and writes 10,000 levels at the most, of which the event around it takes some.
const maxNesting = 1000

// nestedDeeper says whether valid JSON is nested deeper than limit.
func nestedDeeper(raw json.RawMessage, limit int) bool {
	depth, text := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '[' || c == '{':
			if depth++; depth > limit {
				return true
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return false
}

// endText is what is worth telling of the error that a handler returned because its context had ended.
func endText(err error) string {
	if errors.Is(err, context.Canceled) || errors.Is(err, ErrCancelled) {
		return ""
	}
	return errorText(err)
}
