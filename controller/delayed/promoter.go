// Package delayed acts on the times of tasks: it promotes tasks whose notBefore has come, so that they wait for a node,
// and ends tasks whose deadline has passed. It runs on the leader only.
//
// Invariants:
//
//   - The store is not polled: it returns when the next task is due, and a wake announces that one may be due earlier.
//   - A node ends the tasks that it holds. The promoter ends such a task only when the grace after its deadline has
//     passed, too: its node has lost it, or a handler does not return. It never ends a task that its node lists as
//     ended. The report of that end is under way, however long Kafka takes, and shows whether the task was in time.
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

// Store is the part of the store that the promoter uses.
type Store interface {
	Promote(ctx context.Context, now int64, limit int) (promoted int, next int64, err error)
	Overdue(ctx context.Context, now int64, limit int) (tasks []task.Task, next int64, err error)
	Apply(ctx context.Context, changes []task.Change) (int, error)
}

// Nodes reads the task list of a node. The error is registry.ErrIncomplete if the list proves nothing.
type Nodes interface {
	Node(ctx context.Context, id string) (registry.Node, bool, error)
}

// Lease is the leadership that the promoter works under.
type Lease interface {
	Valid() bool
}

// Promoter promotes and ends the tasks of one leadership.
type Promoter struct {
	store Store
	nodes Nodes
	lease Lease
	clock clock.Clock
	grace time.Duration
	wake  func()
	log   *slog.Logger
}

// New returns a promoter. A node may still end a task within grace after the task's deadline, or after it was assigned
// if that is later. The promoter calls wake, which must not block, when tasks have begun to wait or slots may have come
// free.
func New(s Store, n Nodes, l Lease, c clock.Clock, grace time.Duration, wake func(),
	log *slog.Logger) *Promoter {
	return &Promoter{store: s, nodes: n, lease: l, clock: c, grace: grace, wake: wake, log: log}
}

// Round does what is due. It returns when something is due next, in epoch milliseconds; zero means that nothing is
// known.
func (p *Promoter) Round(ctx context.Context) (next int64, err error) {
	if !p.lease.Valid() {
		return 0, nil
	}
	nextPromotion, err := p.promote(ctx)
	nextDeadline, overdueErr := p.endOverdue(ctx)
	return earlier(nextPromotion, nextDeadline), errors.Join(err, overdueErr)
}

// earlier returns the earlier of two times. Zero means no time.
func earlier(x, y int64) int64 {
	if x == 0 || y != 0 && y < x {
		return y
	}
	return x
}

func (p *Promoter) promote(ctx context.Context) (int64, error) {
	n, next, err := p.store.Promote(ctx, p.clock.Now().UnixMilli(), store.MaxBatch)
	if err != nil {
		return 0, fmt.Errorf("promote tasks whose notBefore has come: %w", err)
	}
	if n > 0 {
		p.wake()
	}
	return next, nil
}

func (p *Promoter) endOverdue(ctx context.Context) (int64, error) {
	now := p.clock.Now().UnixMilli()
	tasks, next, err := p.store.Overdue(ctx, now, store.MaxBatch)
	if err != nil {
		return 0, fmt.Errorf("read tasks whose deadline has passed: %w", err)
	}
	changes := make([]task.Change, 0, len(tasks))
	var held []*task.Task
	for i := range tasks {
		t := &tasks[i]
		switch at := max(t.DeadlineDateTime, t.AssignedDateTime) + p.grace.Milliseconds(); {
		case !t.Held():
			changes = append(changes, task.Overdue(t, now))
		case now < at:
			next = earlier(next, at)
		default:
			held = append(held, t)
		}
	}
	unended, listErr := p.notEnded(ctx, held)
	for _, t := range unended {
		changes = append(changes, task.Overdue(t, now))
	}
	if len(changes) == 0 {
		return next, listErr
	}
	n, err := p.store.Apply(ctx, changes)
	if err != nil {
		return 0, fmt.Errorf("end %d tasks whose deadline has passed: %w", len(changes), err)
	}
	p.log.Info("ended tasks whose deadline has passed", "tasks", n)
	p.wake()
	if len(tasks) == store.MaxBatch {
		next = now // there may be more
	}
	return next, listErr
}

// notEnded returns the held tasks that their nodes do not list as ended. A node that is gone lists nothing. Nothing is
// known of a node that cannot be asked, so its tasks are left out.
func (p *Promoter) notEnded(ctx context.Context, held []*task.Task) (list []*task.Task, err error) {
	ended := make(map[string]bool) // by claim
	asked := make(map[string]bool)
	for _, t := range held {
		if !asked[t.Executor] {
			n, _, err := p.nodes.Node(ctx, t.Executor)
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
	// minWait is the shortest time between two rounds.
	minWait = 10 * time.Millisecond
	// maxWait is the longest. Scripts may store tasks without a wake.
	maxWait = 5 * time.Second
	// pause is the time until the next try after a failure.
	pause = 500 * time.Millisecond
)

// Loop returns the loop that runs rounds: when something is due, when the wake due fires, and at least every five
// seconds.
func (p *Promoter) Loop(due loop.Wake) loop.Loop {
	return loop.Loop{
		Name:    "delayed",
		Wakes:   []loop.Wake{due},
		Backoff: loop.Backoff{First: pause, Max: pause},
		Failure: "tasks whose time has come were not promoted or ended; it will be tried again",
		Step: func(ctx context.Context, _ loop.Wake) (loop.Next, error) {
			next, err := p.Round(ctx)
			return loop.After(p.wait(next)).RestFirst(minWait), err
		},
	}
}

// wait returns how long the next round may wait.
func (p *Promoter) wait(next int64) time.Duration {
	if next == 0 {
		return maxWait
	}
	return min(max(time.UnixMilli(next).Sub(p.clock.Now()), 0), maxWait)
}
