package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/loop"
	"github.com/skalds-go/skalds/pkg/registry"
)

// Waits.
const (
	callTimeout    = 3 * time.Second         // one call of the bus
	goodbyeTimeout = 1500 * time.Millisecond // each part of the goodbye
	remindEvery    = 10 * time.Second        // how often a log line names the handlers that a lost session waits for
)

// serve is the session's whole life:
//
//	locate ──► join ──► loops ──► drain, or wait for the handlers of a lost session
//
// It returns errAgain if the lease was lost and all work has stopped, or the registration came too late.
func (s *Session) serve(ctx context.Context) error { //nolint:contextcheck // the loops outlive ctx: the session drains
	if !s.waitForTopics(ctx) {
		return nil // ctx ended before anybody knew of the node
	}
	loops := s.runner.Group(s.base)
	defer loops.Stop()
	loops.Start(
		s.inbox.loop("assign", events.TopicAssign, s.assign, s.inbox.receiveAssign),
		s.inbox.loop("control", events.TopicControl, s.control, s.inbox.receiveControl),
	)
	if joined, err := s.waitForRegistration(ctx); !joined {
		loops.Stop()
		s.close()
		if errors.Is(err, errAgain) {
			s.reporter.sayGoodbye()
		}
		s.leave() // a heartbeat whose answer got lost may have registered the node
		return err
	}
	s.observe(s, Registered)
	loops.Start(s.heart.loop(), s.reporter.loop(), s.leaseLoop(), s.partitionsLoop())
	s.driver.Wait(ctx, loop.Forever, s.lease.lost)
	if !s.lease.isLost() {
		return s.drain(loops)
	}
	s.observe(s, Lost)
	loops.Stop()
	return s.stopLost(ctx)
}

// waitForTopics locates the session's partitions. It waits for the topics, and reports false if ctx ended first.
func (s *Session) waitForTopics(ctx context.Context) (located bool) {
	s.runner.Run(ctx, loop.Loop{
		Name: "locate", Failure: "the node waits for Kafka",
		Step: func(ctx context.Context, _ loop.Wake) (loop.Next, error) {
			err := s.locate(ctx)
			if located = err == nil; located {
				return loop.Done(), nil
			}
			if errors.Is(err, kafka.ErrUnknownTopic) {
				err = fmt.Errorf("%w: a controller creates the topics when it starts", err)
			}
			return loop.Next{}, err
		},
	})
	return located
}

// waitForRegistration tries to join until a heartbeat is confirmed. It reports false if ctx ended first, or the session
// may not begin.
func (s *Session) waitForRegistration(ctx context.Context) (joined bool, err error) {
	since := s.clock.Boot() // it was not registered before
	s.runner.Run(ctx, loop.Loop{
		Name: "join", Failure: "the node cannot register yet; it is tried again",
		Step: func(ctx context.Context, _ loop.Wake) (loop.Next, error) {
			sent := s.clock.Boot()
			failure := s.join(ctx, since)
			switch {
			case failure == nil:
				joined = true
				return loop.Done(), nil
			case errors.Is(failure, errAgain):
				err = failure
				return loop.Done(), nil
			case errors.Is(failure, registry.ErrTaken):
				since = sent
			}
			return loop.After(s.cfg.HeartbeatInterval).Regardless(), failure
		},
	})
	return joined, err
}

// drain is the clean end.
func (s *Session) drain(loops *loop.Group) error {
	s.lock.write(s.self, true)
	s.mu.Lock()
	s.forGood = true
	s.exec.drainLocked()
	running := len(s.exec.runs)
	s.mu.Unlock()
	s.observe(s, Draining)
	s.log.Info("draining", "running", running, "soft", s.cfg.DrainSoft, "hard", s.cfg.DrainHard)
	s.flushNow.Signal()
	s.beatNow.Signal()
	if !s.waitForHandlers(s.base, s.cfg.DrainSoft, s.hurry) {
		s.mu.Lock()
		s.exec.cancelAllLocked(ErrDraining)
		s.mu.Unlock()
		s.waitForHandlers(s.base, s.cfg.DrainHard, nil)
	}
	loops.Stop()
	if s.lease.isLost() {
		if left := s.close(); len(left) > 0 {
			return left.err("lost its lease while it drained, and handlers did not return")
		}
		s.leave()
		return fmt.Errorf("node %s: %w while it drained: what had not been reported runs again elsewhere", s.id, ErrLeaseLost)
	}
	unsent := s.reporter.flushAll(s.runner)
	if left := s.close(); len(left) > 0 {
		return left.err(fmt.Sprintf("handlers did not return within DRAIN_HARD (%s); the node does not leave the registry, so that their tasks"+
			" go elsewhere only when its lease is over", s.cfg.DrainHard))
	}
	s.reporter.sayGoodbye()
	s.leave()
	if unsent > 0 {
		s.log.Warn("reports could not be sent before the node left; these tasks run again elsewhere", "reports", unsent)
	}
	s.log.Info("left")
	return nil
}

// stopLost waits until the handlers of a session that lost its lease have returned.
func (s *Session) stopLost(ctx context.Context) error { //nolint:contextcheck // ctx may have ended; the node holds nothing any more
	for !s.waitForHandlers(ctx, remindEvery, nil) {
		if ctx.Err() != nil {
			if !s.waitForHandlers(s.base, s.cfg.DrainHard, nil) {
				return s.close().err("handlers did not return after the lease was lost")
			}
			break
		}
		s.log.Warn("lease lost: waiting for handlers that do not return at the end of their context", "tasks", s.exec.running())
	}
	s.close()
	s.reporter.sayGoodbye()
	s.leave()
	return errAgain
}

// waitForHandlers waits until no handler runs. It gives up after d, when the context ends, and when a wake fires. It
// reports whether none runs.
func (s *Session) waitForHandlers(ctx context.Context, d time.Duration, giveUp loop.Wake) bool {
	until := s.clock.Boot() + d
	for len(s.exec.running()) > 0 {
		left := until - s.clock.Boot()
		if left <= 0 {
			return false
		}
		if by := s.driver.Wait(ctx, left, s.idle, giveUp); ctx.Err() != nil || giveUp != nil && by == giveUp {
			return len(s.exec.running()) == 0
		}
	}
	return true
}
