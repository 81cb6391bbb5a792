package monitor

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// awaitIngest sets what ingest must reach before the work of newly lost nodes is reassigned, and forgets the nodes that
// live after all. Nodes that fell silent are fenced first, so that one that still hears stops at once.
func (m *Monitor) awaitIngest(ctx context.Context, lost []fleet.Lost) error {
	still := make(map[fleet.Key]bool, len(lost))
	var newly []fleet.Lost
	for _, l := range lost {
		still[l.Key] = true
		if _, waits := m.lostBarriers[l.Key]; !waits {
			newly = append(newly, l)
		}
	}
	maps.DeleteFunc(m.lostBarriers, func(k fleet.Key, _ *barrier) bool { return !still[k] })
	if len(newly) == 0 {
		return nil
	}
	m.fence(ctx, newly)
	b, err := m.barriers.next(ctx)
	if err != nil {
		return fmt.Errorf("reassign the work of %d nodes: %w", len(newly), err)
	}
	for _, l := range newly {
		m.lostBarriers[l.Key] = b
	}
	return nil
}

// fenceTimeout bounds the sending of fences. They are not needed for safety: a node that they do not reach has stopped
// by its own clock.
const fenceTimeout = 500 * time.Millisecond

// fence tells nodes that fell silent to stop.
func (m *Monitor) fence(ctx context.Context, lost []fleet.Lost) {
	var list []fleet.Target
	for _, l := range lost {
		if to, ok := m.fleet.Target(l.Key); ok && l.Loss == task.LossSilent {
			list = append(list, to)
		}
	}
	if len(list) == 0 || !m.lease.Valid() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, fenceTimeout)
	defer cancel()
	if err := m.transport.Fence(ctx, m.lease.Term(), list); err != nil {
		m.log.Debug("nodes were not fenced; they have stopped by their own clocks", "nodes", len(list), "error", err)
	}
}

// reassignLost reassigns the work of those lost nodes whose reports ingest has taken in.
func (m *Monitor) reassignLost(ctx context.Context, lost []fleet.Lost) error {
	return each(ctx, lost, func(l fleet.Lost) error {
		b, waits := m.lostBarriers[l.Key]
		if !waits {
			return nil
		}
		if reached, err := m.barriers.reached(ctx, b); err != nil || !reached {
			return err
		}
		return m.reassign(ctx, l)
	})
}

// reassign takes back the tasks of a lost node and frees its id.
func (m *Monitor) reassign(ctx context.Context, l fleet.Lost) error {
	k := l.Key
	claims := m.fleet.Reassign(k, m.clock.Boot())
	for len(claims) > 0 {
		n := min(len(claims), store.MaxBatch)
		if err := m.takeBack(ctx, claims[:n], l.Loss); err != nil {
			return fmt.Errorf("reassign the work of node %s: %w", k.Node, err)
		}
		m.log.Warn("a node is gone; its tasks wait again", "node", k.Node, "incarnation", k.Incarnation, "tasks", n)
		claims = claims[n:]
		m.capacity()
	}
	// This frees the id for the node's successor. If it fails, the key expires by itself.
	if err := m.registry.Leave(ctx, k.Node, k.Incarnation); err != nil {
		m.log.Debug("the keys of a node that is gone were not removed", "node", k.Node, "error", err)
	}
	delete(m.lostBarriers, k)
	return nil
}

// takeBack takes claims back, each as the store has it now.
func (m *Monitor) takeBack(ctx context.Context, claims []fleet.Claim, loss task.Loss) error {
	tasks, err := m.tasksOf(ctx, claims)
	if err != nil {
		return err
	}
	now := m.clock.Now().UnixMilli()
	var changes []task.Change
	var again, ended []string
	for _, c := range claims {
		t, found := tasks[c.TaskID]
		over := !found || t.LifecycleStatus.Terminal()
		if found && holds(t, c) {
			if change, ok := task.Lose(t, loss, m.cfg.Policy, now); ok {
				changes = append(changes, change)
				over = change.To.Terminal()
			}
		}
		if over {
			ended = append(ended, c.ID)
		} else {
			again = append(again, c.ID)
		}
	}
	if !m.lease.Valid() {
		return nil
	}
	n, err := m.store.Apply(ctx, changes)
	if err != nil {
		return fmt.Errorf("take %d tasks back: %w", len(changes), err)
	}
	if n == len(changes) {
		m.fleet.TakenBack(again, ended)
	} // else some changed meanwhile: the next round looks at them again
	return nil
}
