// Package delayed does what is to be done at a time: it lets tasks wait whose notBefore has come, and ends tasks whose deadline has passed. It
// runs on the leader only.
//
// Invariants:
//
//   - Nothing is asked for over and over: the store says when the next task is due, and a signal says that there may be an earlier one.
//   - A task that a node holds is ended by its node. Only when the grace after its deadline is over, too, it is ended here: then its
//     node has lost it, or a handler does not return. Never while its node lists it as ended: then its report is on its way, however long
//     Kafka takes, and says whether it was in time.
package delayed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/loop"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// Store is the part of the store that the agenda uses.
type Store interface {
	Promote(ctx context.Context, now int64, limit int) (ripened int, next int64, err error)
	Overdue(ctx context.Context, now int64, limit int) (tasks []task.Task, next int64, err error)
	Apply(ctx context.Context, changes []task.Change) (int, error)
}

// Nodes says what a node lists of its tasks. An error is registry.ErrIncomplete where that list says nothing.
type Nodes interface {
	Node(ctx context.Context, id string) (registry.Node, bool, error)
}

// Lease is the leadership that the agenda works under.
type Lease interface {
	Valid() bool
}

// Promoter is one leader's agenda.
type Promoter struct {
	store Store
	nodes Nodes
	lease Lease
	clock clock.Clock
	grace time.Duration
	work  func()
	log   *slog.Logger
}

// New makes an agenda. Grace is how long after its deadline, or after it was assigned, a node may still end a task. Work is called, without blocking, when
// tasks began to wait or slots may have come free.
func New(s Store, n Nodes, l Lease, c clock.Clock, grace time.Duration, work func(), log *slog.Logger) *Promoter {
	return &Promoter{store: s, nodes: n, lease: l, clock: c, grace: grace, work: work, log: log}
}

// Round does what is due. It gives the time (epoch ms) at which something is due next; 0 = nothing that is known.
func (a *Promoter) Round(ctx context.Context) (next int64, err error) {
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

func (a *Promoter) ripen(ctx context.Context) (int64, error) {
	n, next, err := a.store.Promote(ctx, a.clock.Now().UnixMilli(), store.MaxBatch)
	if err != nil {
		return 0, fmt.Errorf("let tasks wait whose time has come: %w", err)
	}
	if n > 0 {
		a.work()
	}
	return next, nil
}

func (a *Promoter) overdue(ctx context.Context) (int64, error) {
	now := a.clock.Now().UnixMilli()
	tasks, next, err := a.store.Overdue(ctx, now, store.MaxBatch)
	if err != nil {
		return 0, fmt.Errorf("read tasks whose deadline has passed: %w", err)
	}
	changes := make([]task.Change, 0, len(tasks))
	var held []*task.Task
	for i := range tasks {
		t := &tasks[i]
		switch at := max(t.DeadlineDateTime, t.AssignedDateTime) + a.grace.Milliseconds(); {
		case !t.Held():
			changes = append(changes, task.Overdue(t, now))
		case now < at:
			next = earlier(next, at)
		default:
			held = append(held, t)
		}
	}
	unended, listErr := a.unended(ctx, held)
	for _, t := range unended {
		changes = append(changes, task.Overdue(t, now))
	}
	if len(changes) == 0 {
		return next, listErr
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
	return next, listErr
}

// unended gives those of some tasks on nodes that their nodes do not list as ended. A node that is not there lists nothing; of one that cannot be
// asked nothing is known, and its tasks stay.
func (a *Promoter) unended(ctx context.Context, held []*task.Task) (list []*task.Task, err error) {
	ended := make(map[string]bool) // by claim
	asked := make(map[string]bool)
	for _, t := range held {
		if !asked[t.Executor] {
			n, _, err := a.nodes.Node(ctx, t.Executor)
			if err != nil && !errors.Is(err, registry.ErrIncomplete) {
				return list, fmt.Errorf("ask node %s whether it has ended tasks whose deadline has passed: %w", t.Executor, err)
			}
			asked[t.Executor] = true
			for i := range n.Tasks {
				ended[n.Tasks[i].ClaimID] = n.Tasks[i].State.Final()
			}
		}
		if !ended[t.ClaimID] {
			list = append(list, t)
		}
	}
	return list, nil
}

const (
	// gap is the least time between two rounds.
	gap = 10 * time.Millisecond
	// longest is the longest wait: scripts write documents without a wake.
	longest = 5 * time.Second
	// pause is the time until the next try after a failure.
	pause = 500 * time.Millisecond
)

// Loop returns the loop that makes rounds: when something is due, when due fires, and every few seconds.
func (a *Promoter) Loop(due loop.Wake) loop.Loop {
	return loop.Loop{
		Name:    "delayed",
		Wakes:   []loop.Wake{due},
		Backoff: loop.Backoff{First: pause, Max: pause},
		Failure: "tasks whose time has come were not promoted or ended; it will be tried again",
		Step: func(ctx context.Context, _ loop.Wake) (loop.Next, error) {
			next, err := a.Round(ctx)
			return loop.After(a.wait(next)).RestFirst(gap), err
		},
	}
}

// wait is how long the next round may wait.
func (a *Promoter) wait(next int64) time.Duration {
	if next == 0 {
		return longest
	}
	return min(max(time.UnixMilli(next).Sub(a.clock.Now()), 0), longest)
}
