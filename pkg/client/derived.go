package client

import (
	"time"

	"github.com/skalds-go/skalds/pkg/task"
)

// What follows from a task's times is derived here alone. Documents of other programs, and clocks that differ, hold
// times that are missing, before the task, or in the wrong order: then a length of time is not known, and nothing is
// made up for it.

// Age returns how long ago a time of a task, in epoch milliseconds, was. It is not known of a time that is missing or
// before the task was submitted. A time that is ahead of now, as of a clock that is, was just now.
func Age(t *task.Task, at int64, now time.Time) (d time.Duration, known bool) {
	if at <= 0 || at < t.CreateDateTime {
		return 0, false
	}
	return max(now.Sub(time.UnixMilli(at)), 0), true
}

// Ran returns how long the task's latest run took, or has taken so far. It is not known of a task that waits, and not
// before its run has begun.
func Ran(t *task.Task, now time.Time) (d time.Duration, known bool) {
	switch {
	case t.StartDateTime <= 0 || t.StartDateTime < t.CreateDateTime:
		return 0, false
	case t.LifecycleStatus.Terminal():
		return time.Duration(t.FinishDateTime-t.StartDateTime) * time.Millisecond, t.FinishDateTime >= t.StartDateTime
	case t.LifecycleStatus == task.Running:
		return Age(t, t.StartDateTime, now)
	}
	return 0, false
}

// Waited returns how long the task waited for its latest run: from when it could first have begun (it was submitted,
// the run before ended, its notBefore had come; whichever was the last) until it began. Earlier runs are not part of
// it. It is not known of a task that a person repeated after its end: nothing says when that was.
func Waited(t *task.Task) (d time.Duration, known bool) {
	from := t.CreateDateTime
	if n := len(t.Attempts); n > 0 {
		last := &t.Attempts[n-1]
		if last.Attempt >= t.Attempt && n > 1 { // the latest run has ended, and stands there itself
			last = &t.Attempts[n-2]
		}
		if last.Attempt < t.Attempt {
			if t.Failures == 0 && endings[last.Outcome] {
				return 0, false
			}
			from = max(from, last.FinishDateTime)
		}
	}
	if t.NotBefore <= t.StartDateTime {
		from = max(from, t.NotBefore)
	}
	if from <= 0 || t.StartDateTime < from {
		return 0, false
	}
	return time.Duration(t.StartDateTime-from) * time.Millisecond, true
}

// endings are the outcomes of runs that end a task.
var endings = map[string]bool{
	string(task.ReportFinished): true, string(task.ReportFailed): true, string(task.ReportCancelled): true, "overdue": true,
}
