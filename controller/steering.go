package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/skalds-go/skalds/controller/api"
	"github.com/skalds-go/skalds/controller/dispatcher"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/config"
	"github.com/skalds-go/skalds/pkg/loop"
	"github.com/skalds-go/skalds/pkg/store"
)

// steering is the dispatcher as the API shows and steers it.
type steering Controller

var _ api.Dispatcher = (*steering)(nil)

// Status gives what is in force, and, on the leader, what its rounds did.
func (s *steering) Status(ctx context.Context) (client.Dispatcher, error) {
	c := (*Controller)(s)
	set, err := c.deps.Store.Dispatcher(ctx)
	if err != nil {
		return client.Dispatcher{}, fmt.Errorf("read the dispatcher's settings: %w", err)
	}
	doc, err := c.deps.Store.Leader(ctx)
	if err != nil {
		return client.Dispatcher{}, fmt.Errorf("read the leader's document: %w", err)
	}
	status := client.Dispatcher{
		Strategy:   string(dispatcher.Strategy(&set, c.configured())),
		Leader:     client.Leader{Holder: doc.Holder, Address: doc.Address, Term: doc.Term},
		IntervalMs: c.cfg.DispatcherInterval.Milliseconds(),
		Timing: client.Timing{
			HeartbeatIntervalMs: c.cfg.HeartbeatInterval.Milliseconds(), LostAfterMs: c.cfg.LostAfter.Milliseconds(),
			StopMarginMs: c.cfg.StopMargin.Milliseconds(), LeaderLeaseMs: c.cfg.LeaderLease.Milliseconds(),
		},
	}
	status.Settings = new(api.Shown(&set))
	status.Throttle.MaxBacklog, status.Throttle.MaxPending = c.cfg.MaxBacklog, c.cfg.DispatcherMaxPending
	l := c.leading()
	if l == nil {
		return status, nil
	}
	did := l.dispatcher.Status()
	status.IsLeader = true
	status.Rounds, status.Placed, status.LastRoundAt = did.Rounds, did.Placed, did.LastRoundAt
	status.Failed, status.Lost, status.Queues = did.Failed, did.Lost, did.Queues
	status.LastRound = client.Round{Placed: did.LastRound.Placed, Failed: did.LastRound.Failed, TookMs: did.LastTook.Milliseconds()}
	status.Throttle.Unstarted, status.Throttle.Step = did.Unstarted, did.Throttle
	status.Nodes, _ = l.fleet.Size()
	status.Waiting = make(map[string]int, len(did.Waiting))
	for reason, n := range did.Waiting {
		status.Waiting[string(reason)] = n
	}
	return status, nil
}

// setAside says why a node takes no new work, if this controller leads and has set it aside.
func (c *Controller) setAside(node string) *client.Cordon {
	l := c.leading()
	if l == nil {
		return nil
	}
	boot, now := c.deps.Clock.Boot(), c.deps.Clock.Now()
	a, ok := l.fleet.Cordoned(node, boot)
	if !ok {
		return nil
	}
	return &client.Cordon{Reason: a.Reason, Since: now.Add(a.Since - boot).UnixMilli(), Until: now.Add(a.Until - boot).UnixMilli()}
}

// SetStrategy stores the strategy. The leader follows, at once if it is this process.
func (s *steering) SetStrategy(ctx context.Context, strategy string) error {
	_, err := s.Change(ctx, func(d *store.Dispatcher) error { d.Strategy = strategy; return nil })
	return err
}

// Settings gives what was changed at run time.
func (s *steering) Settings(ctx context.Context) (store.Dispatcher, error) {
	return s.deps.Store.Dispatcher(ctx)
}

// InUse says how many tasks of each of these pools are on nodes. The leader is asked for it.
func (s *steering) InUse(ctx context.Context, pools []string) (map[string]int, error) {
	inUse := make(map[string]int, len(pools))
	if l := (*Controller)(s).leading(); l != nil {
		for _, name := range pools {
			inUse[name] = l.fleet.PoolCount(name)
		}
		return inUse, nil
	}
	peer, err := s.peer(ctx)
	if err != nil {
		return nil, err
	}
	list, err := peer.Pools(ctx)
	for _, p := range list {
		if p.InUse != nil {
			inUse[p.Name] = *p.InUse
		}
	}
	return inUse, err
}

// changeTries is how often a change of the settings is tried while others change them, too.
const changeTries = 10

var errContended = errors.New("others change the settings all the time: try again")

// Change changes the dispatcher's settings, and gives what they are then. It returns when nothing begins any more that is paused by then.
func (s *steering) Change(ctx context.Context, set func(*store.Dispatcher) error) (store.Dispatcher, error) {
	c := (*Controller)(s)
	for range changeTries {
		d, err := c.deps.Store.Dispatcher(ctx)
		if err != nil {
			return d, fmt.Errorf("read the settings: %w", err)
		}
		d = d.Clone()
		if err := set(&d); err != nil {
			return d, err
		}
		ok, err := c.deps.Store.SwapDispatcher(ctx, d)
		if err != nil {
			return d, fmt.Errorf("write the settings: %w", err)
		}
		if ok {
			d.Version++
			c.settle(ctx, &d)
			return d, nil
		}
	}
	return store.Dispatcher{}, errContended
}

// settleFor is how long a change of the settings waits at most until it is carried out.
const settleFor = 2 * time.Second

// settle waits until the leader goes by the settings and has called back what is paused: at once if it leads itself; another leader reads
// the settings every followEvery, and that much time, and a little, passes.
func (c *Controller) settle(ctx context.Context, d *store.Dispatcher) {
	l := c.leading()
	if l != nil {
		l.use(*d)
	}
	if !d.Paused && len(d.PausedClasses)+len(d.PausedNamespaces) == 0 {
		return
	}
	if l == nil {
		loop.Sleep(ctx, c.runner.Driver, settleFor)
		return
	}
	end := c.deps.Clock.Boot() + settleFor
	for c.deps.Clock.Boot() < end && len(l.dispatcher.Recallable()) > 0 && loop.Sleep(ctx, c.runner.Driver, settleStep) {
		l.term.Recall()
	}
}

// settleStep is the time between two looks at whether a change is carried out.
const settleStep = 20 * time.Millisecond

// SetDraining stores that a node is to be drained, or not any more. The leader follows: at once if it is this process, else with its next round.
func (s *steering) SetDraining(ctx context.Context, node string, draining bool) error {
	c := (*Controller)(s)
	if err := c.deps.Store.SetDraining(ctx, node, draining); err != nil {
		return fmt.Errorf("store that a node is drained: %w", err)
	}
	c.terms.DrainsStored()
	return nil
}

// StoreName is what people call a store, in answers that say that it is missing.
func StoreName(s config.StoreKind) string {
	if s == config.StoreMongo || s == "" {
		return "mongodb"
	}
	return string(s)
}

// readyTimeout bounds each question of a readiness check.
const readyTimeout = 2 * time.Second

// notReady asks what this controller stands on.
func (c *Controller) notReady(ctx context.Context) []client.NotReady {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	parts := []struct {
		name string
		ask  func(context.Context) error
	}{
		{StoreName(c.cfg.Store), c.deps.Store.Ping},
		{"redis", c.deps.Registry.Ping},
		{"kafka", c.deps.Bus.Ping},
		{"topics", func(context.Context) error { return c.topics.Err() }},
	}
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for i, p := range parts {
		wg.Go(func() { errs[i] = p.ask(ctx) })
	}
	wg.Wait()
	var missing []client.NotReady
	for i, err := range errs {
		if err != nil {
			missing = append(missing, client.NotReady{Name: parts[i].name, Reason: err.Error()})
		}
	}
	return missing
}
