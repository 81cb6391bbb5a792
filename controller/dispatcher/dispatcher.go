// Package dispatcher sends waiting tasks to nodes. It runs on the leader only. Each round goes through the same steps:
// list, gate, order, place, reserve, claim, publish.
//
// It works on queues rather than on tasks. All tasks of a queue have the same requirements, so what keeps its head
// waiting keeps all of it waiting, and the round reads none of them. See [task.Task.Queue].
//
// Invariants:
//
//   - Nothing is published before a majority has acknowledged the claim. If the outcome of a write is unknown, nothing
//     is published, and the monitor continues from what the store contains.
//   - A claim is undone only by the leader that made it, only for its first publish, and only if that certainly did not
//     happen.
//   - A task that cannot be placed never hides one that can: a queue that waits costs a round no read.
//   - A task takes what it needs beside a node (permits, tokens) only when it has got the node, so a task that waits
//     holds nothing.
//   - A round is bounded, and so is what is known of the queues.
//   - An explanation never contradicts what the next round will do.
package dispatcher

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/skalds-go/skalds/controller/fairqueue"
	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/controller/transport"
	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// Store is the part of the store that the dispatcher uses.
type Store interface {
	Queues(ctx context.Context, after string, limit int) (store.QueuePage, error)
	Waiting(ctx context.Context, queue string, after store.Place, limit int) (store.PendingPage, error)
	Depths(ctx context.Context, after string, limit int) (map[string]int64, error)
	Apply(ctx context.Context, changes []task.Change) (int, error)
	Get(ctx context.Context, ids []string) ([]task.Task, error)
}

// Transport sends assignments to nodes.
type Transport interface {
	Assign(ctx context.Context, term int64, batches []transport.Batch) []transport.Result
}

// Lease is the leadership under which the dispatcher works.
type Lease interface {
	Term() int64
	Remaining() time.Duration
}

// Config is the configuration of a dispatcher.
type Config struct {
	Strategy     placement.Strategy
	ID           string // unique to this leadership; claim ids begin with it
	TaskMaxBytes int    // most bytes of the attachments of a task
	Seed         uint64 // of RANDOM
	MaxPending   int    // most tasks that are sent and not started; 0 = no limit
	Order        fairqueue.Config
}

// ErrNotLeading means that the leadership may be over.
var ErrNotLeading = errors.New("not the leader any more")

// Dispatcher is the dispatcher of one leadership. Round must not be called concurrently; its other methods may be.
type Dispatcher struct {
	cfg     Config
	store   Store
	fleet   *fleet.Fleet
	lease   Lease
	clock   clock.Clock
	metrics *Metrics
	log     *slog.Logger

	claimer claimer

	mu     sync.Mutex // guards what follows; only Round and Use change it, others ask why tasks wait
	queues queues
	order  *fairqueue.Scheduler
	gates  gates
	picker picker
	status Status
}

// Status is the state of a dispatcher, with counts since its leadership began.
type Status struct {
	Strategy    placement.Strategy
	Paused      bool
	Rounds      int64
	Placed      int64
	Failed      int64 // claimed, but not published
	Lost        int64 // claims that another change of the task came before
	LastRoundAt int64 // epoch ms
	LastRound   Outcome
	LastTook    time.Duration
	Queues      int            // known ones
	Waiting     map[Reason]int // queues by the reason why they wait
	Unstarted   int            // tasks that are sent and not started
	MaxPending  int            // at most; 0 = no limit
	Throttle    int            // step of back-pressure, 0..5
}

// New returns a dispatcher.
func New(cfg Config, s Store, f *fleet.Fleet, t Transport, l Lease, c clock.Clock, m *Metrics, log *slog.Logger) *Dispatcher {
	d := &Dispatcher{cfg: cfg, store: s, fleet: f, lease: l, clock: c, metrics: m, log: log,
		queues: newQueues(), order: fairqueue.New(cfg.Order), gates: gates{fleet: f, clock: c, maxPending: cfg.MaxPending}}
	d.picker = picker{gates: &d.gates, fleet: f, cluster: placement.NewCluster(cfg.Seed), rateLimited: make(map[string]struct{})}
	d.claimer = claimer{id: cfg.ID, store: s, transport: t, lease: l, fleet: f, clock: c, metrics: m, log: log, mu: &d.mu, picker: &d.picker}
	d.Use(store.Dispatcher{})
	return d
}

// Status returns the state of the dispatcher.
func (d *Dispatcher) Status() Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.status
	s.Strategy, s.Paused = d.gates.settings.strategy, d.gates.settings.paused
	s.Queues, s.Waiting = len(d.queues.byName), d.countWaiting()
	s.Unstarted, s.MaxPending, s.Throttle = d.fleet.Unstarted(), d.cfg.MaxPending, d.gates.throttle()
	return s
}

// countWaiting counts the queues by what keeps their first tasks waiting.
func (d *Dispatcher) countWaiting() map[Reason]int {
	now := d.gates.moment()
	by := make(map[Reason]int)
	count := func(list []*queueState) {
		for _, q := range list {
			why, _ := d.picker.blocked(q, now)
			by[cmp.Or(why, d.behind(q, q.item.ID), Ready)]++
		}
	}
	count(d.queues.unread.queues)
	count(d.queues.open.queues)
	count(d.queues.ordered.queues)
	for _, set := range d.queues.parked {
		if why, _ := d.picker.blockedSet(set, now); why != "" {
			by[why] += len(set.queues)
			continue
		}
		count(set.queues)
	}
	return by
}
