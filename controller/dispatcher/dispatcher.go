// Package dispatcher gives tasks that wait to nodes: order -> gate -> place -> claim -> publish. It runs on the leader only.
//
// It thinks in queues, not in tasks: tasks of one queue ask for the same, so what keeps the head of a queue waiting keeps all of it
// waiting, and nothing of it is read. See [task.Task.Queue].
//
// Invariants:
//
//   - Nothing is published before a majority acknowledged the claim: of a write whose outcome is unknown nothing is published, and the
//     monitor goes on from what the store says.
//   - A claim is given back only by the leader that made it, only for its first publish, and only if that certainly did not happen.
//   - What cannot be placed never hides what can: a queue that waits costs a round no read.
//   - What a task needs beside a node (permits, tokens) it takes only when it has got the node, so one that waits holds nothing.
//   - A round is bounded, and so is what is known of the queues.
package dispatcher

import (
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

// Config is what a dispatcher is told.
type Config struct {
	Strategy     placement.Strategy
	ID           string // unique to this leadership; claim ids begin with it
	TaskMaxBytes int    // longest attachments of a task
	Seed         uint64 // of RANDOM
	MaxPending   int    // tasks that are sent and not started, at most; 0 = no limit
	Order        fairqueue.Config
}

// ErrNotLeading says that the leadership is over.
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
	unclaims  []*task.Task  // claims that were given back without an answer of the store; at most a page
	refusedAt time.Duration // when a refusal of the store was logged last; 0 = never

	mu     sync.Mutex // guards what follows against those who ask why tasks wait; only Round changes it, and Use
	gates  *gates
	picker *picker
	order  *fairqueue.Scheduler
	queues queues
	cut    bool // the last round looked at as many tasks as it may: the next one goes on where it ended
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
	g := &gates{fleet: f, clock: c, maxPending: cfg.MaxPending, buckets: buckets{limited: make(map[string]struct{})}}
	d := &Dispatcher{cfg: cfg, store: s, fleet: f, transport: t, lease: l, clock: c, metrics: m, log: log,
		gates: g, picker: &picker{gates: g, cluster: placement.NewCluster(cfg.Seed)}, order: fairqueue.New(cfg.Order), queues: newQueues()}
	d.Use(store.Dispatcher{})
	return d
}

// Status gives what the last rounds did.
func (d *Dispatcher) Status() Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.status
	s.Strategy, s.Paused = d.gates.settings.strategy, d.gates.settings.paused
	s.Queues, s.Waiting = len(d.queues.byName), d.counts()
	s.Unstarted, s.MaxPending, s.Throttle = d.fleet.Unstarted(), d.cfg.MaxPending, d.gates.slowdown()
	return s
}

// finishRound ends a round: it notes what it did, and lets go of the tasks that it read.
func (d *Dispatcher) finishRound(r *round, began time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, queue := range r.reads {
		queue.tasks, queue.at, queue.more, queue.read = nil, 0, false, 0
	}
	d.queues.endedBy = r.endedBy
	d.status.Rounds++
	d.status.Placed += int64(r.out.Placed)
	d.status.Failed += int64(r.out.Failed)
	d.status.Lost += int64(r.lost)
	d.status.LastRoundAt = r.now
	d.status.LastRound, d.status.LastTook = r.out, d.clock.Boot()-began
	d.metrics.throttled(d.fleet.Unstarted(), d.gates.slowdown())
}
