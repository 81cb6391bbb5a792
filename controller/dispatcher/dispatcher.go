// Package dispatcher gives tasks that wait to nodes: read -> place -> claim -> publish. It runs on the leader only.
//
// Invariants:
//
//   - Nothing is published before a majority acknowledged the claim: of a write whose outcome is unknown nothing is published, and the
//     monitor goes on from what the store says.
//   - A claim is given back only by the leader that made it, only for its first publish, and only if that certainly did not happen.
//   - A round is bounded: it reads at most maxPages pages, and goes on from there in the next, so that many tasks that cannot be placed
//     never hide one that can.
package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/controller/transport"
	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// Store is the part of the store that the dispatcher uses.
type Store interface {
	Pending(ctx context.Context, after store.Place, limit int) (store.PendingPage, error)
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

	placer    *placement.Placer
	claims    int64 // made so far, for their ids
	way       way
	owed      []*task.Task  // claims that were given back without an answer of the store; at most a page
	refusedAt time.Duration // when a refusal of the store was logged last; 0 = never

	mu       sync.Mutex
	strategy placement.Strategy
	status   Status
}

// Status is what the last rounds did.
type Status struct {
	Strategy    placement.Strategy
	Rounds      int64
	Placed      int64
	LastRoundAt int64                    // epoch ms
	Waiting     map[placement.Reason]int // tasks that the last round with a look at them could not place
}

// New makes a dispatcher.
func New(cfg Config, s Store, f *fleet.Fleet, t Transport, l Lease, c clock.Clock, m *Metrics, log *slog.Logger) *Dispatcher {
	return &Dispatcher{cfg: cfg, store: s, fleet: f, transport: t, lease: l, clock: c, metrics: m, log: log,
		placer: placement.New(cfg.Seed), strategy: cfg.Strategy}
}

// SetStrategy changes the strategy from the next round on.
func (d *Dispatcher) SetStrategy(s placement.Strategy) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.strategy = s
}

// Status gives what the last rounds did.
func (d *Dispatcher) Status() Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.status
	s.Strategy = d.strategy
	return s
}

// Outcome is what one round did.
type Outcome struct {
	Placed int
	Failed int  // claimed, but not published
	More   bool // there is work and room left
}

// Limits of a round.
const (
	maxPages = 10 // pages that one round reads
	minPage  = 32 // tasks that it reads at the least
	lookPage = 64 // and with a look
)

// way is how far rounds have read past tasks that cannot be placed. The next round reads the first page and goes on from there. Tasks that
// come in between, or can be placed by now, are seen when the way begins anew: at the end of all, or after as many rounds have filled the
// nodes from its end as it is pages long. So it is read twice at the most for what it saves, and nothing waits behind it for ever.
type way struct {
	end   store.Place
	pages int
	used  int
}

// Round places what waits, as long as there is room. With look it reads a page even if there is none, to say why tasks wait.
func (d *Dispatcher) Round(ctx context.Context, look bool) (Outcome, error) {
	if err := d.giveBack(ctx, nil); err != nil { // what is owed
		return Outcome{}, err
	}
	nodes, targets := d.fleet.View(d.clock.Boot())
	slots, queue := d.room(nodes)
	waiting := make(map[placement.Reason]int)
	var out Outcome
	if slots+queue == 0 && !look {
		return out, nil
	}
	place := store.Place{}
	for page := range maxPages {
		limit := store.MaxBatch
		if page == 0 {
			limit = max(slots+queue, minPage)
			if look {
				limit = max(limit, lookPage)
			}
			limit = min(limit, store.MaxBatch)
		}
		if d.lease.Remaining() <= 0 {
			return out, ErrNotLeading
		}
		p, err := d.store.Pending(ctx, place, limit)
		if err != nil {
			return out, fmt.Errorf("read tasks that wait: %w", err)
		}
		for _, b := range p.Bad {
			d.log.Warn("a task's document does not decode and was marked Failed", "task", b.ID, "reason", b.Reason)
		}
		placed, failed, err := d.dispatch(ctx, nodes, targets, p.Tasks, waiting)
		out.Placed += placed
		out.Failed += failed
		if err != nil {
			return out, err
		}
		// Room to queue is not worth a search through the whole backlog: it is filled as long as that finds something.
		slots, queue = d.room(nodes)
		full := slots == 0 && (queue == 0 || placed == 0)
		out.More = p.More && !full
		if full || failed > 0 {
			if d.way.used++; d.way.used >= d.way.pages {
				d.way = way{}
			}
			break
		}
		if !p.More {
			d.way = way{}
			break
		}
		if place = p.Next; page == 0 && place.Before(d.way.end) {
			place = d.way.end
		} else {
			d.way.end, d.way.pages = place, d.way.pages+1
		}
	}
	d.note(out, waiting)
	return out, nil
}

// room says how many slots are free, and how many short tasks may queue beside them.
func (d *Dispatcher) room(nodes []placement.Node) (slots, queue int) {
	for i := range nodes {
		n := &nodes[i]
		slots += max(0, n.Capacity-n.Load)
		queue += max(0, n.Capacity+n.Prefetch-max(n.Load, n.Capacity))
	}
	if slots == 0 && !d.fleet.AnyShort() {
		return 0, 0
	}
	return slots, queue
}

func (d *Dispatcher) note(out Outcome, waiting map[placement.Reason]int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.status.Rounds++
	d.status.Placed += int64(out.Placed)
	d.status.LastRoundAt = d.clock.Now().UnixMilli()
	d.status.Waiting = waiting
}

// dispatch places, claims and publishes one page.
func (d *Dispatcher) dispatch(ctx context.Context, nodes []placement.Node, targets []fleet.Target, tasks []task.Task,
	waiting map[placement.Reason]int,
) (placed, failed int, err error) {
	now := d.clock.Now().UnixMilli()
	var ends []task.Change
	requests := make([]placement.Request, 0, len(tasks))
	ready := make([]*task.Task, 0, len(tasks))
	for i := range tasks {
		t := &tasks[i]
		if c, never := d.never(t, now); never {
			ends = append(ends, c)
			continue
		}
		ready = append(ready, t)
		requests = append(requests, placement.Request{Class: t.ClassName, Short: d.fleet.Short(t.ClassName),
			Alone: t.Alone(), Avoid: t.Crashed()})
	}
	if len(ends) > 0 {
		if _, err := d.store.Apply(ctx, ends); err != nil && !d.refusal(ctx, err) {
			return 0, 0, fmt.Errorf("end %d tasks that cannot run: %w", len(ends), err)
		}
	}
	d.mu.Lock()
	strategy := d.strategy
	d.mu.Unlock()
	var picks []pick
	for i, dec := range d.placer.Place(strategy, nodes, requests) {
		if dec.Node < 0 {
			waiting[dec.Reason]++
			continue
		}
		picks = append(picks, pick{task: ready[i], to: targets[dec.Node]})
	}
	if len(picks) == 0 {
		return 0, 0, nil
	}
	won, err := d.claim(ctx, picks, now)
	if err != nil {
		return 0, 0, err
	}
	failed, err = d.publish(ctx, won)
	return len(won) - failed, failed, err
}

// never gives the end, or the hold, of a task that is not to run, or cannot.
func (d *Dispatcher) never(t *task.Task, now int64) (task.Change, bool) {
	if c, ok := task.Settle(t, now); ok {
		return c, true
	}
	if n := len(t.Attachments); n > d.cfg.TaskMaxBytes {
		return task.Refuse(t, fmt.Sprintf("attachments have %d bytes as JSON, %d at most (TASK_MAX_BYTES)", n, d.cfg.TaskMaxBytes), now), true
	}
	if reason := t.Unfit(); reason != "" {
		return task.Refuse(t, reason, now), true
	}
	return task.Change{}, false
}

// pick is a task and the node it goes to.
type pick struct {
	task   *task.Task
	to     fleet.Target
	change task.Change
}

func (d *Dispatcher) claimID() string {
	d.claims++
	return d.cfg.ID + "-" + strconv.FormatInt(d.claims, 36)
}

// claim writes the claims and gives those that won. What is lost to another is dropped.
func (d *Dispatcher) claim(ctx context.Context, picks []pick, now int64) ([]pick, error) {
	claims := make([]fleet.Claim, len(picks))
	changes := make([]task.Change, len(picks))
	ids := make([]string, len(picks))
	for i := range picks {
		p := &picks[i]
		p.change = task.Claim(p.task, p.to.Node, p.to.Incarnation, d.claimID(), now)
		a := p.change.Assign
		changes[i], ids[i] = p.change, a.ClaimID
		claims[i] = fleet.Claim{Key: p.to.Key, TaskID: p.task.ID, Attempt: a.Attempt, ID: a.ClaimID, Class: p.task.ClassName,
			Alone: p.task.Alone(), Version: p.task.AttachmentsVersion}
	}
	d.fleet.Reserve(claims, d.clock.Boot())
	n, err := d.store.Apply(ctx, changes)
	if err == nil && n == len(picks) {
		for i := range picks {
			picks[i].change.Apply(picks[i].task)
		}
		return picks, nil
	}
	if err != nil && !d.refusal(ctx, err) {
		// They may be written or not: the monitor finds out, and sends those that are.
		d.fleet.Sent(ids, d.clock.Boot())
		return nil, fmt.Errorf("claim %d tasks: %w", len(picks), err)
	}
	return d.winners(ctx, picks, ids)
}

// refusalEvery is how often a refusal of the store is logged.
const refusalEvery = time.Minute

// refusal says whether the store will never take some of the changes, and has carried out the others.
func (d *Dispatcher) refusal(ctx context.Context, err error) bool {
	if ctx.Err() != nil || errors.Is(err, store.ErrUnavailable) {
		return false
	}
	if now := d.clock.Boot(); d.refusedAt == 0 || now-d.refusedAt >= refusalEvery {
		d.refusedAt = now
		d.log.Error("the store refuses to change tasks that wait; they go on waiting", "error", err)
	}
	return true
}

// winners reads back which claims won.
func (d *Dispatcher) winners(ctx context.Context, picks []pick, ids []string) ([]pick, error) {
	taskIDs := make([]string, len(picks))
	for i := range picks {
		taskIDs[i] = picks[i].task.ID
	}
	stored, err := d.store.Get(ctx, taskIDs)
	if err != nil {
		d.fleet.Sent(ids, d.clock.Boot())
		return nil, fmt.Errorf("read back %d claims: %w", len(picks), err)
	}
	present := make(map[string]string, len(stored))
	for i := range stored {
		present[stored[i].ID] = stored[i].ClaimID
	}
	var lost []string
	won := picks[:0]
	for _, p := range picks {
		if id := p.change.Assign.ClaimID; present[p.task.ID] != id || !p.change.Apply(p.task) {
			lost = append(lost, id)
			continue
		}
		won = append(won, p)
	}
	d.fleet.Drop(lost)
	d.metrics.lost.Add(float64(len(lost)))
	return won, nil
}
