package node

import (
	"context"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
)

// read gives the records of a reader to round, until ctx ends.
func (s *session) read(ctx context.Context, r Reader, round func(records []kafka.Record)) {
	for failures := 0; ; failures++ {
		records, err := r.Next(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			round(records)
			failures = -1
			continue
		}
		if failures == 0 {
			s.log.Error("a partition cannot be read; it is tried again", "error", err)
		}
		if !s.pause(ctx.Done(), backoff(failures)) {
			return
		}
	}
}

// mine says whether a record may be meant for this incarnation, by its headers alone.
func (s *session) mine(r *kafka.Record) bool {
	for i := range r.Headers {
		switch h := &r.Headers[i]; h.Key {
		case events.HeaderNode:
			if string(h.Value) != s.node.ID {
				return false
			}
		case events.HeaderIncarnation:
			if string(h.Value) != s.node.Incarnation {
				return false
			}
		}
	}
	return true
}

// addressed says whether an event is meant for this incarnation. An event without recipient is for every node.
func (s *session) addressed(recipient, incarnation string) bool {
	return recipient == "" || (recipient == s.node.ID && incarnation == s.node.Incarnation)
}

// currentLocked says whether an event of this term counts. The first of a higher term has a heartbeat sent at once, so that its leader need not
// wait for what it reads there; but not more than one in an interval.
func (s *session) currentLocked(term int64) bool {
	counts, higher := s.terms.see(term)
	if now := s.clock.Boot(); higher && (s.hastened == 0 || now-s.hastened >= s.cfg.HeartbeatInterval) {
		s.hastened = now
		signal(s.beatNow)
	}
	return counts
}

// assignRound takes in the records of task.assign.
func (s *session) assignRound(records []kafka.Record) {
	for i := range records {
		r := &records[i]
		if !s.mine(r) {
			continue
		}
		a, err := events.DecodeAssign(r.Value)
		if err != nil {
			s.quarantine(events.TopicAssign, r, err)
			continue
		}
		if s.addressed(string(a.Recipient), a.Incarnation) {
			s.take(&a)
		}
	}
	signal(s.wake)
}

// take takes one event in.
func (s *session) take(a *events.Assign) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.openLocked() || !s.currentLocked(a.Term) {
		return
	}
	if a.Recipient != "" {
		s.terms.tell(a.RoundRobinCount)
	}
	s.heardLocked(a.Heartbeats)
	s.claims.settle(a.Acknowledged)
	now := s.now()
	for i := range a.Tasks {
		t := &a.Tasks[i]
		_, known := s.handlers[t.ClassName]
		s.claims.receive(*t, known, now)
		s.startLocked(now)
	}
}

// openLocked says whether claims are taken in. The leader may have seen the registration before its answer reached the node, so that
// they are also while it joins.
func (s *session) openLocked() bool { return s.phase == joining || s.checkLocked() }

// controlRound takes in the records of task.control.
func (s *session) controlRound(records []kafka.Record) {
	for i := range records {
		r := &records[i]
		if !s.mine(r) {
			continue
		}
		c, err := events.DecodeControl(r.Value)
		if err != nil {
			s.quarantine(events.TopicControl, r, err)
			continue
		}
		if s.addressed(c.Recipient, c.Incarnation) {
			s.obey(&c)
		}
	}
	signal(s.wake)
}

func (s *session) obey(c *events.Control) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.openLocked() || !s.currentLocked(c.Term) {
		return
	}
	if c.Fence {
		s.fenceLocked()
		return
	}
	if c.Drain != nil {
		s.askLocked(*c.Drain)
	}
	now := s.now()
	for i := range c.Commands {
		switch cmd := &c.Commands[i]; cmd.Kind {
		case events.CommandCancel:
			if running := s.claims.cancel(cmd.ClaimID, now); running != nil {
				s.endLocked(s.runs[running], ErrCancelled)
			}
		case events.CommandPause:
			s.claims.hold(cmd.ClaimID, now)
		case events.CommandRecall:
			s.claims.recall(cmd.ClaimID, now)
		case events.CommandResume:
			s.goOnLocked(cmd.ClaimID)
		case events.CommandUpdate:
			s.claims.update(cmd.ClaimID, cmd.AttachmentsVersion, cmd.Attachments)
		}
	}
	s.startLocked(now) // one that left the queue may have kept others from starting
}

// askLocked drains the node as a person asked, or ends that: it goes on with what runs, but for what pauses, and takes nothing new. A node that
// stops drains whatever is asked.
func (s *session) askLocked(drain bool) {
	if s.stopping || drain == s.claims.draining {
		return
	}
	if drain {
		s.drainLocked()
	} else {
		s.claims.draining = false
	}
	s.log.Info("asked to drain, or not to", "drain", drain, "running", len(s.runs))
	signal(s.beatNow)
}

// drainLocked gives back what is queued and what pauses: that does not end by itself.
func (s *session) drainLocked() {
	s.claims.drain(s.now())
	for _, c := range s.claims.paused() {
		if r := s.runs[c]; r != nil {
			r.cancel(ErrDraining)
		}
	}
}

// quarantine puts a record that did not decode aside: logged once, copied to task.quarantine as well as that can be done in a short
// time, and stepped over.
func (s *session) quarantine(topic string, r *kafka.Record, reason error) {
	s.mu.Lock()
	last, had := s.quarantined[topic]
	seen := had && r.Offset <= last
	if !seen {
		s.quarantined[topic] = r.Offset
	}
	s.mu.Unlock()
	if seen {
		return
	}
	s.bad.Put(s.base, r, topic, reason)
}
