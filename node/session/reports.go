package session

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/loop"
	"github.com/skalds-go/skalds/pkg/task"
)

// What one flush takes at most.
const (
	flushCount = 4096
	flushBytes = 4 << 20
	flushGrace = 3 * time.Second // how long a node that leaves tries to send its reports
)

// reporter sends the newest reports of claims, and the notices of the session.
type reporter struct {
	*core
	heart  *heart
	exec   *executor
	bus    Bus
	notice events.Notice // not sent yet
}

// loop sends reports: while one batch is on its way the next one gathers.
func (r *reporter) loop() loop.Loop {
	return loop.Loop{
		Name: "flush", Wakes: []loop.Wake{r.flushNow}, First: loop.OnWake(), Failure: "reports could not be sent; they are tried again",
		Step: func(context.Context, loop.Wake) (loop.Next, error) {
			runtime.Gosched()            // what is about to start or end joins the batch; an idle machine comes back at once
			more, err := r.flush(r.base) //nolint:contextcheck // a batch that is under way when the loops end is not cut off
			if errors.Is(err, kafka.ErrUnknownTopic) {
				r.lookNow.Signal()
			}
			if more || err != nil {
				return loop.Next{}, err
			}
			return r.due(), nil
		},
	}
}

// due returns when something will have to be sent again. A session that is over sends nothing.
func (r *reporter) due() loop.Next {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lease.phase == live {
		if at, ok := r.claims.due(); ok {
			return loop.After(at - r.clock.Boot())
		}
	}
	return loop.OnWake()
}

// flush sends one batch of the newest reports, and the notice, if the lease holds. It reports whether there are more.
func (r *reporter) flush(ctx context.Context) (more bool, err error) {
	r.mu.Lock()
	if !r.lease.holds() {
		r.mu.Unlock()
		return false, nil
	}
	if now := r.now(); r.claims.tick(now, r.clock.Boot()) {
		r.exec.startLocked(now)
	}
	batch, notice := r.claims.takeDirty(flushCount, flushBytes), r.notice
	r.mu.Unlock()
	if len(batch) == 0 && notice == "" {
		return false, nil
	}
	reports := make([]task.Report, len(batch))
	for i := range batch {
		reports[i] = batch[i].report
	}
	sent := 0
	err = r.publish(ctx, notice, reports, func(from, to int) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.claims.published(batch[from:to], r.clock.Boot())
		sent = to
		if r.notice == notice {
			r.notice = ""
		}
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.claims.unpublished(batch[sent:])
	return len(r.claims.dirty) > 0, err
}

// publish sends reports and a notice, value by value and in order, each within a time of its own. It calls done with
// the range of reports that each value has brought to the bus.
func (r *reporter) publish(ctx context.Context, notice events.Notice, reports []task.Report, done func(from, to int)) error {
	counter := r.heart.counter() // a later heartbeat lists all that is reported here, or was made after it was acknowledged
	values, err := events.EncodeStatus(events.Status{
		Node: r.id, Incarnation: r.self, At: r.now(), Counter: counter, Notice: notice, Reports: reports,
	}, r.cfg.EventMaxBytes)
	if err != nil {
		return fmt.Errorf("encode reports: %w", err)
	}
	for _, v := range values {
		if err := r.publishOne(ctx, v); err != nil {
			return err
		}
		done(v.From, v.To)
	}
	return nil
}

func (r *reporter) publishOne(ctx context.Context, v events.Encoded) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return r.bus.Publish(ctx, events.TopicStatus, r.heart.statusPartition, []kafka.Record{{Key: v.Key, Value: v.Value}})
}

// unsent returns how many reports wait to be sent.
func (r *reporter) unsent() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.claims.dirty)
}

// flushAll sends what is left when the loops have stopped, within flushGrace. It returns how many reports it could not
// send.
func (r *reporter) flushAll(runner loop.Runner) int {
	ctx, cancel := context.WithTimeout(r.base, flushGrace)
	defer cancel()
	runner.Run(ctx, loop.Loop{Name: "last flush", Step: func(ctx context.Context, _ loop.Wake) (loop.Next, error) {
		_, err := r.flush(ctx)
		if r.unsent() == 0 || r.lease.isLost() {
			return loop.Done(), err
		}
		return loop.Next{}, err
	}})
	return r.unsent()
}

// sayGoodbye tells the leader that the node holds nothing any more.
func (r *reporter) sayGoodbye() {
	ctx, cancel := context.WithTimeout(r.base, goodbyeTimeout)
	defer cancel()
	if err := r.publish(ctx, events.NoticeLeft, nil, func(int, int) {}); err != nil {
		r.log.Warn("the leader was not told that the node left", "error", err)
	}
}
