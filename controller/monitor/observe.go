package monitor

import (
	"context"
	"errors"
	"fmt"

	"github.com/skalds-go/skalds/controller/fleet"
)

// observe reads all nodes and reassigns the work of those that are lost.
func (m *Monitor) observe(ctx context.Context) error {
	began := m.clock.Boot()
	snap, err := m.registry.Snapshot(ctx)
	if err != nil {
		m.fleet.RegistryFailed()
		return fmt.Errorf("read the nodes: %w", err)
	}
	available, lost := m.fleet.Observe(snap, began, m.clock.Boot())
	if available {
		m.capacity()
	}
	return errors.Join(m.evictZombies(ctx), m.awaitIngest(ctx, lost), m.reassignLost(ctx, lost))
}

// evictZombies evicts the nodes that send heartbeats although their work was reassigned: no fence has reached them.
// They stop and register as new incarnations.
func (m *Monitor) evictZombies(ctx context.Context) error {
	return each(ctx, m.fleet.Zombies(), func(k fleet.Key) error {
		if !m.lease.Valid() {
			return nil
		}
		if err := m.evict(ctx, k, "whose work was reassigned"); err != nil {
			return err
		}
		m.log.Warn("a node sends heartbeats although its work was reassigned; it was evicted", "node", k.Node,
			"incarnation", k.Incarnation)
		return nil
	})
}

// evict puts an incarnation out of the registry: its heartbeats are refused, and it is not confirmed any more.
func (m *Monitor) evict(ctx context.Context, k fleet.Key, which string) error {
	if err := m.registry.Evict(ctx, k.Node, k.Incarnation); err != nil {
		return fmt.Errorf("evict node %s, %s: %w", k.Node, which, err)
	}
	m.fleet.Evicted(k)
	return nil
}
