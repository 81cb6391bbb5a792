// Package monitor makes what was asked for happen. It reassigns the work of nodes that are gone, resends what no node
// has reported, forwards what people asked for to the nodes, and compares the leader's picture with the store. It runs
// on the leader only.
//
// Invariants:
//
//   - Work is reassigned or resent only after ingest has taken in everything that was on task.status when the need was
//     seen: a report that is under way counts.
//   - What is resent is the claim as the store has it, to the incarnation that it was made for.
package monitor

import (
	"context"
	"errors"
	"log/slog"
	"sync"
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
	Desired(ctx context.Context, limit int) ([]task.Task, error)
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

// Transport sends to nodes.
type Transport interface {
	Assign(ctx context.Context, term int64, batches []transport.Batch) []transport.Result
	Control(ctx context.Context, term int64, list []transport.Commands) error
	Fence(ctx context.Context, term int64, list []fleet.Target) error
	Announce(ctx context.Context, term int64, partitions []int) []error
}

// Ends reads the present ends of all partitions of task.status.
type Ends interface {
	StatusEnds(ctx context.Context) (map[int]kafka.Range, error)
}

// Progress knows how far ingest has come.
type Progress interface {
	Reached(ends map[int]kafka.Range) bool
}

// Lease is the leadership that the monitor works under.
type Lease interface {
	Term() int64
	Valid() bool
}

// Config is the configuration of a monitor.
type Config struct {
	ResendAfter time.Duration // ASSIGN_RESEND_AFTER
	Compare     time.Duration // MONITOR_TASK_INTERVAL: time between two comparisons with the store
	Retention   time.Duration // TASK_RETENTION
	Policy      task.Policy
}

// Monitor is the monitor of one leadership. Only Updated and FollowDraining are safe for concurrent use.
type Monitor struct {
	cfg       Config
	store     Store
	registry  Registry
	fleet     *fleet.Fleet
	transport Transport
	lease     Lease
	clock     clock.Clock
	capacity  func()
	log       *slog.Logger

	barriers    barriers
	announcer   announcer
	commander   *commander
	attachments attachments

	lostBarriers  map[fleet.Key]*barrier // what ingest must reach before the work of a lost node is reassigned
	resendBarrier *barrier               // what it must reach before claims are resent; nil = none are due
	taskLists     *taskLists             // nodes' task lists that wait for ingest; nil = none
	listedAt      time.Duration          // when task lists were last read
	orphans       map[fleet.Key][]string // claims in a node's last task list that this leader did not know
	compared      bool                   // with the store, at comparedAt
	comparedAt    time.Duration
	expiredAt     time.Duration
	forwarded     map[string]forwarded
	draining      sync.Mutex // from the read of which nodes drain until the fleet knows it
}

// New returns a monitor. It calls capacity, which must not block, when there may be capacity or work for the
// dispatcher.
func New(cfg Config, s Store, r Registry, f *fleet.Fleet, t Transport, e Ends, p Progress, l Lease, c clock.Clock,
	capacity func(), log *slog.Logger) *Monitor {
	sender := &commander{fleet: f, transport: t, lease: l}
	return &Monitor{cfg: cfg, store: s, registry: r, fleet: f, transport: t, lease: l, clock: c, capacity: capacity, log: log,
		barriers:    barriers{ends: e, progress: p, clock: c},
		announcer:   announcer{fleet: f, transport: t, lease: l, clock: c},
		commander:   sender,
		attachments: attachments{store: s, fleet: f, commander: sender, clock: c, resendAfter: cfg.ResendAfter},

		lostBarriers: make(map[fleet.Key]*barrier), orphans: make(map[fleet.Key][]string),
		expiredAt: c.Boot(), listedAt: c.Boot()}
}

// Round looks at all nodes and claims once. It reports whether something waits for ingest, so that the next round
// should come soon. A part that fails does not keep the others from being tried, since they need different
// dependencies.
func (m *Monitor) Round(ctx context.Context) (soon bool, err error) {
	err = errors.Join(
		m.observe(ctx),
		m.announcer.announce(ctx),
		m.drain(ctx),
		m.compare(ctx),
		m.compareTaskLists(ctx),
		m.cordonUnresponsive(ctx),
		m.resend(ctx),
		m.Desired(ctx),
		m.expire(ctx),
	)
	return len(m.lostBarriers) > 0 || m.resendBarrier != nil, err
}

// Prime takes in the nodes and the claims that they hold, before the first round. It reassigns nothing. A registry that
// does not answer does not keep the leader from its work: nodes that it does not answer either send their heartbeats
// over Kafka.
func (m *Monitor) Prime(ctx context.Context) error {
	if err := errors.Join(m.FollowDraining(ctx), m.compare(ctx)); err != nil {
		return err
	}
	if err := m.observe(ctx); err != nil && ctx.Err() == nil {
		m.log.Warn("the nodes cannot be read; only those that send heartbeats over Kafka take work", "error", err)
	}
	if err := m.announcer.announce(ctx); err != nil {
		m.log.Debug("some nodes do not know of this leader yet; the next round tells them", "error", err)
	}
	return nil
}

// Updated notes that tasks may have new attachments. It is safe for concurrent use.
func (m *Monitor) Updated(ids []string) { m.attachments.add(ids) }

// each calls do for each item and returns the last error. An item that fails does not hold up the others, unless none
// of them could succeed: the context is over, or a dependency is unavailable.
func each[T any](ctx context.Context, items []T, do func(T) error) error {
	var failure error
	for _, item := range items {
		err := do(item)
		if err == nil {
			continue
		}
		failure = err
		if ctx.Err() != nil || errors.Is(err, store.ErrUnavailable) || errors.Is(err, registry.ErrUnavailable) {
			break
		}
	}
	return failure
}
