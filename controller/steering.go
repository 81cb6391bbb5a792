package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/skalds-go/skalds/controller/api"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/config"
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
		Strategy:   string(c.strategy(set)),
		Leader:     client.Leader{Holder: doc.Holder, Address: doc.Address, Term: doc.Term},
		IntervalMs: c.cfg.DispatcherInterval.Milliseconds(),
		Timing: client.Timing{
			HeartbeatIntervalMs: c.cfg.HeartbeatInterval.Milliseconds(), LostAfterMs: c.cfg.LostAfter.Milliseconds(),
			StopMarginMs: c.cfg.StopMargin.Milliseconds(), LeaderLeaseMs: c.cfg.LeaderLease.Milliseconds(),
		},
	}
	l := c.leading()
	if l == nil {
		return status, nil
	}
	did := l.dispatcher.Status()
	status.IsLeader = true
	status.Rounds, status.Placed, status.LastRoundAt = did.Rounds, did.Placed, did.LastRoundAt
	status.Nodes, _ = l.fleet.Size()
	status.Waiting = make(map[string]int, len(did.Waiting))
	for reason, n := range did.Waiting {
		status.Waiting[string(reason)] = n
	}
	return status, nil
}

// setAside says why a node takes no new work, if this controller leads and has set it aside.
func (c *Controller) setAside(node string) *client.SetAside {
	l := c.leading()
	if l == nil {
		return nil
	}
	boot, now := c.deps.Clock.Boot(), c.deps.Clock.Now()
	a, ok := l.fleet.IsAside(node, boot)
	if !ok {
		return nil
	}
	return &client.SetAside{Reason: a.Reason, Since: now.Add(a.Since - boot).UnixMilli(), Until: now.Add(a.Until - boot).UnixMilli()}
}

// SetStrategy stores the strategy. The leader follows, at once if it is this process.
func (s *steering) SetStrategy(ctx context.Context, strategy string) error {
	c := (*Controller)(s)
	d, err := c.change(ctx, func(d *store.Dispatcher) { d.Strategy = strategy })
	if err != nil {
		return fmt.Errorf("store the strategy: %w", err)
	}
	if l := c.leading(); l != nil {
		l.dispatcher.SetStrategy(c.strategy(d))
	}
	return nil
}

// changeTries is how often a change of the settings is tried while others change them, too.
const changeTries = 10

var errContended = errors.New("others change the settings all the time: try again")

// change changes the dispatcher's settings, and gives what they are then.
func (c *Controller) change(ctx context.Context, set func(*store.Dispatcher)) (store.Dispatcher, error) {
	for range changeTries {
		d, err := c.deps.Store.Dispatcher(ctx)
		if err != nil {
			return d, fmt.Errorf("read the settings: %w", err)
		}
		set(&d)
		ok, err := c.deps.Store.SwapDispatcher(ctx, d)
		if err != nil {
			return d, fmt.Errorf("write the settings: %w", err)
		}
		if ok {
			d.Version++
			return d, nil
		}
	}
	return store.Dispatcher{}, errContended
}

// SetDraining stores that a node is to be drained, or not any more. The leader follows: at once if it is this process, else with its next round.
func (s *steering) SetDraining(ctx context.Context, node string, draining bool) error {
	c := (*Controller)(s)
	if err := c.deps.Store.SetDraining(ctx, node, draining); err != nil {
		return fmt.Errorf("store that a node is drained: %w", err)
	}
	c.nodes.Signal()
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
	c.mu.Lock()
	topics := c.topics
	c.mu.Unlock()
	parts := []struct {
		name string
		ask  func(context.Context) error
	}{
		{StoreName(c.cfg.Store), c.deps.Store.Ping},
		{"redis", c.deps.Registry.Ping},
		{"kafka", c.deps.Bus.Ping},
		{"topics", func(context.Context) error { return topics }},
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
