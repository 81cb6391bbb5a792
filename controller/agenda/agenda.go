// Package agenda does what is to be done at a time: it lets tasks wait whose notBefore has come, and ends tasks whose deadline has passed. It
// runs on the leader only.
//
// Invariants:
//
//   - Nothing is asked for over and over: the store says when the next task is due, and a signal says that there may be an earlier one.
//   - A task that a node holds is ended by its node. Only when the grace after its deadline is over, too, it is ended here: then its
//     node has lost it, or a handler does not return.
package agenda

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// Store is the part of the store that the agenda uses.
type Store interface {
	Ripen(ctx context.Context, now int64, limit int) (ripened int, next int64, err error)
	Overdue(ctx context.Context, now int64, limit int) (tasks []task.Task, next int64, err error)
	Apply(ctx context.Context, changes []task.Change) (int, error)
}

// Lease is the leadership that the agenda works under.
type Lease interface {
	Valid() bool
}

// Agenda is one leader's agenda.
type Agenda struct {
	store Store
	lease Lease
	clock clock.Clock
	grace time.Duration
	work  func()
	log   *slog.Logger
}

// New makes an agenda. Grace is how long after its deadline a node may still end a task. Work is called, without blocking, when tasks
// began to wait or slots may have come free.
func New(s Store, l Lease, c clock.Clock, grace time.Duration, work func(), log *slog.Logger) *Agenda {
	return &Agenda{store: s, lease: l, clock: c, grace: grace, work: work, log: log}
}

// Round does what is due. It gives the time (epoch ms) at which something is due next; 0 = nothing that is known.
func (a *Agenda) Round(ctx context.Context) (next int64, err error) {
	if !a.lease.Valid() {
		return 0, nil
	}
	ripe, err := a.ripen(ctx)
	late, overdueErr := a.overdue(ctx)
	return earlier(ripe, late), errors.Join(err, overdueErr)
}

// earlier is the earlier of two times, of which 0 is none.
func earlier(x, y int64) int64 {
	if x == 0 || y != 0 && y < x {
		return y
	}
	return x
}

func (a *Agenda) ripen(ctx context.Context) (int64, error) {
	n, next, err := a.store.Ripen(ctx, a.clock.Now().UnixMilli(), store.MaxBatch)
	if err != nil {
		return 0, fmt.Errorf("let tasks wait whose time has come: %w", err)
	}
	if n > 0 {
		a.work()
	}
	return next, nil
}

func (a *Agenda) overdue(ctx context.Context) (int64, error) {
	now := a.clock.Now().UnixMilli()
	tasks, next, err := a.store.Overdue(ctx, now, store.MaxBatch)
	if err != nil {
		return 0, fmt.Errorf("read tasks whose deadline has passed: %w", err)
	}
	changes := make([]task.Change, 0, len(tasks))
	for i := range tasks {
		t := &tasks[i]
		if at := t.DeadlineDateTime + a.grace.Milliseconds(); t.Held() && now < at {
			next = earlier(next, at)
			continue
		}
		changes = append(changes, task.Overdue(t, now))
	}
	if len(changes) == 0 {
		return next, nil
	}
	n, err := a.store.Apply(ctx, changes)
	if err != nil {
		return 0, fmt.Errorf("end %d tasks whose deadline has passed: %w", len(changes), err)
	}
	a.log.Info("ended tasks whose deadline has passed", "tasks", n)
	a.work()
	if len(tasks) == store.MaxBatch {
		next = now // there may be more
	}
	return next, nil
}

const (
	// gap is the least time between two rounds.
	gap = 10 * time.Millisecond
	// most is the longest: scripts write documents without a signal.
	most = 5 * time.Second
	// pause is the time until the next try after a failure.
	pause = 500 * time.Millisecond
)

// Run makes rounds until the context ends: when something is due, at every signal, and every few seconds. An outage is logged once.
func (a *Agenda) Run(ctx context.Context, wake <-chan struct{}) {
	timer := a.clock.NewTimer(0)
	defer timer.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
		case <-wake:
		}
		next, err := a.Round(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			a.log.Warn("what is due was not done; it will be tried again", "error", err)
		}
		failing = err != nil
		timer.Reset(gap)
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
		}
		timer.Reset(a.wait(next, failing))
	}
}

// wait is how long the next round may wait.
func (a *Agenda) wait(next int64, failing bool) time.Duration {
	switch {
	case failing:
		return pause
	case next == 0:
		return most
	default:
		return min(max(time.UnixMilli(next).Sub(a.clock.Now()), 0), most)
	}
}
