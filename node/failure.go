package node

import (
	"fmt"
	"time"

	"github.com/skalds-go/skalds/node/session"
)

// Permanent marks a handler's error as one that another attempt would only repeat: the task has failed, whatever
// attempts it has left. The mark holds through wrapping. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &session.PermanentError{Err: err}
}

// RetryAfter marks a handler's error as one that is worth another attempt, but not before d has passed, such as when a
// service names a time. It counts as a failure like any other, and the task's backoff may make the wait longer. The
// mark holds through wrapping; together with [Permanent] it has no effect. RetryAfter(nil, d) is nil; it panics if d is
// negative.
func RetryAfter(err error, d time.Duration) error {
	if d < 0 {
		panic(fmt.Errorf("node: RetryAfter: the wait is %s", d))
	}
	if err == nil {
		return nil
	}
	return &session.RetryError{Err: err, After: d}
}
