package node

import (
	"context"
	"errors"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/pkg/registry"
)

// confirm notes a heartbeat, sent at this boot time, that the registry has answered.
func (s *session) confirm(sent time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.confirmLocked(sent)
}

// confirmLocked extends the trust. One that has ended stays so, however new the heartbeat: the work may have been given away.
func (s *session) confirmLocked(sent time.Duration) {
	if s.phase == over || s.phase == live && !s.checkLocked() {
		return
	}
	s.trusted.Store(max(s.trusted.Load(), int64(sent+s.cfg.LostAfter-s.cfg.StopMargin)))
}

// trustLeft is how long the session may trust itself from now on; nothing if that is over.
func (s *session) trustLeft() time.Duration {
	return time.Duration(s.trusted.Load()) - s.clock.Boot()
}

// check says whether the session trusts itself. If not any more, all its work ends now.
func (s *session) check() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.checkLocked()
}

func (s *session) checkLocked() bool {
	if s.phase != live {
		return false
	}
	if s.trustLeft() > 0 {
		return true
	}
	s.loseLocked("no heartbeat was confirmed in time")
	return false
}

// lose ends all work: the registry says that another incarnation has taken the place, or nothing confirms this one.
func (s *session) lose(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase == live {
		s.loseLocked(why)
	}
}

func (s *session) loseLocked(why string) {
	s.phase = over
	for _, r := range s.runs {
		r.cancel(ErrLeaseLost)
	}
	s.log.Error("lease lost: all work stops", "reason", why, "running", len(s.runs))
	close(s.lost)
}

// fenceLocked obeys the leader, which gives this incarnation's work away.
func (s *session) fenceLocked() {
	if s.phase == live {
		s.loseLocked("the leader has given the work of this incarnation away")
	}
	s.phase = over // also one that is still joining
}

func (s *session) isLost() bool {
	select {
	case <-s.lost:
		return true
	default:
		return false
	}
}

// trustLoop ends the work when the trust ends. Timers stand still in suspend, so every start, report and heartbeat checks as well.
func (s *session) trustLoop(stop <-chan struct{}) {
	for s.check() {
		if !s.pause(stop, s.trustLeft()) {
			return
		}
	}
}

// join registers the node: it tries until a heartbeat is confirmed, and reports false if ctx ended first. The readers must be made.
//
// A heartbeat whose answer got lost may have registered the node, and brought it claims. If so much time has passed since then that they
// may have been given away again, the session must not start them: join gives errAgain, and the next one begins with nothing. So it does if the
// place is another's after that: the node may have been put out of it.
func (s *session) join(ctx context.Context) (bool, error) {
	said := ""
	since := s.clock.Boot() // it was not registered before
	for {
		sent := s.clock.Boot()
		err := s.joinRound(ctx, since)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, errAgain):
			return false, err
		case ctx.Err() != nil:
			return false, nil //nolint:nilerr // it was told to end
		case errors.Is(err, registry.ErrTaken):
			since = sent
			said = s.sayOnce(said, "its id, which another incarnation holds", err)
		default:
			said = s.sayOnce(said, "the registry", err)
		}
		if !s.pause(ctx.Done(), s.cfg.HeartbeatInterval) {
			return false, nil
		}
	}
}

// joinRound sends one heartbeat that may register the node, and begins the session if it did; since is when it was not registered yet.
func (s *session) joinRound(ctx context.Context, since time.Duration) error {
	s.prove()
	sent := s.clock.Boot()
	switch err := s.beat(ctx, s.beatTimeout()); {
	case errors.Is(err, registry.ErrTaken) && s.unsure:
		s.log.Warn("the node may have been registered, and has lost its place: it registers anew", "error", err)
		return errAgain
	case err != nil:
		s.unsure = s.unsure || !errors.Is(err, registry.ErrTaken)
		return err
	}
	if took := s.clock.Boot() - since; took >= s.cfg.LostAfter-s.cfg.StopMargin {
		s.log.Warn("the registration took too long: the node registers anew", "after", took)
		return errAgain
	}
	s.confirm(sent)
	if !s.begin() {
		s.log.Warn("the leader has given up the registration meanwhile: the node registers anew")
		return errAgain
	}
	return nil
}

func (s *session) sayOnce(said, what string, err error) string {
	if said != what {
		s.log.Warn("the node waits", "for", what, "error", err)
	}
	return what
}

// prove has the heartbeats name a predecessor that is known to be dead, once that is known.
func (s *session) prove() {
	if d, ok := s.state.lock(); ok {
		s.log.Info("the predecessor is known to be dead", "incarnation", d.incarnation, "crashed", d.crashed)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.node.Replaces, s.node.Crashed = d.incarnation, d.crashed
	}
}

// begin opens the session for work. It reports false if the leader has fenced it already.
func (s *session) begin() bool {
	s.mu.Lock()
	if s.phase != joining {
		s.mu.Unlock()
		return false
	}
	s.phase = live
	s.notice = events.NoticeJoined
	s.startLocked(s.now())
	s.mu.Unlock()
	s.state.name(s.node.Incarnation, false)
	signal(s.wake)
	s.log.Info("registered", "incarnation", s.node.Incarnation, "partition", s.partition, "capacity", s.cfg.Capacity, "classes", s.node.Classes)
	return true
}

// beatLoop renews the registration every heartbeat interval.
func (s *session) beatLoop(stop <-chan struct{}) {
	failures := 0
	next := s.clock.Boot() + s.cfg.HeartbeatInterval
	for {
		timer := s.clock.NewTimer(next - s.clock.Boot())
		select {
		case <-stop:
			timer.Stop()
			return
		case <-s.beatNow:
			timer.Stop()
		case <-timer.C():
		}
		next = s.clock.Boot() + s.cfg.HeartbeatInterval
		failures = s.beatRound(failures)
	}
}

// beatRound sends one heartbeat, if the session trusts itself: to the registry, and if that does not answer, to the leader. It takes and
// gives the number of failures in a row.
func (s *session) beatRound(failures int) int {
	sent := s.clock.Boot() // before the check: a process that is frozen in between must not count from its thawing
	if !s.check() {
		return failures
	}
	err := s.beat(s.base, min(s.beatTimeout(), s.trustLeft()))
	switch {
	case err == nil:
		s.confirm(sent)
		if failures > 0 {
			s.log.Info("the registry answers again", "missed", failures)
		}
		return 0
	case errors.Is(err, registry.ErrTaken):
		s.lose("another incarnation holds the node id")
	case failures == 0:
		s.log.Warn("a heartbeat was not confirmed by the registry; the leader is asked to confirm the next", "error", err, "trust", s.trustLeft())
	}
	s.beatAloud()
	return failures + 1
}

// beatTimeout bounds one heartbeat: several fit into the time that the node trusts itself.
func (s *session) beatTimeout() time.Duration {
	return max(s.cfg.HeartbeatInterval, (s.cfg.LostAfter-s.cfg.StopMargin)/4)
}

// beat sends one heartbeat to the registry.
func (s *session) beat(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	n := s.heartbeat()
	return s.registry.Heartbeat(ctx, &n)
}

// heartbeat makes the next heartbeat.
func (s *session) heartbeat() registry.Node {
	r := s.usage.read(s.clock.Boot())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.node.Counter++
	s.node.StartedAt = min(s.node.StartedAt, s.now()) // the clock was ahead, and has been set right
	n := s.node
	n.CPU, n.Memory, n.CPUs, n.MemoryTotal = r.cpu, r.memory, r.cpus, r.memoryTotal
	n.Term, n.RoundRobinCount = s.terms.term, s.terms.before
	c := s.claims
	n.Running, n.Queued, n.Received, n.Finished = c.running, len(c.queue), c.received, c.finished
	n.SlotsRunning, n.SlotsQueued, n.RunningByClass = c.room.used, c.room.queued, c.room.taken()
	n.Tasks = c.held()
	if c.draining {
		n.State = registry.Draining
	}
	return n
}
