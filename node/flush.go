package node

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/task"
)

// What one flush takes at most.
const (
	flushCount = 4096
	flushBytes = 4 << 20
	flushGrace = 3 * time.Second // how long a node that leaves tries to get its reports out
)

// flushLoop sends the newest reports: while one batch is on its way the next one gathers.
func (s *session) flushLoop(stop <-chan struct{}) {
	failures := 0
	for {
		if !s.waitForReports(stop, failures) {
			return
		}
		more, err := s.flushRound(s.base)
		switch {
		case err == nil && failures > 0:
			s.log.Info("reports are sent again", "tries", failures)
			failures = 0
		case err != nil:
			if failures == 0 {
				s.log.Warn("reports could not be sent; they are tried again", "error", err)
			}
			failures++
			if errors.Is(err, kafka.ErrUnknownTopic) {
				signal(s.lookNow)
			}
		}
		if more {
			signal(s.wake)
		}
	}
}

// waitForReports waits until there may be something to send, at least for the pause after failures. It reports false at stop.
func (s *session) waitForReports(stop <-chan struct{}, failures int) bool {
	if failures > 0 {
		return s.pause(stop, backoff(failures-1))
	}
	at, ok := s.flushDue()
	var due <-chan time.Time
	if ok {
		timer := s.clock.NewTimer(at - s.clock.Boot())
		defer timer.Stop()
		due = timer.C()
	}
	select {
	case <-stop:
		return false
	case <-s.wake:
		runtime.Gosched() // what is about to start or end joins the batch; an idle machine comes back at once
	case <-due:
	}
	return true
}

// flushDue is when something will have to be sent again, if there is such a time. A session that is over sends nothing.
func (s *session) flushDue() (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != live {
		return 0, false
	}
	return s.claims.due()
}

// flushRound sends one batch of the newest reports, and the notice, if the session trusts itself. It says whether there are more.
func (s *session) flushRound(ctx context.Context) (more bool, err error) {
	s.mu.Lock()
	if !s.checkLocked() {
		s.mu.Unlock()
		return false, nil
	}
	if now := s.now(); s.claims.tick(now, s.clock.Boot()) {
		s.startLocked(now)
	}
	batch, notice := s.claims.take(flushCount, flushBytes), s.notice
	s.mu.Unlock()
	if len(batch) == 0 && notice == "" {
		return false, nil
	}
	reports := make([]task.Report, len(batch))
	for i := range batch {
		reports[i] = batch[i].report
	}
	sent := 0
	err = s.publish(ctx, notice, reports, func(from, to int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.claims.acked(batch[from:to], s.clock.Boot())
		sent = to
		if s.notice == notice {
			s.notice = ""
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claims.failed(batch[sent:])
	return len(s.claims.dirty) > 0, err
}

// publish sends reports and a notice, value by value and in order, each within a time of its own. acked hears which reports the
// bus has.
func (s *session) publish(ctx context.Context, notice events.Notice, reports []task.Report, acked func(from, to int)) error {
	s.mu.Lock()
	counter := s.node.Counter // a heartbeat that is made later has all that is reported here in its task list, or has been told of its end
	s.mu.Unlock()
	values, err := events.EncodeStatus(events.Status{
		Node: s.node.ID, Incarnation: s.node.Incarnation, At: s.now(), Counter: counter, Notice: notice, Reports: reports,
	}, s.cfg.EventMaxBytes)
	if err != nil {
		return fmt.Errorf("encode reports: %w", err)
	}
	for _, v := range values {
		if err := s.publishOne(ctx, v); err != nil {
			return err
		}
		acked(v.From, v.To)
	}
	return nil
}

func (s *session) publishOne(ctx context.Context, v events.Encoded) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return s.bus.Publish(ctx, events.TopicStatus, s.statusPartition, []kafka.Record{{Key: v.Key, Value: v.Value}})
}

// flushAll sends what is left to be sent when the loops have stopped, within flushGrace. It returns how many reports it could not send.
func (s *session) flushAll() int {
	ctx, cancel := context.WithTimeout(s.base, flushGrace)
	defer cancel()
	for failures := 0; ; {
		_, err := s.flushRound(ctx)
		s.mu.Lock()
		unsent := len(s.claims.dirty)
		s.mu.Unlock()
		if unsent == 0 || ctx.Err() != nil || s.isLost() {
			return unsent
		}
		if err != nil {
			failures++
			if !s.pause(ctx.Done(), backoff(failures-1)) {
				return unsent
			}
		}
	}
}
