package main

import (
	"time"

	"github.com/skalds-go/skalds/pkg/task"
)

// times are what a task says of when it may run, in true time; 0 = nothing.
type times struct {
	notBefore, deadline time.Duration
	timeout             time.Duration
}

// trueTime is when it is so late by the clock of people.
func trueTime(ms int64) time.Duration {
	if ms == 0 {
		return 0
	}
	return time.Duration(ms-epoch) * time.Millisecond
}

// submits notes what people say of a task when they make it.
func (c *checker) submits(t *task.Task) {
	r := c.task(t.ID)
	r.doc = *t
	r.made = times{trueTime(t.NotBefore), trueTime(t.DeadlineDateTime), time.Duration(t.TimeoutMs) * time.Millisecond}
	r.times = r.made
}

// timed checks that a change comes neither too early nor too late. Clocks of controllers run up to 5 % fast, and say
// notBefore by them.
func (c *checker) timed(t *taskRecord, as role, before, after *task.Task) {
	now := c.world.now
	if after.NotBefore != before.NotBefore {
		t.times.notBefore = trueTime(after.NotBefore)
	}
	switch assigned := after.ClaimID != before.ClaimID && after.LifecycleStatus == task.Assigning; {
	case assigned && before.NotBefore != 0:
		c.violate("the %s assigned %s, which must wait", as, t.id)
	case assigned && scale(now, fastest, million)+time.Millisecond < t.times.notBefore:
		c.violate("the %s assigned %s, which must not run before %d ms", as, t.id, t.times.notBefore.Milliseconds())
	case after.LifecycleStatus.Terminal():
		c.overdue(t)
	}
}

// overdue checks, of a task that has not ended, or ends now, that its deadline is not long over.
func (c *checker) overdue(t *taskRecord) {
	if at := t.times.deadline; at != 0 && c.calm(at, t.desired.at) {
		c.violate("%s has not ended, and its deadline was at %d ms", t.id, at.Milliseconds())
	}
}

// limited has time stop where the limits of a run that begins come to their end, so that they are noticed then.
func (c *checker) limited(t *taskRecord, r *taskRun) {
	if t.times.timeout != 0 {
		c.world.after(t.times.timeout, func() {})
	}
	if at := t.times.deadline; at != 0 {
		clock := r.session.process.clock
		c.world.after(max(at-(clock.Boot()-clock.offset).Truncate(time.Millisecond), 0), func() {})
	}
}

// timely checks a run that ends. A handler ends within the stop margin of its context's end; what stood still does so
// later, and one that rested is noticed later.
func (c *checker) timely(t *taskRecord, r *taskRun) {
	ended := c.world.now
	if r.deaf != 0 {
		ended = r.deaf
	}
	took := ended - r.started - r.rested
	grace := c.cfg.stopMargin * 11 / 10
	if r.rested > 0 {
		grace += time.Second
	}
	if limit := t.times.timeout; limit != 0 && took > limit+grace && r.session.process.thawed < r.started {
		c.violate("%s ran for %v by claim %s, and its timeout is %v", t.id, took, r.claim, limit)
	}
}
