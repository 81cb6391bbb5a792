package backend

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/loop"
	"github.com/skalds-go/skalds/pkg/store"
)

// SetStrategy stores the strategy. The leader follows, at once if it is this process.
func (b *Backend) SetStrategy(ctx context.Context, strategy string) error {
	_, err := b.Change(ctx, func(d *store.Dispatcher) error { d.Strategy = strategy; return nil })
	return err
}

// Settings returns what was changed at run time.
func (b *Backend) Settings(ctx context.Context) (store.Dispatcher, error) {
	return b.deps.Store.Dispatcher(ctx)
}

// InUse returns how many tasks of each of these pools are on nodes.
func (b *Backend) InUse(ctx context.Context, pools []string) (map[string]int, error) {
	return ask(ctx, b, func(_ context.Context, l *Leadership) (map[string]int, error) {
		inUse := make(map[string]int, len(pools))
		for _, name := range pools {
			inUse[name] = l.Fleet.PoolCount(name)
		}
		return inUse, nil
	}, func(peer *client.Client, ctx context.Context) (map[string]int, error) {
		list, err := peer.Pools(ctx)
		inUse := make(map[string]int, len(list))
		for _, p := range list {
			if p.InUse != nil {
				inUse[p.Name] = *p.InUse
			}
		}
		return inUse, err
	})
}

// changeTries is how often a change of the settings is tried while others change them, too.
const changeTries = 10

var errContended = errors.New("others change the settings all the time: try again")

// Change changes the dispatcher's settings and returns what they are then. It returns when nothing that is paused by
// then begins any more.
func (b *Backend) Change(ctx context.Context, set func(*store.Dispatcher) error) (store.Dispatcher, error) {
	for range changeTries {
		d, err := b.deps.Store.Dispatcher(ctx)
		if err != nil {
			return d, fmt.Errorf("read the settings: %w", err)
		}
		d = d.Clone()
		if err := set(&d); err != nil {
			return d, err
		}
		ok, err := b.deps.Store.SwapDispatcher(ctx, d)
		if err != nil {
			return d, fmt.Errorf("write the settings: %w", err)
		}
		if ok {
			d.Version++
			b.carryOut(ctx, &d)
			return d, nil
		}
	}
	return store.Dispatcher{}, errContended
}

const (
	// carryOutTimeout is how long a change of the settings waits at most until it is carried out.
	carryOutTimeout = 2 * time.Second
	// carryOutStep is the time between two looks at whether it is.
	carryOutStep = 20 * time.Millisecond
)

// carryOut waits until the leader goes by the settings and has recalled what is paused. Another leader reads the
// settings at least twice a second, and gets the full time.
func (b *Backend) carryOut(ctx context.Context, d *store.Dispatcher) {
	l := b.deps.Leading()
	if l != nil {
		l.Term.Use(*d)
	}
	if !d.Paused && len(d.PausedClasses)+len(d.PausedNamespaces) == 0 {
		return
	}
	if l == nil {
		loop.Sleep(ctx, b.driver, carryOutTimeout)
		return
	}
	end := b.deps.Clock.Boot() + carryOutTimeout
	for b.deps.Clock.Boot() < end && len(l.Dispatcher.Recallable()) > 0 && loop.Sleep(ctx, b.driver, carryOutStep) {
		l.Term.Recall()
	}
}

// SetDraining stores that a node must drain, or no longer. If this process leads, it follows before SetDraining
// returns; another leader follows with its next round.
func (b *Backend) SetDraining(ctx context.Context, node string, draining bool) error {
	if err := b.deps.Store.SetDraining(ctx, node, draining); err != nil {
		return fmt.Errorf("store that a node is drained: %w", err)
	}
	if err := b.deps.DrainsStored(ctx); err != nil {
		return fmt.Errorf("the drain is stored, but not yet followed: %w", err)
	}
	return nil
}
