package monitor

import (
	"context"
	"fmt"

	"github.com/skalds-go/skalds/controller/transport"
)

// FollowDraining reads which nodes people drain. When it returns, the fleet shows them and nothing more is placed
// there. It is safe for concurrent use.
func (m *Monitor) FollowDraining(ctx context.Context) error {
	m.draining.Lock() // or an older answer could come last
	defer m.draining.Unlock()
	nodes, err := m.store.Draining(ctx)
	if err != nil {
		return fmt.Errorf("read which nodes drain: %w", err)
	}
	if m.fleet.SetDraining(nodes) {
		m.capacity()
	}
	return nil
}

// drain tells nodes to drain, or not to drain any more, until their heartbeats say so.
func (m *Monitor) drain(ctx context.Context) error {
	if err := m.FollowDraining(ctx); err != nil {
		return err
	}
	var list []transport.Commands
	for _, d := range m.fleet.Drains() {
		list = append(list, transport.Commands{To: d.To, Drain: &d.Drain})
	}
	if err := m.commander.send(ctx, commands{list: list}); err != nil {
		return fmt.Errorf("tell %d nodes to drain, or not to: %w", len(list), err)
	}
	return nil
}
