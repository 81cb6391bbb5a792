package node

import (
	"fmt"
	"time"
)

// permanentError is a failure that another attempt would only repeat.
type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// Permanent marks a handler's error as one that another attempt would only repeat: the task is failed, whatever attempts it has left. The
// mark holds through wrapping. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// laterError is a failure that is worth another attempt, but not before a time.
type laterError struct {
	err   error
	after time.Duration
}

func (e *laterError) Error() string { return e.err.Error() }
func (e *laterError) Unwrap() error { return e.err }

// RetryAfter marks a handler's error as one that is worth another attempt, but not before d has passed, such as a service that names a time. It
// counts as a failure like any other, and the task's backoff may make the wait longer. The mark holds through wrapping; inside of
// [Permanent] it means nothing. RetryAfter(nil, d) is nil; it panics if d is negative.
func RetryAfter(err error, d time.Duration) error {
	if d < 0 {
		panic(fmt.Errorf("node: RetryAfter: the wait is %s", d))
	}
	if err == nil {
		return nil
	}
	return &laterError{err, d}
}
