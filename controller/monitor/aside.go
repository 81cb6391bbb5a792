package monitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/pkg/registry"
)

// maxMute bounds how many mute nodes one round looks at.
const maxMute = 20

// aside sets nodes aside that beat, but start nothing of what they are sent, so that they do not draw all tasks. Their list of tasks says
// whether what they were sent has arrived: then they are busy, not mute.
//
// What such a node was sent may still arrive there, so that it cannot be taken back while the node is confirmed. One that runs nothing is put
// out of the registry: nothing confirms it any more, and its claims are given away by the same rule as those of any other. One that runs
// something keeps that, and what it was sent with it. See docs/adr/0007.
func (m *Monitor) aside(ctx context.Context) error {
	var failure error
	for _, k := range m.fleet.Unresponsive(m.clock.Boot(), m.cfg.ResendAfter, maxMute) {
		if err := m.setAside(ctx, k); err != nil {
			failure = err
		}
	}
	return failure
}

func (m *Monitor) setAside(ctx context.Context, k fleet.Key) error {
	n, found, err := m.registry.Node(ctx, k.Node)
	switch {
	case errors.Is(err, registry.ErrIncomplete):
		return nil // nothing is known of what has arrived
	case err != nil:
		return fmt.Errorf("read the tasks of node %s, which reports none of them: %w", k.Node, err)
	case !found || n.Incarnation != k.Incarnation || !m.lease.Valid():
		return nil
	}
	held := make(map[string]bool, len(n.Tasks))
	idle := true
	for _, t := range n.Tasks {
		held[t.ClaimID] = true
		idle = idle && t.State.Final()
	}
	unanswered, begun := m.fleet.Unanswered(k)
	for _, c := range unanswered {
		if held[c.ID] {
			m.fleet.Responded(k)
			return nil
		}
	}
	reason := fmt.Sprintf("it beats, but the %d tasks that were sent to it, some more than once, have not arrived there", len(unanswered))
	wait := m.fleet.Cordon(k, reason, m.clock.Boot())
	m.log.Warn("a node is set aside", "node", k.Node, "incarnation", k.Incarnation, "reason", reason, "for", wait.Round(time.Second))
	if !idle || begun > 0 {
		return nil
	}
	return m.evict(ctx, k, "which takes no tasks")
}

// evict puts an incarnation out of the registry: its heartbeats are refused, and it is confirmed no more.
func (m *Monitor) evict(ctx context.Context, k fleet.Key, what string) error {
	if err := m.registry.Evict(ctx, k.Node, k.Incarnation); err != nil {
		return fmt.Errorf("put out node %s, %s: %w", k.Node, what, err)
	}
	m.fleet.Evicted(k)
	return nil
}
