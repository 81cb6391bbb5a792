package main

import (
	"slices"
	"time"

	"github.com/skalds-go/skalds/events"
)

// taskRun is one run of a handler.
type taskRun struct {
	task    string
	claim   string
	session *session
	started time.Duration
	over    bool
	ghost   bool          // it began when its process had stood still and was about to notice
	deaf    time.Duration // when it began to ignore the end of its context; 0 = it does not
	retries int           // of its task when it began
	version int64
	resting bool          // it waits while it is paused
	rested  time.Duration // how long it did
}

// delivered is called with each event for a session before the session sees it.
func (s *session) delivered(a *events.Assign) {
	if a.Recipient != "" && a.Incarnation != s.incarnation {
		return
	}
	stale := a.Term < s.term
	if !stale {
		s.term = a.Term
	}
	for i := range a.Tasks {
		id := a.Tasks[i].ClaimID
		if stale && !s.heard[id] {
			s.stale[id] = a.Term
		} else if !stale {
			s.heard[id] = true
			delete(s.stale, id)
		}
	}
}

// begin is called when a handler begins to run.
func (c *checker) begin(s *session, id, claim string, version int64) *taskRun {
	w := c.world
	r := &taskRun{task: id, claim: claim, session: s, started: w.now, version: version, retries: c.task(id).retries}
	r.ghost = s.stoodStill()
	w.note(s.process.name, "starts %s, claim %s", id, claim)
	if !c.claim(claim).stored {
		c.violate("%s runs by claim %s, which the store has never had", id, claim)
	}
	if term, ok := s.stale[claim]; ok {
		c.violate("%s runs by claim %s, which came under term %d when %s knew of term %d", id, claim, term, s.incarnation, s.term)
	}
	if r := c.claim(claim); r.began == 0 {
		r.began = w.now
	}
	t := c.task(id)
	if !r.ghost {
		for _, o := range t.runs {
			if o.runs() && !c.mayOverlap(t, o) {
				c.violate("%s runs at %s by claim %s, and has been running at %s by claim %s since %d ms",
					id, s.incarnation, claim, o.session.incarnation, o.claim, o.started.Milliseconds())
			}
		}
	}
	t.runs = append(t.runs, r)
	c.limited(t, r)
	s.node.running++
	c.rooms(r, 1)
	c.beside(r)
	c.apart(t, r)
	return r
}

// stoodStill reports whether the session's trust has ended while its process could not notice.
func (s *session) stoodStill() bool {
	w := s.process.world
	until := s.TrustedUntil()
	if until == 0 {
		return false
	}
	at := s.process.clock.at(until)
	return at <= w.now && (s.process.frozen || s.process.thawed >= at)
}

// runs reports whether a run goes on, of a process that has not lost its trust without noticing.
func (r *taskRun) runs() bool { return !r.over && !r.ghost && !r.session.stoodStill() }

// end is called when a handler returns.
func (c *checker) end(r *taskRun, outcome string) {
	r.over = true
	r.session.node.running--
	c.rooms(r, -1)
	c.claim(r.claim).returned = true
	switch {
	case outcome != "":
	case c.abandoned(r):
		outcome = "well, too late"
	default:
		c.claim(r.claim).finished = true
		outcome = "well"
	}
	c.world.note(r.session.process.name, "ends %s, claim %s: %s", r.task, r.claim, outcome)
	t := c.task(r.task)
	c.informed(t, r)
	c.timely(t, r)
	t.runs = slices.DeleteFunc(t.runs, func(o *taskRun) bool { return o == r })
}

// died notes that all runs of a process ended with it.
func (c *checker) died(p *process) {
	for _, t := range c.order {
		t.runs = slices.DeleteFunc(t.runs, func(o *taskRun) bool {
			if o.session.process != p {
				return false
			}
			o.over = true
			return true
		})
	}
}
