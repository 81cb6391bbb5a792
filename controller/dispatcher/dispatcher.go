// Package dispatcher sends waiting tasks to nodes. It runs on the leader only. Each round goes through the same steps:
// list, gate, order, place, reserve, claim, publish.
//
// It thinks in queues, not in tasks. Tasks of one queue ask for the same, so what keeps the head of a queue waiting
// keeps all of it waiting, and the round reads nothing of it. See [task.Task.Queue].
//
// Invariants:
//
//   - Nothing is published before a majority has acknowledged the claim. If the outcome of a write is unknown, nothing
//     is published, and the monitor goes on from what the store says.
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

// Transport is how assignments reach nodes.
type Transport interface {
	Assign(ctx context.Context, term int64, batches []transport.Batch) []transport.Result
}

// Lease is the leadership that the dispatcher works under.
type Lease interface {
	Term() int64
	Remaining() time.Duration
}

// Config is the configuration of a dispatcher.
type Config struct {
	Strategy     placement.Strategy
	ID           string // unique to this leadership; claim ids begin with it
	TaskMaxBytes int    // longest attachments of a task
	Seed         uint64 // of RANDOM
	MaxPending   int    // tasks that are sent and not started, at most; 0 = no limit
	Order        fairqueue.Config
}

// ErrNotLeading means that the leadership is over.
var ErrNotLeading = errors.New("not the leader any more")

// Dispatcher is one leader's dispatcher.
type Dispatcher struct {
	cfg       Config
	store     Store
	fleet     *fleet.Fleet
	transport Transport
	lease     Lease
	clock     clock.Clock
	metrics   *Metrics
	log       *slog.Logger

	claims    int64         // made so far, for their ids
	owed      []*task.Task  // claims whose undoing the store has not answered; at most a page
	refusedAt time.Duration // when a refusal of the store was logged last; 0 = never

	mu     sync.Mutex // guards what follows; only Round and Use change it, others ask why tasks wait
	queues queues
	order  *fairqueue.Scheduler
	gates  gates
	picker picker
	status Status
}

// Status is what the last rounds did.
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
	Queues      int            // that are known
	Waiting     map[Reason]int // queues by why they wait
	Unstarted   int            // tasks that are sent and not started
	MaxPending  int            // at most; 0 = no limit
	Throttle    int            // steps of slowing down for them, 0..5
}

// New makes a dispatcher.
func New(cfg Config, s Store, f *fleet.Fleet, t Transport, l Lease, c clock.Clock, m *Metrics, log *slog.Logger) *Dispatcher {
	d := &Dispatcher{cfg: cfg, store: s, fleet: f, transport: t, lease: l, clock: c, metrics: m, log: log,
		queues: newQueues(), order: fairqueue.New(cfg.Order), gates: gates{fleet: f, clock: c, maxPending: cfg.MaxPending}}
	d.picker = picker{gates: &d.gates, fleet: f, cluster: placement.NewCluster(cfg.Seed), rateLimited: make(map[string]struct{})}
	d.Use(store.Dispatcher{})
	return d
}

// Status returns what the last rounds did.
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
	each := func(list []*queueState) {
		for _, q := range list {
			why, _ := d.picker.blocked(q, now)
			by[cmp.Or(why, d.behind(q, q.item.ID), Ready)]++
		}
	}
	each(d.queues.unread.queues)
	each(d.queues.open.queues)
	each(d.queues.ordered.queues)
	for _, set := range d.queues.parked {
		if why, _ := d.picker.blockedSet(set, now); why != "" {
			by[why] += len(set.queues)
			continue
		}
		each(set.queues)
	}
	return by
}
