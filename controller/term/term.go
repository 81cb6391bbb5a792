package term

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/skalds-go/skalds/controller/delayed"
	"github.com/skalds-go/skalds/controller/dispatcher"
	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/ingest"
	"github.com/skalds-go/skalds/controller/monitor"
	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/loop"
	"github.com/skalds-go/skalds/pkg/store"
)

// Term runs the loops of one leadership.
type Term struct {
	cfg   Config
	deps  Deps
	wakes Wakes
	lease Lease

	Fleet      *fleet.Fleet
	Dispatcher *dispatcher.Dispatcher
	monitor    *monitor.Monitor
	ingest     *ingest.Service
	promoter   *delayed.Promoter
	recall     loop.Wake

	listening, acting *loop.Group
	acts              atomic.Bool
}

func newTerm(cfg Config, deps Deps, wakes Wakes, lease Lease) *Term {
	t := &Term{cfg: cfg, deps: deps, wakes: wakes, lease: lease, recall: loop.NewWake()}
	t.deps.Log = deps.Log.With("term", lease.Term())
	t.Fleet = fleet.New(fleet.Config{
		LostTimeout: cfg.LostAfter + cfg.Drift,
		StaleAfter:  3 * cfg.Heartbeat,
		Protocol:    events.Version,
		Term:        lease.Term(),
		Now:         deps.Clock.Now,
		MaxPending:  cfg.MaxPending,
	})
	t.Dispatcher = dispatcher.New(dispatcher.Config{
		Strategy: cfg.Strategy, ID: cfg.Controller[:8] + "-" + strconv.FormatInt(lease.Term(), 36), TaskMaxBytes: cfg.TaskMaxBytes,
		Seed: deps.Seed(), MaxPending: cfg.MaxPending, Order: cfg.Order,
	}, deps.Store, t.Fleet, deps.Transport, lease, deps.Clock, deps.Dispatched, t.deps.Log)
	in := ingest.New(ingest.Retry{Policy: cfg.Policy, Jitter: deps.Jitter}, deps.Store, t.Fleet, deps.Quarantine, deps.Clock, ingest.Hooks{
		Capacity: wakes.Capacity.Signal, Stored: wakes.Stored.Signal, Membership: wakes.Membership.Signal, Submitted: wakes.Submitted,
		Due: wakes.Due.Signal, Updated: t.Updated,
	}, deps.Ingested, t.deps.Log)
	t.ingest = ingest.NewService(in, deps.Transport, lease.Term(), deps.Bus, func(partition int, from kafka.Position) ingest.Reader {
		return deps.Open(events.TopicStatus, partition, from)
	}, deps.Runner)
	var progress monitor.Progress = t.ingest.Progress()
	if deps.Progress != nil {
		progress = deps.Progress(progress)
	}
	t.monitor = monitor.New(monitor.Config{ResendAfter: cfg.ResendAfter, Compare: cfg.CompareInterval, Retention: cfg.Retention, Policy: cfg.Policy},
		deps.Store, deps.Registry, t.Fleet, deps.Transport, statusEnds{deps.Bus}, progress, lease, deps.Clock, wakes.Stored.Signal, t.deps.Log)
	t.promoter = delayed.New(deps.Store, deps.Registry, lease, deps.Clock, cfg.CancelGrace, wakes.Stored.Signal, t.deps.Log)
	return t
}

// Step is one of the steps with which a term begins.
type Step struct {
	Name string
	Do   func(ctx context.Context) error
}

// beginPause is the time between two tries of such a step.
const beginPause = 200 * time.Millisecond

// begin starts the term. It listens until Stop is called or the context ends, and acts until StopActing is called. It
// does not end with a lease that is not valid: a late answer may still renew that lease.
func (t *Term) begin(ctx context.Context) {
	t.deps.Log.Info("leading")
	t.listening = t.deps.Runner.Group(ctx)
	t.acting = t.deps.Runner.Group(ctx)
	steps := []Step{
		{"listen", func(context.Context) error { t.ingest.Listen(t.listening); return nil }},
		{"announce the term", t.announce},
		{"load the positions of ingest", t.ingest.Load},
		{"take in what nodes hold", t.prime},
	}
	if t.deps.Beginning != nil {
		steps = t.deps.Beginning(t, steps)
	}
	t.acting.Start(loop.Loop{
		Name:    "begin",
		Backoff: loop.Backoff{First: beginPause, Max: beginPause},
		Failure: "cannot begin to lead yet; trying again",
		Step: func(ctx context.Context, _ loop.Wake) (loop.Next, error) {
			for len(steps) > 0 {
				if err := steps[0].Do(ctx); err != nil {
					return loop.Next{}, fmt.Errorf("%s: %w", steps[0].Name, err)
				}
				steps = steps[1:]
			}
			t.act()
			return loop.Done(), nil
		},
	})
}

// act starts the loops that claim, send and reassign tasks, and act on their times.
func (t *Term) act() {
	t.acting.Start(
		t.promoter.Loop(t.wakes.Due),
		t.monitor.Loop(t.wakes.Membership, t.wakes.Desired, t.cfg.MonitorInterval),
	)
	if t.cfg.Dispatch {
		t.acting.Start(
			t.settingsLoop(),
			t.monitor.RecallLoop(t.recall, t.Dispatcher.Recallable),
			t.Dispatcher.Loop(dispatcher.Wakes{Stored: t.wakes.Stored, Capacity: t.wakes.Capacity}, t.cfg.DispatchInterval),
		)
	}
	t.acts.Store(t.acting.Context().Err() == nil)
}

// Acts reports whether the term acts: it has begun to, and has not been stopped.
func (t *Term) Acts() bool { return t.acts.Load() }

// StopActing returns when the term no longer acts.
func (t *Term) StopActing() {
	t.acts.Store(false)
	t.acting.Stop()
	t.acts.Store(false) // begin may have called act before it was stopped
}

// Stop returns when everything that the term runs has ended.
func (t *Term) Stop() {
	t.StopActing()
	t.listening.Stop()
	t.deps.Log.Info("not leading any more")
}

// announce writes the term to every node partition.
func (t *Term) announce(ctx context.Context) error {
	every, err := partitions(ctx, t.deps.Bus, events.TopicAssign)
	if err != nil {
		return err
	}
	for _, err := range t.deps.Transport.Announce(ctx, t.lease.Term(), every) {
		if err != nil {
			return err // the first error is enough
		}
	}
	return nil
}

// prime takes in the claims, the nodes and the settings. Without the settings, the first tasks would be placed by the
// defaults.
func (t *Term) prime(ctx context.Context) error {
	if err := t.monitor.Prime(ctx); err != nil {
		return err
	}
	return t.readSettings(ctx)
}

// Updated notes that tasks have new attachments. The term's first comparison finds those that come before it acts.
func (t *Term) Updated(ids []string) {
	if t.Acts() {
		t.monitor.Updated(ids)
	}
}

// settingsInterval is the time between two reads of the settings, which another controller may have changed.
const settingsInterval = 500 * time.Millisecond

// settingsLoop returns the loop that applies settings that were changed through other controllers.
func (t *Term) settingsLoop() loop.Loop {
	return loop.Loop{
		Name:    "settings",
		First:   loop.After(settingsInterval),
		Backoff: loop.Backoff{First: settingsInterval, Max: settingsInterval},
		Failure: "the dispatcher's settings cannot be read; it keeps those that it has",
		Quiet:   true, // the monitor reports that the store does not answer
		Step: func(ctx context.Context, _ loop.Wake) (loop.Next, error) {
			return loop.After(settingsInterval), t.readSettings(ctx)
		},
	}
}

func (t *Term) readSettings(ctx context.Context) error {
	d, err := t.deps.Store.Dispatcher(ctx)
	if err != nil {
		return fmt.Errorf("read the dispatcher's settings: %w", err)
	}
	t.Use(d)
	return nil
}

// Use applies settings that are newer than those in force.
func (t *Term) Use(d store.Dispatcher) {
	if t.Dispatcher.Use(d) {
		t.wakes.Capacity.Signal()
		t.recall.Signal()
	}
}

// Recall recalls at once the claims that are paused and have not begun.
func (t *Term) Recall() { t.recall.Signal() }

// statusEnds reads the ends of task.status.
type statusEnds struct{ bus Bus }

var _ monitor.Ends = statusEnds{}

// StatusEnds implements [monitor.Ends].
func (s statusEnds) StatusEnds(ctx context.Context) (map[int]kafka.Range, error) {
	every, err := partitions(ctx, s.bus, events.TopicStatus)
	if err != nil {
		return nil, err
	}
	ends, err := s.bus.Offsets(ctx, events.TopicStatus, every)
	if err != nil {
		return nil, fmt.Errorf("read the ends of %s: %w", events.TopicStatus, err)
	}
	return ends, nil
}

// partitions lists the partitions of a topic.
func partitions(ctx context.Context, bus Bus, topic string) ([]int, error) {
	n, err := bus.Partitions(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("count the partitions of %s: %w", topic, err)
	}
	every := make([]int, n)
	for p := range every {
		every[p] = p
	}
	return every, nil
}
