package controller_test

import (
	"context"
	"sync/atomic"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// leaving is a store that goes away, for whoever holds it.
type leaving struct {
	store.Store
	gone atomic.Bool
}

func (l *leaving) leave() { l.gone.Store(true) }

func (l *leaving) err() error {
	if l.gone.Load() {
		return store.ErrUnavailable
	}
	return nil
}

func (l *leaving) Queues(ctx context.Context, after string, limit int) (store.QueuePage, error) {
	if err := l.err(); err != nil {
		return store.QueuePage{}, err
	}
	return l.Store.Queues(ctx, after, limit)
}

func (l *leaving) Waiting(ctx context.Context, queue string, after store.Place, limit int) (store.PendingPage, error) {
	if err := l.err(); err != nil {
		return store.PendingPage{}, err
	}
	return l.Store.Waiting(ctx, queue, after, limit)
}

func (l *leaving) Apply(ctx context.Context, changes []task.Change) (int, error) {
	if err := l.err(); err != nil {
		return 0, err
	}
	return l.Store.Apply(ctx, changes)
}

func (l *leaving) SwapLeader(ctx context.Context, old, next store.Leader) (bool, error) {
	if err := l.err(); err != nil {
		return false, err
	}
	return l.Store.SwapLeader(ctx, old, next)
}

func (l *leaving) Leader(ctx context.Context) (store.Leader, error) {
	if err := l.err(); err != nil {
		return store.Leader{}, err
	}
	return l.Store.Leader(ctx)
}

// counting counts what is written to tasks.
type counting struct {
	store.Store
	applies atomic.Int64
}

func (c *counting) Apply(ctx context.Context, changes []task.Change) (int, error) {
	c.applies.Add(int64(len(changes)))
	return c.Store.Apply(ctx, changes)
}
