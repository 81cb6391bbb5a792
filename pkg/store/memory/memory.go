// Package memory is the store without a database: for `skalds dev`, for tests and for the simulation. What it holds
// ends with the process.
//
// Invariants:
//
//   - Every read that the flows repeat goes by an index (see index): none looks at tasks it does not return. Only a
//     List by class name or by a prefix of the id passes over others, and lets writers in between.
//   - A caller and the store never share memory that is written: tasks are copied in and out. Only JSON texts
//     (attachments, result) are shared; nobody writes into them, neither the store nor a caller.
//   - Memory is bounded for what has ended: beyond Keep the task whose end is the longest ago goes.
//   - A change means what [task.Change.Apply] says, since that is what is called.
package memory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// Keep is how many ended tasks are kept.
const Keep = 100_000

// Store keeps everything in memory. It is safe for concurrent use.
type Store struct {
	keep int

	mu    sync.RWMutex
	tasks *index

	metaMu     sync.Mutex // guards what follows
	leader     store.Leader
	positions  map[string]map[int]store.Position
	dispatcher store.Dispatcher
	draining   map[string]bool
}

var _ store.Store = (*Store)(nil)

// New returns an empty store that keeps the last Keep ended tasks.
func New() *Store { return newStore(Keep) }

func newStore(keep int) *Store {
	return &Store{keep: keep, tasks: newIndex(), positions: map[string]map[int]store.Position{}, draining: map[string]bool{}}
}

// Ping implements store.Store.
func (s *Store) Ping(ctx context.Context) error { return alive(ctx) }

// Close implements store.Store. There is nothing to free.
func (s *Store) Close(context.Context) error { return nil }

// alive reports a context that has ended.
func alive(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("memory store: %w", err)
	}
	return nil
}

// check reports why a call is not answered: the caller no longer wants it, or it asks for what no store answers.
func check(ctx context.Context, op string, refused error) error {
	if err := alive(ctx); err != nil || refused == nil {
		return err
	}
	return fmt.Errorf("memory store: %s: %w", op, refused)
}

// Create implements store.Tasks.
func (s *Store) Create(ctx context.Context, tasks []task.Task) ([]store.CreateOutcome, error) {
	if err := check(ctx, "create", store.CheckBatch(len(tasks))); err != nil {
		return nil, err
	}
	out := make([]store.CreateOutcome, len(tasks))
	fresh, queues := make([]*entry, len(tasks)), make([]string, len(tasks))
	for i := range tasks {
		if err := store.CheckNew(&tasks[i]); err != nil {
			out[i] = store.CreateOutcome{Status: store.CreateFailed, Err: fmt.Errorf("task %q: %w", tasks[i].ID, err)}
			continue
		}
		fresh[i], queues[i] = &entry{t: tasks[i].Clone()}, tasks[i].Queue()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, e := range fresh {
		if e == nil {
			continue
		}
		status := store.CreateSameKey
		old, exists := s.tasks.byKey[e.t.IdempotencyKey]
		if !exists {
			status = store.CreateExists
			old, exists = s.tasks.byID[e.t.ID]
		}
		if exists {
			out[i] = store.CreateOutcome{Status: status, Existing: new(old.t.Clone())}
			continue
		}
		if s.tasks.taken(e, e.t.KeyPermit, e.t.PoolPermit) {
			out[i] = store.CreateOutcome{Status: store.CreateFailed, Err: fmt.Errorf("task %q: %w", e.t.ID, errPermit)}
			continue
		}
		s.tasks.add(e, queues[i])
	}
	s.trim()
	return out, nil
}

// Known implements store.Tasks.
func (s *Store) Known(ctx context.Context, tasks []task.Task) ([]bool, error) {
	if err := check(ctx, "known", store.CheckBatch(len(tasks))); err != nil {
		return nil, err
	}
	known := make([]bool, len(tasks))
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i := range tasks {
		_, byKey := s.tasks.byKey[tasks[i].IdempotencyKey]
		_, byID := s.tasks.byID[tasks[i].ID]
		known[i] = byKey || byID
	}
	return known, nil
}

var errPermit = errors.New("another task holds its permit: create it without")

// Apply implements store.Tasks.
func (s *Store) Apply(ctx context.Context, changes []task.Change) (int, error) {
	if err := check(ctx, "apply", store.CheckChanges(changes)); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for i := range changes {
		if e, ok := s.tasks.byID[changes[i].ID]; ok && s.tasks.apply(e, &changes[i]) {
			n++
		}
	}
	s.trim()
	return n, nil
}

// trim drops the oldest of the ended tasks that are too many.
func (s *Store) trim() {
	for s.tasks.ended.Len() > s.keep {
		oldest, _ := s.tasks.ended.Min()
		s.tasks.remove(oldest.e)
	}
}

// Purge implements store.Tasks.
func (s *Store) Purge(ctx context.Context, id string) (bool, error) {
	if err := alive(ctx); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.tasks.byID[id]
	if !ok || !e.t.LifecycleStatus.Terminal() {
		return false, nil
	}
	s.tasks.remove(e)
	return true, nil
}

// Expire implements store.Tasks.
func (s *Store) Expire(ctx context.Context, endedBefore int64, limit int) (int, error) {
	if err := check(ctx, "expire", store.CheckLimit(limit)); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for ; n < limit; n++ {
		oldest, ok := s.tasks.ended.Min()
		if !ok || oldest.at >= endedBefore {
			break
		}
		s.tasks.remove(oldest.e)
	}
	return n, nil
}

// meta calls f for what is stored beside the tasks, unless the caller no longer wants it.
func (s *Store) meta(ctx context.Context, f func()) error {
	if err := alive(ctx); err != nil {
		return err
	}
	s.metaMu.Lock()
	defer s.metaMu.Unlock()
	f()
	return nil
}

// Leader implements store.Leases.
func (s *Store) Leader(ctx context.Context) (l store.Leader, err error) {
	err = s.meta(ctx, func() { l = s.leader })
	return l, err
}

// SwapLeader implements store.Leases.
func (s *Store) SwapLeader(ctx context.Context, old, next store.Leader) (swapped bool, err error) {
	err = s.meta(ctx, func() {
		if swapped = s.leader == old; swapped {
			s.leader = next
		}
	})
	return swapped, err
}

// Positions implements store.Positions.
func (s *Store) Positions(ctx context.Context, topic string) (positions map[int]store.Position, err error) {
	err = s.meta(ctx, func() { positions = maps.Clone(s.positions[topic]) })
	return positions, err
}

// SavePositions implements store.Positions.
func (s *Store) SavePositions(ctx context.Context, topic string, positions map[int]store.Position) error {
	return s.meta(ctx, func() {
		if s.positions[topic] == nil {
			s.positions[topic] = make(map[int]store.Position, len(positions))
		}
		maps.Copy(s.positions[topic], positions)
	})
}

// Dispatcher implements store.Settings.
func (s *Store) Dispatcher(ctx context.Context) (d store.Dispatcher, err error) {
	err = s.meta(ctx, func() { d = s.dispatcher.Clone() })
	return d, err
}

// SwapDispatcher implements store.Settings.
func (s *Store) SwapDispatcher(ctx context.Context, next store.Dispatcher) (swapped bool, err error) {
	stored, err := next.Next()
	if err := check(ctx, "settings", err); err != nil {
		return false, err
	}
	err = s.meta(ctx, func() {
		if swapped = s.dispatcher.Version == next.Version; swapped {
			s.dispatcher = stored
		}
	})
	return swapped, err
}

// Draining implements store.Settings.
func (s *Store) Draining(ctx context.Context) (nodes []string, err error) {
	err = s.meta(ctx, func() { nodes = slices.Sorted(maps.Keys(s.draining)) })
	return nodes, err
}

// SetDraining implements store.Settings.
func (s *Store) SetDraining(ctx context.Context, node string, draining bool) error {
	full := false
	err := s.meta(ctx, func() {
		switch {
		case !draining:
			delete(s.draining, node)
		case !s.draining[node] && len(s.draining) >= store.MaxDraining:
			full = true
		default:
			s.draining[node] = true
		}
	})
	if full {
		err = fmt.Errorf("memory store: %w: %d nodes are drained", store.ErrTooMany, store.MaxDraining)
	}
	return err
}
