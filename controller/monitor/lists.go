package monitor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/transport"
	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

const (
	// listEvery is the time between two comparisons with nodes' lists, and maxLists how many nodes one of them takes.
	listEvery = time.Second
	maxLists  = 50
	// maxStrays bounds the runs of one node that nobody asked for and that are looked at in one comparison.
	maxStrays = 100
)

// lists are the lists of some nodes, to be compared when ingest has taken in what they said before.
type lists struct {
	nodes   []registry.Node
	barrier *barrier
}

// compareLists compares what nodes hold with what they were sent: what is missing is released, what nobody asked for is cancelled. It is
// the net below all others: reports are repeated until they are settled, and claims until they are reported.
func (m *Monitor) compareLists(ctx context.Context) error {
	if m.lists == nil {
		if now := m.clock.Boot(); now-m.listed >= listEvery {
			m.listed = now
			return m.readLists(ctx)
		}
		return nil
	}
	if there, err := m.reached(ctx, m.lists.barrier); err != nil || !there {
		return err
	}
	nodes := m.lists.nodes
	m.lists = nil
	var failure error
	for i := range nodes {
		if err := m.compareList(ctx, &nodes[i]); err != nil {
			failure = err
			if ctx.Err() != nil {
				break
			}
		}
	}
	return failure
}

// readLists reads the lists of the next nodes, and then takes the ends of task.status.
func (m *Monitor) readLists(ctx context.Context) error {
	maps.DeleteFunc(m.strays, func(k fleet.Key, _ []string) bool { _, there := m.fleet.Target(k); return !there })
	var nodes []registry.Node
	var failure error
	for _, k := range m.fleet.ToCompare(maxLists) {
		n, found, err := m.registry.Node(ctx, k.Node)
		if errors.Is(err, registry.ErrIncomplete) {
			continue // that a task is not in it means nothing
		}
		if err != nil {
			failure = fmt.Errorf("read the tasks of node %s: %w", k.Node, err)
			if ctx.Err() != nil || errors.Is(err, registry.ErrUnavailable) {
				return failure
			}
			continue // this list cannot be read, which says nothing of the others
		}
		if found && n.Incarnation == k.Incarnation {
			nodes = append(nodes, n)
		}
	}
	if len(nodes) == 0 {
		return failure
	}
	b, err := m.barrier(ctx)
	if err != nil {
		return errors.Join(failure, fmt.Errorf("compare the tasks of %d nodes: %w", len(nodes), err))
	}
	m.lists = &lists{nodes, b}
	return failure
}

// compareList compares one node's list.
func (m *Monitor) compareList(ctx context.Context, n *registry.Node) error {
	missing := m.fleet.Missing(n, m.lease.Term())
	for page := range slices.Chunk(missing, store.MaxBatch) {
		if err := m.lose(ctx, page, task.LossForgotten); err != nil {
			return fmt.Errorf("release what node %s does not hold any more: %w", n.ID, err)
		}
		m.log.Warn("a node does not hold tasks any more whose end was never reported; they wait again", "node", n.ID, "tasks", len(page))
		m.room()
	}
	return m.cancelStrays(ctx, n)
}

// cancelStrays ends what a node holds though the store shows another claim of that task, or its end. What has just begun or ended looks the
// same for a moment: only what was so in the list before, too, is cancelled.
func (m *Monitor) cancelStrays(ctx context.Context, n *registry.Node) error {
	k := fleet.Key{Node: n.ID, Incarnation: n.Incarnation}
	unknown := m.fleet.Orphans(n)
	unknown = unknown[:min(len(unknown), maxStrays)]
	before := m.strays[k]
	delete(m.strays, k)
	var again []fleet.Claim
	for _, t := range unknown {
		m.strays[k] = append(m.strays[k], t.ClaimID)
		if slices.Contains(before, t.ClaimID) {
			again = append(again, fleet.Claim{Key: k, TaskID: t.ID, Attempt: t.Attempt, ID: t.ClaimID})
		}
	}
	to, there := m.fleet.Target(k)
	if len(again) == 0 || !there {
		return nil
	}
	tasks, err := m.read(ctx, again)
	if err != nil {
		return fmt.Errorf("look for what node %s runs: %w", n.ID, err)
	}
	var commands []events.Command
	for _, c := range again {
		if t, ok := tasks[c.TaskID]; !ok || t.ClaimID != c.ID || !t.Held() {
			commands = append(commands, events.Command{Kind: events.CommandCancel, ID: c.TaskID, Attempt: c.Attempt, ClaimID: c.ID})
		}
	}
	if len(commands) == 0 || !m.lease.Valid() {
		return nil
	}
	m.log.Warn("a node holds tasks that nobody asked it for; they are cancelled there", "node", n.ID, "tasks", len(commands))
	if err := m.transport.Control(ctx, m.lease.Term(), []transport.Commands{{To: to, Commands: commands}}); err != nil {
		return fmt.Errorf("cancel what node %s was not asked for: %w", n.ID, err)
	}
	return nil
}
