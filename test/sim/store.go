package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/store/memory"
	"github.com/skalds-go/skalds/pkg/task"
)

// truth is the database. While it has no majority, writes are done on one machine only: they are answered by nothing,
// no majority read shows them, and in the end they are all taken over, in their order, or all rolled back.
type truth struct {
	world    *world
	net      *net
	mem      *memory.Store
	guards   guards
	check    *checker
	minority bool
	pending  []func()
	chosen   func() // if it is set, it is called once when another leader takes over
}

// split takes the majority away; heal ends that.
func (t *truth) split() { t.minority = true }

// heal restores the majority. Kept selects whether the writes made meanwhile count.
func (t *truth) heal(kept bool) {
	if !t.minority {
		return
	}
	t.minority = false
	if kept {
		for _, write := range t.pending {
			write()
		}
	}
	t.pending = nil
}

// role is the loop that writes. It decides what a change means.
type role string

// The roles.
const (
	roleLeader     role = "leader"
	roleDispatcher role = "dispatcher"
	roleMonitor    role = "monitor"
	roleIngest     role = "ingest"
	roleDelayed    role = "delayed"
	rolePeople     role = "people"
)

// seamStore is the database as one loop of one process sees it. Every method is a turn; one of the interface that is
// not here panics.
type seamStore struct {
	store.Store // nil
	*truth
	process    *process
	role       role        // empty: what the loop that calls is for
	controller *controller // nil for people
	leads      *leadership // the controller's, when the call began
}

var _ store.Store = (*seamStore)(nil)

var background = context.Background()

// roles are the roles of loops, by name.
var roles = map[string]role{
	"dispatcher": roleDispatcher, "ingest": roleIngest, "delayed": roleDelayed, "settings": roleLeader, "election": roleLeader,
	"monitor": roleMonitor, "recall": roleMonitor, "begin": roleMonitor,
}

// as returns the store as the loop sees it that calls now.
func (s *seamStore) as() *seamStore {
	if s.role != "" {
		return s
	}
	c := *s
	c.role = roles[s.world.current.name]
	if c.controller != nil {
		c.leads = c.controller.session
	}
	return &c
}

// write is a call that changes something; do may be called later, or never.
func (s *seamStore) write(ctx context.Context, what string, do func(lost bool) error) error {
	return s.ask(ctx, what, func(lost bool) error {
		if s.minority {
			s.pending = append(s.pending, func() { _ = do(true) })
			return errSilence
		}
		return do(lost)
	})
}

func (s *seamStore) ask(ctx context.Context, what string, do func(lost bool) error) error {
	err := s.net.call(ctx, storeService, do)
	if err != nil && ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
	if errors.Is(err, errSilence) || certain(err) {
		s.world.note(s.process.name, " %s %s: %v", s.role, what, err)
		return fmt.Errorf("%s: %w: %w", what, store.ErrUnavailable, err)
	}
	return err
}

// Apply implements [store.Tasks]. A call whose answer gets lost may have done a part of its work.
func (s *seamStore) Apply(ctx context.Context, changes []task.Change) (int, error) {
	s = s.as()
	n := 0
	changes = slices.Clone(changes)
	version, over := int64(0), false
	if s.leads != nil && s.role == roleDispatcher {
		version = s.leads.goesBy
	}
	err := s.write(ctx, "apply", func(lost bool) error {
		n = 0
		if err := store.CheckChanges(changes); err != nil {
			return err
		}
		part := len(changes)
		if lost && s.world.chance(300) {
			part = s.world.rng.IntN(part + 1)
		}
		for _, c := range changes[:part] {
			if s.apply(c, version, over) {
				n++
			}
		}
		return nil
	})
	over = true
	if s.guards.noReadBack && s.role == roleDispatcher && err == nil {
		n = len(changes)
	}
	return n, err
}

// apply makes one change. Late means that its caller no longer waits.
func (s *seamStore) apply(c task.Change, version int64, late bool) bool {
	before, ok := s.get(c.ID)
	if !ok {
		return false
	}
	if s.guards.noCompare && c.Assign != nil && s.role == roleDispatcher {
		c.From, c.Attempt, c.ClaimID = task.Set(before.LifecycleStatus), before.Attempt, before.ClaimID
	}
	if s.guards.noDesired && s.role != rolePeople {
		c.IfDesired = nil
	}
	if s.guards.noAdopt {
		c.AsOf = 0
	}
	if s.guards.noPermit && c.Assign != nil {
		c.Assign = s.forged(c.ID, c.Assign)
	}
	n, err := s.mem.Apply(background, []task.Change{c})
	if err != nil {
		panic(err) // the memory store takes whatever passes CheckChanges
	}
	if n == 1 {
		after, _ := s.get(c.ID)
		s.check.changed(s, version, late, &before, &after, &c)
	}
	return n == 1
}

// secondHolder stands in a permit that another task holds, too: without the guard, the store takes it for another one.
const secondHolder = "~"

// forged is a claim whose permits nobody holds.
func (t *truth) forged(id string, a *task.Assignment) *task.Assignment {
	out := *a
	for kind, permit := range map[string]*string{"key": &out.KeyPermit, "pool": &out.PoolPermit} {
		if holder, taken := t.check.holders[kind+*permit]; taken && holder != id {
			*permit += secondHolder + id
		}
	}
	return &out
}

func (t *truth) get(id string) (task.Task, bool) {
	list, err := t.mem.Get(background, []string{id})
	if err != nil || len(list) == 0 {
		return task.Task{}, false
	}
	return list[0], true
}

// Create implements [store.Tasks].
func (s *seamStore) Create(ctx context.Context, tasks []task.Task) (out []store.CreateOutcome, err error) {
	tasks = slices.Clone(tasks)
	err = s.write(ctx, "create", func(bool) error {
		s.check.changes++
		out, err = s.mem.Create(background, tasks)
		for i := range out {
			if out[i].Status == store.CreateOK {
				s.check.created(tasks[i].ID)
			}
		}
		return err
	})
	return out, err
}

// Queues implements [store.Queues].
func (s *seamStore) Queues(ctx context.Context, after string, limit int) (page store.QueuePage, err error) {
	err = s.ask(ctx, "queues", func(bool) error { page, err = s.mem.Queues(background, after, limit); return err })
	return page, err
}

// Waiting implements [store.Queues].
func (s *seamStore) Waiting(ctx context.Context, queue string, after store.Place, limit int) (page store.PendingPage, err error) {
	err = s.ask(ctx, "waiting", func(bool) error { page, err = s.mem.Waiting(background, queue, after, limit); return err })
	return s.alone(page), err
}

// Depths implements [store.Queues].
func (s *seamStore) Depths(ctx context.Context, after string, limit int) (depths map[string]int64, err error) {
	err = s.ask(ctx, "depths", func(bool) error { depths, err = s.mem.Depths(background, after, limit); return err })
	return depths, err
}

// alone removes, without its guard, the mark that a task must run alone.
func (s *seamStore) alone(page store.PendingPage) store.PendingPage {
	for i := range page.Tasks {
		if s.guards.noAlone {
			page.Tasks[i].Crashes = 0
		}
	}
	return page
}

// Get implements [store.Tasks].
func (s *seamStore) Get(ctx context.Context, ids []string) (list []task.Task, err error) {
	err = s.ask(ctx, "get", func(bool) error { list, err = s.mem.Get(background, ids); return err })
	return list, err
}

// Active implements [store.Tasks]. Turns of others come in between.
func (s *seamStore) Active(ctx context.Context, yield func(*task.Task) error) error {
	var all []task.Task
	err := s.ask(ctx, "active", func(bool) error {
		all = nil
		return s.mem.Active(background, func(t *task.Task) error { all = append(all, *t); return nil })
	})
	for i := range all {
		if err != nil {
			return err
		}
		if s.world.chance(20) {
			s.world.park(s.world.now+s.world.between(0, 20_000_000), nil)
		}
		if now, ok := s.get(all[i].ID); ok && now.LifecycleStatus.Active() {
			err = yield(&now)
		}
	}
	return err
}

// Desired implements [store.Tasks].
func (s *seamStore) Desired(ctx context.Context, limit int) (list []task.Task, err error) {
	err = s.ask(ctx, "requests", func(bool) error { list, err = s.mem.Desired(background, limit); return err })
	slices.SortFunc(list, func(a, b task.Task) int { return cmp.Compare(a.ID, b.ID) }) // it comes off a map
	return list, err
}

// Overdue implements [store.Tasks].
func (s *seamStore) Overdue(ctx context.Context, now int64, limit int) (list []task.Task, next int64, err error) {
	err = s.ask(ctx, "overdue", func(bool) error { list, next, err = s.mem.Overdue(background, now, limit); return err })
	return list, next, err
}

// Promote implements [store.Tasks].
func (s *seamStore) Promote(ctx context.Context, now int64, limit int) (n int, next int64, err error) {
	err = s.write(ctx, "ripen", func(bool) error { n, next, err = s.mem.Promote(background, now, limit); return err })
	return n, next, err
}

// Known implements [store.Tasks].
func (s *seamStore) Known(ctx context.Context, tasks []task.Task) (known []bool, err error) {
	err = s.ask(ctx, "known", func(bool) error { known, err = s.mem.Known(background, tasks); return err })
	return known, err
}

// List implements [store.Tasks].
func (s *seamStore) List(ctx context.Context, f store.Filter) (page store.ListPage, err error) {
	err = s.ask(ctx, "list", func(bool) error { page, err = s.mem.List(background, f); return err })
	return page, err
}

// Counts implements [store.Tasks].
func (s *seamStore) Counts(ctx context.Context) (counts map[task.Status]int64, err error) {
	err = s.ask(ctx, "counts", func(bool) error { counts, err = s.mem.Counts(background); return err })
	return counts, err
}

// Purge implements [store.Tasks].
func (s *seamStore) Purge(ctx context.Context, id string) (ok bool, err error) {
	err = s.write(ctx, "purge", func(bool) error {
		return s.check.removes(math.MaxInt64, func() error { ok, err = s.mem.Purge(background, id); return err })
	})
	return ok, err
}

// Expire implements [store.Tasks].
func (s *seamStore) Expire(ctx context.Context, before int64, limit int) (n int, err error) {
	err = s.write(ctx, "expire", func(bool) error {
		return s.check.removes(before, func() error { n, err = s.mem.Expire(background, before, limit); return err })
	})
	return n, err
}

// Leader implements [store.Leases].
func (s *seamStore) Leader(ctx context.Context) (doc store.Leader, err error) {
	err = s.ask(ctx, "leader", func(bool) error { doc, err = s.mem.Leader(background); return err })
	return doc, err
}

// SwapLeader implements [store.Leases].
func (s *seamStore) SwapLeader(ctx context.Context, old, next store.Leader) (ok bool, err error) {
	err = s.write(ctx, "swap leader", func(bool) error {
		ok, err = s.mem.SwapLeader(background, old, next)
		if ok && old.Term != next.Term {
			s.world.note(s.process.name, "term %d: %s leads", next.Term, next.Holder)
			if hook := s.chosen; hook != nil {
				s.chosen = nil
				hook()
			}
		}
		return err
	})
	return ok && err == nil, err
}

// Positions implements [store.Positions].
func (s *seamStore) Positions(ctx context.Context, topic string) (at map[int]store.Position, err error) {
	err = s.ask(ctx, "positions", func(bool) error { at, err = s.mem.Positions(background, topic); return err })
	return at, err
}

// SavePositions implements [store.Positions].
func (s *seamStore) SavePositions(ctx context.Context, topic string, at map[int]store.Position) error {
	return s.write(ctx, "save positions", func(bool) error { return s.mem.SavePositions(background, topic, at) })
}

// Dispatcher implements [store.Settings].
func (s *seamStore) Dispatcher(ctx context.Context) (d store.Dispatcher, err error) {
	err = s.ask(ctx, "settings", func(bool) error { d, err = s.mem.Dispatcher(background); return err })
	if c := s.controller; err == nil && c != nil && c.session != nil {
		c.session.seen = max(c.session.seen, d.Version)
	}
	return d, err
}

// SwapDispatcher implements [store.Settings].
func (s *seamStore) SwapDispatcher(ctx context.Context, d store.Dispatcher) (ok bool, err error) {
	err = s.write(ctx, "save settings", func(bool) error {
		if ok, err = s.mem.SwapDispatcher(background, d); ok {
			now, err := s.mem.Dispatcher(background)
			if err != nil {
				panic(err) // the memory store always answers
			}
			s.check.settingsChanged(now)
		}
		return err
	})
	return ok && err == nil, err
}

// Draining implements [store.Settings].
func (s *seamStore) Draining(ctx context.Context) (nodes []string, err error) {
	err = s.ask(ctx, "draining", func(bool) error { nodes, err = s.mem.Draining(background); return err })
	return nodes, err
}

// SetDraining implements [store.Settings].
func (s *seamStore) SetDraining(ctx context.Context, node string, draining bool) error {
	return s.write(ctx, "set draining", func(bool) error {
		s.check.drains(node, draining)
		return s.mem.SetDraining(background, node, draining)
	})
}

// Ping implements [store.Store].
func (s *seamStore) Ping(ctx context.Context) error {
	return s.ask(ctx, "ping", func(bool) error { return nil })
}

// Close implements [store.Store].
func (s *seamStore) Close(context.Context) error { return nil }
