package monitor

import (
	"context"
	"fmt"

	"github.com/skalds-go/skalds/controller/transport"
)

// drains takes in which nodes people want drained: nothing is placed there from now on.
func (m *Monitor) drains(ctx context.Context) error {
	nodes, err := m.store.Draining(ctx)
	if err != nil {
		return fmt.Errorf("read which nodes are drained: %w", err)
	}
	if m.fleet.SetDraining(nodes) {
		m.room()
	}
	return nil
}

// drain passes on which nodes are to drain, and which are not any more, until their heartbeats say so.
func (m *Monitor) drain(ctx context.Context) error {
	if err := m.drains(ctx); err != nil {
		return err
	}
	var list []transport.Commands
	for _, d := range m.fleet.Drains() {
		list = append(list, transport.Commands{To: d.To, Drain: &d.Drain})
	}
	if err := m.order(ctx, orders{list: list}); err != nil {
		return fmt.Errorf("tell %d nodes to drain, or not to: %w", len(list), err)
	}
	return nil
}
