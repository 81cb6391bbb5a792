package loop

import (
	"context"
	"time"
)

// MaxWakes is the maximum number of wakes of a loop.
const MaxWakes = 3

// Loop is one thing that a process does over and over.
type Loop struct {
	// Name identifies the loop in logs and in the simulation.
	Name string
	// Wakes run the next step before its time. There are at most [MaxWakes].
	Wakes []Wake
	// Step does the work once and returns when it wants to run next. By is the wake that fired; it is nil when the
	// step's time came. After an error the runner pauses by Backoff instead, unless the step returned [Done] or a
	// [Next.Regardless].
	Step func(ctx context.Context, by Wake) (Next, error)
	// First is when the first step runs. The zero value means at once.
	First Next
	// Deadline bounds one step; zero means no bound.
	Deadline time.Duration
	// Backoff is the pause after a failed step.
	Backoff Backoff
	// Failure is logged as a warning when a step fails after one that did not. An empty Failure logs
	// nothing.
	Failure string
	// Quiet logs failures at debug level: they do no harm, or something else reports them.
	Quiet bool
	// End, if set, runs once, after the last step. The context that it gets may have ended.
	End func(ctx context.Context)
}

// Next is when a loop wants to run next. The zero value means at once.
type Next struct {
	rest  time.Duration // a wait that no wake ends
	after time.Duration // a wait that a wake ends; below zero it lasts until one does
	done  bool
	keep  bool
	pace  bool
	look  bool // the rest has covered the wait: the wakes are looked at all the same
}

// After runs the next step after d, or when a wake fires before.
func After(d time.Duration) Next { return Next{after: max(d, 0)} }

// OnWake runs the next step when a wake fires.
func OnWake() Next { return Next{after: Forever} }

// Rest runs the next step after d, whatever fires before. A wake that fires meanwhile is not lost: it counts after the
// rest.
func Rest(d time.Duration) Next { return Next{rest: max(d, 0)} }

// Done ends the loop.
func Done() Next { return Next{done: true} }

// RestFirst returns n with a rest before its wait: no wake runs the next step for at least d. The step after a rest
// that is as long as the wait is given a wake that has fired by then, or one that keeps resting would never see its
// wakes.
func (n Next) RestFirst(d time.Duration) Next {
	n.rest = max(d, 0)
	if n.after > 0 {
		n.after = max(n.after-n.rest, 0)
		n.look = n.after == 0
	}
	return n
}

// KeepBackoff returns n for a step that did not fail, but did not show that the failure is over either: the next
// failure goes on with the doubled pause.
func (n Next) KeepBackoff() Next {
	n.keep = true
	return n
}

// Regardless returns n for a step that keeps its own pace also when it fails: the runner does not pause by Backoff.
func (n Next) Regardless() Next {
	n.pace = true
	return n
}

// Backoff is a pause that doubles with each failure in a row. A pause is drawn from the upper half of its length, so
// that processes that failed together do not try again together.
type Backoff struct {
	First time.Duration // pause after the first failure; zero means [DefaultFirst]
	Max   time.Duration // longest pause; zero means [DefaultMax], or First if that is longer
}

// Defaults of [Backoff].
const (
	DefaultFirst = 50 * time.Millisecond
	DefaultMax   = 2 * time.Second
)

// Pause returns the pause after so many failures in a row. Jitter is in [0, 1).
func (b Backoff) Pause(failures int, jitter float64) time.Duration {
	first, longest := b.First, b.Max
	if first == 0 {
		first = DefaultFirst
	}
	if longest == 0 {
		longest = max(first, DefaultMax)
	}
	d := min(first, longest)
	for ; failures > 1 && d < longest; failures-- {
		d = min(2*d, longest)
	}
	return d - time.Duration(jitter*float64(d/2))
}
