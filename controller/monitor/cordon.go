package monitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/pkg/registry"
)

// maxUnresponsive bounds how many unresponsive nodes one round looks at.
const maxUnresponsive = 20

// cordonUnresponsive cordons nodes that send heartbeats but start nothing of what they are sent, so that they do not
// draw all tasks. A node whose task list shows that something it was sent has arrived is only busy.
//
// What such a node was sent may still arrive there, so it cannot be taken back while the node is confirmed. A node that
// runs nothing is evicted: it is not confirmed any more, and its claims are reassigned by the same rule as those of any
// other. A node that runs something keeps that, and with it what it was sent. See docs/adr/0007.
func (m *Monitor) cordonUnresponsive(ctx context.Context) error {
	unresponsive := m.fleet.Unresponsive(m.clock.Boot(), m.cfg.ResendAfter, maxUnresponsive)
	return each(ctx, unresponsive, func(k fleet.Key) error { return m.cordon(ctx, k) })
}

func (m *Monitor) cordon(ctx context.Context, k fleet.Key) error {
	n, found, err := m.registry.Node(ctx, k.Node)
	switch {
	case errors.Is(err, registry.ErrIncomplete):
		return nil // it is not known what has arrived
	case err != nil:
		return fmt.Errorf("read the tasks of node %s, which reports none of them: %w", k.Node, err)
	case !found || n.Incarnation != k.Incarnation || !m.lease.Valid():
		return nil
	}
	arrived := make(map[string]bool, len(n.Tasks))
	idle := true
	for _, t := range n.Tasks {
		arrived[t.ClaimID] = true
		idle = idle && t.State.Final()
	}
	unanswered, begun := m.fleet.Unanswered(k)
	for _, c := range unanswered {
		if arrived[c.ID] {
			m.fleet.Responded(k)
			return nil
		}
	}
	reason := fmt.Sprintf("it sends heartbeats, but the %d tasks that were sent to it, some more than once, have not arrived there",
		len(unanswered))
	wait := m.fleet.Cordon(k, reason, m.clock.Boot())
	m.log.Warn("a node is cordoned", "node", k.Node, "incarnation", k.Incarnation, "reason", reason,
		"for", wait.Round(time.Second))
	if !idle || begun > 0 {
		return nil
	}
	return m.evict(ctx, k, "which takes no tasks")
}
