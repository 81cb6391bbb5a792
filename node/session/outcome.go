package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/pkg/task"
)

// The causes with which a handler's context ends.
var (
	ErrCancelled = errors.New("task cancelled")
	ErrLeaseLost = errors.New("lease lost")
	ErrDraining  = errors.New("node is draining")
	ErrTimeout   = errors.New("the run took longer than the task's timeoutMs")
	ErrDeadline  = errors.New("the task's deadline has passed")
)

// PermanentError is a handler's error that another attempt would only repeat.
type PermanentError struct{ Err error }

func (e *PermanentError) Error() string { return e.Err.Error() }
func (e *PermanentError) Unwrap() error { return e.Err }

// RetryError is a handler's error that is worth another attempt, but not before After has passed.
type RetryError struct {
	Err   error
	After time.Duration
}

func (e *RetryError) Error() string { return e.Err.Error() }
func (e *RetryError) Unwrap() error { return e.Err }

// outcome is what is reported of a run's end.
type outcome struct {
	kind      task.Kind
	result    json.RawMessage
	text      string
	permanent bool  // of a failure: not to be tried again
	retryAt   int64 // of a failure: not before this time, epoch ms; 0 = as the task's backoff says
}

// outcomeOf returns what a handler's end means; cause is why its context had ended, if it had. A run that ended well
// has finished even so.
func outcomeOf(cause error, out json.RawMessage, err error, maxBytes int, now int64) outcome {
	if err == nil {
		return outcomeOfResult(out, maxBytes)
	}
	switch {
	case errors.Is(cause, ErrCancelled):
		return outcome{kind: task.ReportCancelled, text: cancelText(err)}
	case errors.Is(cause, ErrDraining):
		return outcome{kind: task.ReportReleased}
	case errors.Is(cause, ErrDeadline):
		return outcome{kind: task.ReportFailed, permanent: true, text: ErrDeadline.Error()}
	case errors.Is(cause, ErrTimeout):
		return outcome{kind: task.ReportFailed, text: ErrTimeout.Error()}
	}
	o := outcome{kind: task.ReportFailed, text: errorText(err)}
	if _, ok := errors.AsType[*PermanentError](err); ok {
		o.permanent = true
	} else if retry, ok := errors.AsType[*RetryError](err); ok {
		o.retryAt = now + retry.After.Milliseconds()
	}
	return o
}

func outcomeOfResult(out json.RawMessage, maxBytes int) outcome {
	var text string
	switch {
	case len(out) > maxBytes:
		text = fmt.Sprintf("the result has %d bytes, RESULT_MAX_BYTES is %d: store it elsewhere and return where it is", len(out), maxBytes)
	case len(out) == 0 || string(out) == "null":
		return outcome{kind: task.ReportFinished}
	case !json.Valid(out):
		text = "the result is not JSON"
	case nestedDeeper(out, maxNesting):
		text = fmt.Sprintf("the result is nested more than %d deep", maxNesting)
	default:
		return outcome{kind: task.ReportFinished, result: out}
	}
	return outcome{kind: task.ReportFailed, permanent: true, text: text}
}

// maxNesting is how deep a result may be nested. Go reads and writes 10,000 levels at the most, of which the event
// around it takes some.
const maxNesting = 1000

// nestedDeeper reports whether valid JSON is nested deeper than limit.
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

// cancelText returns what is worth reporting of the error that a handler returned because its context had ended.
func cancelText(err error) string {
	if errors.Is(err, context.Canceled) || errors.Is(err, ErrCancelled) {
		return ""
	}
	return errorText(err)
}

// maxErrorBytes is what the error text of a failed run is cut to.
const maxErrorBytes = 8 << 10

// errorText returns what a report says of an error.
func errorText(err error) string { return events.Clip(err.Error(), maxErrorBytes) }

// panicError is what a panic of a handler becomes.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v\n\n%s", e.value, e.stack) }

func newPanicError(value any) *panicError { return &panicError{value: value, stack: debug.Stack()} }

// errGoexit is what runtime.Goexit in a handler becomes.
var errGoexit = errors.New("the handler ended its goroutine (runtime.Goexit) in place of returning")
