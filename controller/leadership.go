package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/skalds-go/skalds/controller/delayed"
	"github.com/skalds-go/skalds/controller/dispatcher"
	"github.com/skalds-go/skalds/controller/election"
	"github.com/skalds-go/skalds/controller/fairqueue"
	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/ingest"
	"github.com/skalds-go/skalds/controller/monitor"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/config"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// lead takes part in the election until the context ends, and works while it leads.
//
// A leadership whose lease is over acts no more, but it goes on listening: nodes that neither it nor the registry confirms would stop. It
// ends when this process leads anew, when the leader's document is seen not to be of it any more, or when a node has seen a higher term.
func (c *Controller) lead(ctx context.Context) {
	var present *election.Lease
	last := &leadership{} // the present one, or the one that goes on listening
	failing := false
	for {
		round, cancel := context.WithTimeout(ctx, c.cfg.LeaderLease)
		lease, err := c.elector.Round(round)
		cancel()
		if err != nil && !failing && ctx.Err() == nil {
			c.deps.Log.Warn("the leader's document cannot be read or renewed", "error", err)
		}
		failing = err != nil
		if lease != present {
			present = lease
			last.stopActing()
		}
		doc, _ := c.elector.Present()
		if last.lease != nil && !last.lease.Wrote(doc) {
			last.stop()
			last = &leadership{}
		}
		if lease != nil && last.lease == nil {
			last = newLeadership(c, lease)
			last.start(ctx)
		}
		if !rest(ctx, c.deps.Clock, c.cfg.LeaderLease/4) {
			break
		}
	}
	last.stop()
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.LeaderLease)
	defer cancel()
	if err := c.elector.Release(release); err != nil {
		c.deps.Log.Debug("the leadership was not released; it ends by itself", "error", err)
	}
}

// leadership is what one leader works with.
type leadership struct {
	c          *Controller
	lease      *election.Lease
	fleet      *fleet.Fleet
	dispatcher *dispatcher.Dispatcher
	monitor    *monitor.Monitor // once it acts

	recallNow dispatcher.Wake

	endActing, endAll context.CancelFunc
	acted, done       chan struct{}
}

// start lets the leadership begin. It listens until stop, or the context ends; it acts until stopActing.
func (l *leadership) start(ctx context.Context) {
	var acting context.Context
	ctx, l.endAll = context.WithCancel(ctx)
	acting, l.endActing = context.WithCancel(ctx)
	l.acted, l.done = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(l.done)
		l.run(ctx, acting)
	}()
}

// stopActing returns when the leadership acts no more.
func (l *leadership) stopActing() {
	if l.lease != nil {
		l.endActing()
		<-l.acted
	}
}

// stop returns when all has ended.
func (l *leadership) stop() {
	if l.lease != nil {
		l.endAll()
		<-l.done
	}
}

func newLeadership(c *Controller, lease *election.Lease) *leadership {
	l := &leadership{c: c, lease: lease, recallNow: dispatcher.NewWake()}
	// A node's clock may run 10 % slow against ours: its trust ends that much later.
	l.fleet = fleet.New(fleet.Config{
		LostTimeout: c.cfg.LostAfter + c.cfg.LostAfter/10,
		StaleAfter:  3 * c.cfg.HeartbeatInterval,
		Protocol:    events.Version,
		Term:        lease.Term(),
		Now:         c.deps.Clock.Now,
		MaxPending:  c.cfg.DispatcherMaxPending,
	})
	l.dispatcher = dispatcher.New(dispatcher.Config{
		Strategy:     c.configured(),
		ID:           c.id[:8] + "-" + strconv.FormatInt(lease.Term(), 36),
		TaskMaxBytes: c.cfg.TaskMaxBytes,
		Seed:         rand.Uint64(),
		MaxPending:   c.cfg.DispatcherMaxPending,
		Order:        fairqueue.Config{Mode: fairqueue.Mode(c.cfg.DispatcherPriorityMode), Aging: c.cfg.PriorityAging},
	}, c.deps.Store, l.fleet, c.transport, lease, c.deps.Clock, c.dispatch, c.deps.Log)
	return l
}

// startPause is the time between two tries to begin.
const startPause = 200 * time.Millisecond

// run acts until the context acting ends, and listens until ctx ends. It is not for it to judge the lease: one that cannot be trusted for a
// moment may be renewed by a late answer, and then goes on.
func (l *leadership) run(ctx, acting context.Context) {
	log := l.c.deps.Log.With("term", l.lease.Term())
	log.Info("leading")
	defer log.Info("not leading any more")
	policy := policyOf(l.c.cfg.Retry)
	in := ingest.New(ingest.Retry{Policy: policy, Jitter: rand.Float64}, l.c.deps.Store, l.fleet, l.c.quarantine, l.c.deps.Clock, ingest.Hooks{
		Room: l.c.room.Signal, Again: l.c.work.Signal, Nodes: l.c.nodes.Signal, Tasks: l.c.stored, Times: l.c.times.Signal, Updated: l.updated,
	}, l.c.ingest, log)
	service := ingest.NewService(in, l.c.transport, l.lease.Term(), l.c.deps.Bus, func(partition int, from kafka.Position) ingest.Reader {
		return l.c.deps.Open(events.TopicStatus, partition, from)
	})
	var listening sync.WaitGroup
	defer listening.Wait()
	func() {
		defer close(l.acted)
		m := l.newMonitor(service.Progress(), policy, log)
		begun := election.Beginning{
			Listen:   func() { listening.Go(func() { service.Run(ctx) }) },
			Announce: l.announce,
			Load:     service.Load,
			Prime: func(ctx context.Context) error {
				if err := m.Prime(ctx); err != nil {
					return fmt.Errorf("take in what nodes hold: %w", err)
				}
				return l.follow(ctx) // or something would be placed by other settings than those that hold
			},
		}.Run(l.trier(acting, log))
		if begun {
			l.act(acting, m, log)
		}
	}()
	<-ctx.Done()
}

// trier gives a function that tries something until it succeeds, or the context ends: then it reports false.
func (l *leadership) trier(ctx context.Context, log *slog.Logger) func(string, func(context.Context) error) bool {
	failing := false
	return func(what string, f func(context.Context) error) bool {
		for ctx.Err() == nil { // not longer than the leadership: lead ends it
			err := f(ctx)
			if err == nil {
				return true
			}
			if !failing && ctx.Err() == nil {
				log.Warn("cannot begin to lead yet; trying again", "to", what, "error", err)
				failing = true
			}
			if !rest(ctx, l.c.deps.Clock, startPause) {
				return false
			}
		}
		return false
	}
}

func (l *leadership) newMonitor(progress *ingest.Progress, policy task.Policy, log *slog.Logger) *monitor.Monitor {
	return monitor.New(monitor.Config{
		ResendAfter: l.c.cfg.AssignResendAfter, Compare: l.c.cfg.MonitorTaskInterval, Retention: l.c.cfg.TaskRetention, Policy: policy,
	}, l.c.deps.Store, l.c.deps.Registry, l.fleet, l.c.transport, (*statusEnds)(l.c), progress, l.lease, l.c.deps.Clock,
		l.c.work.Signal, log)
}

// act claims, sends, gives away and does what is due, until the context ends.
func (l *leadership) act(ctx context.Context, m *monitor.Monitor, log *slog.Logger) {
	var wg sync.WaitGroup
	defer wg.Wait()
	due := delayed.New(l.c.deps.Store, l.c.deps.Registry, l.lease, l.c.deps.Clock, l.c.cfg.CancelGrace, l.c.work.Signal, log)
	l.monitor = m
	wg.Go(func() { due.Run(ctx, l.c.times) })
	wg.Go(func() { m.Run(ctx, l.c.nodes, l.c.wishes, l.c.cfg.MonitorSkaldInterval) })
	if l.c.cfg.Mode == config.ModeDispatcher {
		wg.Go(func() { l.keepFollowing(ctx) })
		wg.Go(func() { l.recall(ctx) })
		wg.Go(func() {
			l.dispatcher.Run(ctx, dispatcher.Wakes{Stored: l.c.work, Room: l.c.room}, l.c.cfg.DispatcherInterval)
		})
	}
	l.c.setLeading(l)
	defer l.c.setLeading(nil)
	<-ctx.Done()
}

// updated takes in which tasks have got new attachments. What comes before this leader acts, its first comparison finds.
func (l *leadership) updated(ids []string) {
	if a := l.c.leading(); a == l {
		l.monitor.Updated(ids)
	}
}

func policyOf(r config.Retry) task.Policy {
	return task.Policy{MaxAttempts: r.MaxAttempts, MaxCrashes: r.MaxCrashes, Backoff: task.Backoff{
		BaseMs: r.BackoffBase.Milliseconds(), Factor: float64(r.BackoffFactor), MaxMs: r.BackoffMax.Milliseconds(),
	}}
}

func (c *Controller) setLeading(l *leadership) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session = l
}

func (l *leadership) announce(ctx context.Context) error {
	n, err := l.c.deps.Bus.Partitions(ctx, events.TopicAssign)
	if err != nil {
		return fmt.Errorf("learn the partitions of %s: %w", events.TopicAssign, err)
	}
	every := make([]int, n)
	for i := range every {
		every[i] = i
	}
	return errors.Join(l.c.transport.Announce(ctx, l.lease.Term(), every)...)
}

// followEvery is the time between two looks at the settings that another controller may have changed.
const followEvery = 500 * time.Millisecond

// follow takes over settings that were changed through any controller.
func (l *leadership) follow(ctx context.Context) error {
	d, err := l.c.deps.Store.Dispatcher(ctx)
	if err != nil {
		return fmt.Errorf("read the dispatcher's settings: %w", err)
	}
	l.use(d)
	return nil
}

func (l *leadership) keepFollowing(ctx context.Context) {
	for rest(ctx, l.c.deps.Clock, followEvery) {
		_ = l.follow(ctx) // the next one may succeed; whether the store answers, others say
	}
}

// configured is the strategy that holds as long as nobody sets another.
func (c *Controller) configured() placement.Strategy {
	s, _ := placement.ParseStrategy(c.cfg.DispatcherStrategy)
	return s
}

// use takes over settings, if they are newer than those in force.
func (l *leadership) use(d store.Dispatcher) {
	if l.dispatcher.Use(d) {
		l.c.room.Signal()
		l.recallNow.Signal()
	}
}

// recallEvery is the time between two recalls of what is paused and has not begun.
const recallEvery = 500 * time.Millisecond

// recall calls back what is paused and has not begun, until nodes have given it back or said that it began.
func (l *leadership) recall(ctx context.Context) {
	timer := l.c.deps.Clock.NewTimer(recallEvery)
	defer timer.Stop()
	last := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.recallNow:
		case <-timer.C():
		}
		claims := l.dispatcher.Recallable()
		if now := l.c.deps.Clock.Boot(); len(claims) > 0 && now-last >= settleStep {
			last = now
			if err := l.monitor.Recall(ctx, claims); err != nil && ctx.Err() == nil {
				l.c.deps.Log.Warn("what is paused and has not begun was not called back; it is tried again", "tasks", len(claims), "error", err)
			}
		}
		timer.Reset(recallEvery)
	}
}

// statusEnds tells the ends of task.status.
type statusEnds Controller

// StatusEnds gives the present ends of all partitions of task.status.
func (s *statusEnds) StatusEnds(ctx context.Context) (map[int]kafka.Range, error) {
	n, err := s.deps.Bus.Partitions(ctx, events.TopicStatus)
	if err != nil {
		return nil, fmt.Errorf("learn the partitions of %s: %w", events.TopicStatus, err)
	}
	all := make([]int, n)
	for p := range all {
		all[p] = p
	}
	ends, err := s.deps.Bus.Offsets(ctx, events.TopicStatus, all)
	if err != nil {
		return nil, fmt.Errorf("learn the ends of %s: %w", events.TopicStatus, err)
	}
	return ends, nil
}
