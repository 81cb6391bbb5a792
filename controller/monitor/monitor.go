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
	"log/slog"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/transport"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/registry"
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

// Transport is how nodes are reached.
type Transport interface {
	Assign(ctx context.Context, term int64, batches []transport.Batch) []transport.Result
	Control(ctx context.Context, term int64, list []transport.Commands) error
	Fence(ctx context.Context, term int64, list []fleet.Target) error
	Announce(ctx context.Context, term int64, partitions []int) []error
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
	nowhere  map[int]absence   // partitions of nodes that are not there
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
	err = errors.Join(m.observe(ctx), m.tell(ctx), m.drain(ctx), m.compare(ctx), m.compareLists(ctx), m.aside(ctx), m.again(ctx), m.Desired(ctx), m.expire(ctx))
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
