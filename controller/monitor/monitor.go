// Package monitor sees to it that what was asked for happens: it gives away the work of nodes that are gone, sends again what no node has
// reported, passes on what people asked for, and compares the leader's picture with the store. It runs on the leader only.
//
// Invariants:
//
//   - Work is given away, or sent again, only after ingest has taken in everything that was on task.status when the need was seen: a
//     report that is under way counts.
//   - What is sent again is the claim as the store has it, to the incarnation that it was made for.
package monitor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/transport"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// Store is the part of the store that the monitor uses.
type Store interface {
	Apply(ctx context.Context, changes []task.Change) (int, error)
	Get(ctx context.Context, ids []string) ([]task.Task, error)
	Active(ctx context.Context, yield func(*task.Task) error) error
	Wishes(ctx context.Context, limit int) ([]task.Task, error)
	Expire(ctx context.Context, endedBefore int64, limit int) (int, error)
	Draining(ctx context.Context) ([]string, error)
}

// Registry is the part of the registry that the monitor uses.
type Registry interface {
	Snapshot(ctx context.Context) (registry.Snapshot, error)
	Leave(ctx context.Context, id, incarnation string) error
	Node(ctx context.Context, id string) (registry.Node, bool, error)
	Evict(ctx context.Context, id, incarnation string) error
}

// Transport is how nodes are reached.
type Transport interface {
	Assign(ctx context.Context, term int64, batches []transport.Batch) []transport.Result
	Control(ctx context.Context, term int64, list []transport.Orders) error
	Fence(ctx context.Context, term int64, list []fleet.Target) error
	Tell(ctx context.Context, term int64, partitions []int) []error
}

// Ends gives the present ends of all partitions of task.status.
type Ends interface {
	StatusEnds(ctx context.Context) (map[int]kafka.Range, error)
}

// Progress says how far ingest has come.
type Progress interface {
	Reached(ends map[int]kafka.Range) bool
}

// Lease is the leadership that the monitor works under.
type Lease interface {
	Term() int64
	Valid() bool
}

// Config is what a monitor is told.
type Config struct {
	ResendAfter time.Duration // ASSIGN_RESEND_AFTER
	Compare     time.Duration // MONITOR_TASK_INTERVAL: time between two comparisons with the store
	Retention   time.Duration // TASK_RETENTION
	Policy      task.Policy
}

// Monitor is one leader's monitor.
type Monitor struct {
	cfg       Config
	store     Store
	registry  Registry
	fleet     *fleet.Fleet
	transport Transport
	ends      Ends
	progress  Progress
	lease     Lease
	clock     clock.Clock
	room      func()
	log       *slog.Logger

	barriers map[fleet.Key]*barrier // what ingest must reach before a node's work is given away
	resend   *barrier               // what it must reach before claims are sent again; nil = not asked for
	lists    *lists                 // nodes' lists of tasks that wait for it; nil = none
	listed   time.Duration          // when lists were read last
	strays   map[fleet.Key][]string // claims that a node held in its last list though this leader did not know them
	compared time.Duration
	started  bool // compared holds
	expired  time.Duration
	passed   map[string]passed // wishes that were passed on, by claim id
	updates  updates
}

// New makes a monitor. Room is called, without blocking, when there may be room or work for the dispatcher.
func New(cfg Config, s Store, r Registry, f *fleet.Fleet, t Transport, e Ends, p Progress, l Lease, c clock.Clock, room func(), log *slog.Logger) *Monitor {
	return &Monitor{cfg: cfg, store: s, registry: r, fleet: f, transport: t, ends: e, progress: p, lease: l, clock: c, room: room, log: log,
		barriers: make(map[fleet.Key]*barrier), strays: make(map[fleet.Key][]string), expired: c.Boot(), listed: c.Boot()}
}

// Round looks at all nodes and claims once. It says whether something waits for ingest, so that the next round should come soon. Each part
// is tried whatever became of the others: they need different dependencies.
func (m *Monitor) Round(ctx context.Context) (soon bool, err error) {
	err = errors.Join(m.observe(ctx), m.tell(ctx), m.drain(ctx), m.compare(ctx), m.compareLists(ctx), m.aside(ctx), m.again(ctx), m.Wishes(ctx), m.expire(ctx))
	return len(m.barriers) > 0 || m.resend != nil, err
}

// Prime takes in the claims that nodes hold, and the nodes, before the first round. It gives nothing away. A registry that does not answer
// keeps no leader from its work: nodes that it does not answer either are heard over Kafka.
func (m *Monitor) Prime(ctx context.Context) error {
	if err := errors.Join(m.drains(ctx), m.compare(ctx)); err != nil {
		return err
	}
	if err := m.observe(ctx); err != nil && ctx.Err() == nil {
		m.log.Warn("the nodes cannot be read; only those that are heard over Kafka take work", "error", err)
	}
	if err := m.tell(ctx); err != nil {
		m.log.Debug("some nodes do not know of this leader yet", "error", err) // the next round tells them
	}
	return nil
}

// observe reads all nodes and gives away the work of those that are gone.
func (m *Monitor) observe(ctx context.Context) error {
	began := m.clock.Boot()
	snap, err := m.registry.Snapshot(ctx)
	if err != nil {
		m.fleet.Blind()
		return fmt.Errorf("read the nodes: %w", err)
	}
	fresh, lost := m.fleet.Observe(snap, began, m.clock.Boot())
	if fresh {
		m.room()
	}
	failure := m.await(ctx, lost)
	for _, l := range lost {
		b, waits := m.barriers[l.Key]
		if !waits {
			continue
		}
		if there, err := m.reached(ctx, b); err != nil || !there {
			failure = errors.Join(failure, err)
			continue
		}
		if err := m.giveAway(ctx, l); err != nil {
			failure = err
			if ctx.Err() != nil || errors.Is(err, store.ErrUnavailable) {
				break // else a task of this node cannot be taken back: that is not to hold up the others
			}
		}
	}
	return failure
}

// await notes for nodes whose work is to be given away what ingest must reach before, and forgets those that live after all. Those that fell
// silent are fenced, so that one that still hears stops at once.
func (m *Monitor) await(ctx context.Context, lost []fleet.Lost) error {
	still := make(map[fleet.Key]bool, len(lost))
	var fresh []fleet.Lost
	for _, l := range lost {
		still[l.Key] = true
		if _, waits := m.barriers[l.Key]; !waits {
			fresh = append(fresh, l)
		}
	}
	maps.DeleteFunc(m.barriers, func(k fleet.Key, _ *barrier) bool { return !still[k] })
	if len(fresh) == 0 {
		return nil
	}
	m.fence(ctx, fresh)
	b, err := m.barrier(ctx)
	if err != nil {
		return fmt.Errorf("give away the work of %d nodes: %w", len(fresh), err)
	}
	for _, l := range fresh {
		m.barriers[l.Key] = b
	}
	return nil
}

// fenceTimeout bounds the sending of fences. They are a courtesy: a node that they do not reach has stopped by its own clock.
const fenceTimeout = 500 * time.Millisecond

// fence tells nodes that fell silent to stop.
func (m *Monitor) fence(ctx context.Context, lost []fleet.Lost) {
	var list []fleet.Target
	for _, l := range lost {
		if to, ok := m.fleet.Reach(l.Key); ok && l.Loss == task.LossSilent {
			list = append(list, to)
		}
	}
	if len(list) == 0 || !m.lease.Valid() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, fenceTimeout)
	defer cancel()
	if err := m.transport.Fence(ctx, m.lease.Term(), list); err != nil {
		m.log.Debug("nodes were not fenced; they have stopped by their own clocks", "nodes", len(list), "error", err)
	}
}

// tellTimeout bounds the announcement to new nodes, which the next round repeats.
const tellTimeout = time.Second

// tell announces the term on the partitions of nodes that this leader has come to know: their waits begin with it.
func (m *Monitor) tell(ctx context.Context) error {
	untold := m.fleet.Untold()
	if len(untold) == 0 || !m.lease.Valid() {
		return nil
	}
	byPartition := make(map[int][]fleet.Key)
	for _, to := range untold {
		byPartition[to.Partition] = append(byPartition[to.Partition], to.Key)
	}
	partitions := slices.Sorted(maps.Keys(byPartition))
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	var failure error
	for i, err := range m.transport.Tell(ctx, m.lease.Term(), partitions) {
		if err != nil {
			failure = err
			continue
		}
		m.fleet.Told(byPartition[partitions[i]], m.clock.Boot())
	}
	if failure != nil {
		return fmt.Errorf("announce the term to new nodes: %w", failure)
	}
	return nil
}

// giveAway takes a node's tasks back. Ingest has come so far that what the node said in time counts.
func (m *Monitor) giveAway(ctx context.Context, l fleet.Lost) error {
	k := l.Key
	claims := m.fleet.GiveAway(k)
	for len(claims) > 0 {
		n := min(len(claims), store.MaxBatch)
		if err := m.lose(ctx, claims[:n], l.Loss); err != nil {
			return fmt.Errorf("give away the work of node %s: %w", k.Node, err)
		}
		m.log.Warn("a node is gone; its tasks wait again", "node", k.Node, "incarnation", k.Incarnation, "tasks", n)
		claims = claims[n:]
		m.room()
	}
	// Its place is free for its successor. Where this fails, the key expires by itself.
	if err := m.registry.Leave(ctx, k.Node, k.Incarnation); err != nil {
		m.log.Debug("the keys of a node that is gone were not removed", "node", k.Node, "error", err)
	}
	delete(m.barriers, k)
	return nil
}

// lose takes claims back, each as the store has it now.
func (m *Monitor) lose(ctx context.Context, claims []fleet.Claim, loss task.Loss) error {
	tasks, err := m.read(ctx, claims)
	if err != nil {
		return err
	}
	now := m.clock.Now().UnixMilli()
	var changes []task.Change
	ids := make([]string, 0, len(claims))
	for _, c := range claims {
		ids = append(ids, c.ID)
		if t, ok := tasks[c.TaskID]; ok && holds(t, c) {
			if change, ok := task.Lose(t, loss, m.cfg.Policy, now); ok {
				changes = append(changes, change)
			}
		}
	}
	if !m.lease.Valid() {
		return nil
	}
	n, err := m.store.Apply(ctx, changes)
	if err != nil {
		return fmt.Errorf("take %d tasks back: %w", len(changes), err)
	}
	if n == len(changes) {
		m.fleet.Drop(ids)
	} // else some changed meanwhile: the next round looks at them again
	return nil
}

// holds says whether the task's present claim is c.
func holds(t *task.Task, c fleet.Claim) bool {
	h, ok := fleet.HeldBy(t)
	return ok && h.ID == c.ID && h.Key == c.Key
}

// read gives the tasks of claims by id.
func (m *Monitor) read(ctx context.Context, claims []fleet.Claim) (map[string]*task.Task, error) {
	ids := make([]string, len(claims))
	for i, c := range claims {
		ids[i] = c.TaskID
	}
	list, err := m.store.Get(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read %d tasks: %w", len(ids), err)
	}
	byID := make(map[string]*task.Task, len(list))
	for i := range list {
		byID[list[i].ID] = &list[i]
	}
	return byID, nil
}

// again sends claims again of which no node has said anything in time.
func (m *Monitor) again(ctx context.Context) error {
	due := m.fleet.Due(m.clock.Boot(), m.cfg.ResendAfter, store.MaxBatch)
	if len(due) == 0 {
		m.resend = nil
		return nil
	}
	if m.resend == nil {
		b, err := m.barrier(ctx)
		if err != nil {
			return fmt.Errorf("send %d claims again: %w", len(due), err)
		}
		m.resend = b
	}
	if there, err := m.reached(ctx, m.resend); err != nil || !there {
		return err
	}
	m.resend = nil
	due = m.fleet.Due(m.clock.Boot(), m.cfg.ResendAfter, store.MaxBatch) // some may have been reported meanwhile
	tasks, err := m.read(ctx, due)
	if err != nil {
		return err
	}
	var batches []transport.Batch
	var touched, over []string
	at := make(map[fleet.Key]int)
	for _, c := range due {
		t, ok := tasks[c.TaskID]
		if !ok || !holds(t, c) {
			over = append(over, c.ID)
			continue
		}
		touched = append(touched, c.ID)
		to, there := m.fleet.Reach(c.Key)
		if t.LifecycleStatus != task.Assigning || !there {
			continue
		}
		i, ok := at[c.Key]
		if !ok {
			i = len(batches)
			at[c.Key] = i
			batches = append(batches, transport.Batch{To: to})
		}
		batches[i].Tasks = append(batches[i].Tasks, *t)
	}
	m.fleet.Drop(over)
	if len(over) > 0 {
		m.room()
	}
	m.fleet.Sent(touched, m.clock.Boot())
	if len(batches) == 0 || !m.lease.Valid() {
		return nil
	}
	for i, r := range m.transport.Assign(ctx, m.lease.Term(), batches) {
		if r.Err != nil {
			return fmt.Errorf("send %d claims again to node %s: %w", len(batches[i].Tasks), batches[i].To.Node, r.Err)
		}
		ids := make([]string, len(batches[i].Tasks))
		for j := range ids {
			ids[j] = batches[i].Tasks[j].ClaimID
		}
		m.fleet.Again(ids)
		m.log.Info("sent claims again that were not reported", "node", batches[i].To.Node, "tasks", len(batches[i].Tasks))
	}
	return nil
}

// compare brings the picture up to date with the store.
func (m *Monitor) compare(ctx context.Context) error {
	now := m.clock.Boot()
	if m.started && now-m.compared < m.cfg.Compare {
		return nil
	}
	m.fleet.BeginCompare()
	var held []fleet.Held
	var wishes []task.Task
	var outdated []string
	err := m.store.Active(ctx, func(t *task.Task) error {
		if t.Desired != "" {
			wishes = append(wishes, *t)
		}
		if h, ok := fleet.HeldBy(t); ok {
			held = append(held, h)
			if !m.fleet.Has(h.ID, t.AttachmentsVersion) {
				outdated = append(outdated, t.ID)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the tasks that nodes hold: %w", err)
	}
	m.fleet.EndCompare(held)
	m.compared, m.started = m.clock.Boot(), true
	m.Updated(outdated)
	if len(wishes) < store.MaxBatch {
		return nil // a page shows them all
	}
	return m.carryOut(ctx, wishes)
}

// expireEvery is the time between two looks for tasks whose retention is over.
const expireEvery = time.Minute

// expire removes ended tasks whose retention is over, a page at a time.
func (m *Monitor) expire(ctx context.Context) error {
	if m.clock.Boot()-m.expired < expireEvery {
		return nil
	}
	before := m.clock.Now().Add(-m.cfg.Retention).UnixMilli()
	n, err := m.store.Expire(ctx, before, store.MaxBatch)
	if err != nil {
		return fmt.Errorf("remove tasks that ended before their retention: %w", err)
	}
	if n < store.MaxBatch {
		m.expired = m.clock.Boot()
	}
	return nil
}
