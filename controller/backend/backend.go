// Package backend answers what the API asks of a controller: the dispatcher's status and settings, why tasks wait, what
// the leader knows of nodes, and whether the controller is ready.
//
// Some of it only the leader knows. There is one rule for that, in [ask]: a controller that leads answers by itself,
// any other asks the one that leads, and if that one does not answer, the error says who leads and why it could not be
// asked.
package backend

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/skalds-go/skalds/controller/api"
	"github.com/skalds-go/skalds/controller/dispatcher"
	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/config"
	"github.com/skalds-go/skalds/pkg/loop"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// Store is what a backend uses of the store.
type Store interface {
	Dispatcher(ctx context.Context) (store.Dispatcher, error)
	SwapDispatcher(ctx context.Context, d store.Dispatcher) (bool, error)
	Draining(ctx context.Context) ([]string, error)
	SetDraining(ctx context.Context, node string, draining bool) error
	Leader(ctx context.Context) (store.Leader, error)
	Counts(ctx context.Context) (map[task.Status]int64, error)
	Ping(ctx context.Context) error
}

// Pinger is a service that a controller needs.
type Pinger interface {
	Ping(ctx context.Context) error
}

// Term is the leadership of this controller.
type Term interface {
	// Use takes over settings, if they are newer than those in force.
	Use(d store.Dispatcher)
	// Recall has what is paused and has not begun recalled at once.
	Recall()
}

// Leadership is what this controller knows while it leads.
type Leadership struct {
	Term       Term
	Fleet      *fleet.Fleet
	Dispatcher *dispatcher.Dispatcher
}

// Deps is what a backend stands on. All of it is needed, but for Peers.
type Deps struct {
	ID       string // of the controller
	Config   config.Controller
	Store    Store
	Registry Pinger
	Bus      Pinger
	// Topics returns why the topics are not ready; nil when they are.
	Topics func() error
	// Leading returns the leadership of this controller; nil while it follows.
	Leading func() *Leadership
	// DrainsStored is called after a node's drain, or its end, was stored. When it returns without an error, and this
	// controller leads, nothing is placed on nodes that drain.
	DrainsStored func(context.Context) error
	Clock        clock.Clock
	// Peers carries what this controller asks the one that leads; nil is [http.DefaultTransport].
	Peers http.RoundTripper
}

// Backend implements [api.Backend].
type Backend struct {
	deps   Deps
	peers  *http.Client
	driver loop.Driver
}

var _ api.Backend = (*Backend)(nil)

// peerTimeout is how long the leader may take to answer another controller.
const peerTimeout = 5 * time.Second

// New returns a backend.
func New(deps Deps) *Backend {
	return &Backend{deps: deps, peers: &http.Client{Transport: deps.Peers, Timeout: peerTimeout}, driver: loop.System{Clock: deps.Clock}}
}

// statusTimeout is how long a status waits for the leader's part of it.
const statusTimeout = 2 * time.Second

// Status returns the settings in force, and what the leader's rounds did. Where no leader can be asked, it says why
// instead.
func (b *Backend) Status(ctx context.Context) (client.Dispatcher, error) {
	set, err := b.deps.Store.Dispatcher(ctx)
	if err != nil {
		return client.Dispatcher{}, fmt.Errorf("read the dispatcher's settings: %w", err)
	}
	doc, err := b.deps.Store.Leader(ctx)
	if err != nil {
		return client.Dispatcher{}, fmt.Errorf("read the leader's document: %w", err)
	}
	asking, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	status, err := ask(asking, b, work, (*client.Client).Dispatcher)
	if err != nil {
		status = client.Dispatcher{LeaderError: err.Error()}
	}
	cfg := &b.deps.Config
	configured, _ := placement.ParseStrategy(cfg.DispatcherStrategy)
	status.Strategy, status.Settings = string(dispatcher.Strategy(&set, configured)), new(api.Shown(&set))
	status.Leader, status.IsLeader = leaderOf(doc), b.deps.Leading() != nil
	status.IntervalMs = cfg.DispatcherInterval.Milliseconds()
	status.Timing = client.Timing{
		HeartbeatIntervalMs: cfg.HeartbeatInterval.Milliseconds(), LostAfterMs: cfg.LostAfter.Milliseconds(),
		StopMarginMs: cfg.StopMargin.Milliseconds(), LeaderLeaseMs: cfg.LeaderLease.Milliseconds(),
	}
	status.Throttle.MaxBacklog, status.Throttle.MaxPending = cfg.MaxBacklog, cfg.DispatcherMaxPending
	return status, nil
}

// work returns what the leader's rounds did.
func work(_ context.Context, l *Leadership) (client.Dispatcher, error) {
	did := l.Dispatcher.Status()
	d := client.Dispatcher{
		Rounds: did.Rounds, Placed: did.Placed, LastRoundAt: did.LastRoundAt, Failed: did.Failed, Lost: did.Lost, Queues: did.Queues,
		LastRound: client.Round{Placed: did.LastRound.Placed, Failed: did.LastRound.Failed, TookMs: did.LastTook.Milliseconds()},
		Throttle:  client.Throttle{Unstarted: did.Unstarted, Step: did.Throttle},
		Waiting:   make(map[string]int, len(did.Waiting)),
	}
	d.Nodes, _ = l.Fleet.Size()
	for reason, n := range did.Waiting {
		d.Waiting[string(reason)] = n
	}
	return d, nil
}
