package monitor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

const (
	// listEvery is the time between two comparisons with nodes' task lists, maxLists how many nodes one of them takes.
	listEvery = time.Second
	maxLists  = 50
	// maxOrphans bounds how many orphans of one node a comparison looks at.
	maxOrphans = 100
)

// taskLists are the task lists of some nodes. They are compared when ingest has taken in what the nodes said before.
type taskLists struct {
	nodes   []registry.Node
	barrier *barrier
}

// compareTaskLists compares what nodes hold with what they were sent. What is missing is released; orphans, which
// nobody asked for, are cancelled. It is the last safety net: reports are repeated until they are acknowledged, and
// claims until they are reported.
func (m *Monitor) compareTaskLists(ctx context.Context) error {
	if m.taskLists == nil {
		if now := m.clock.Boot(); now-m.listedAt >= listEvery {
			m.listedAt = now
			return m.readTaskLists(ctx)
		}
		return nil
	}
	if reached, err := m.barriers.reached(ctx, m.taskLists.barrier); err != nil || !reached {
		return err
	}
	nodes := m.taskLists.nodes
	m.taskLists = nil
	return each(ctx, nodes, func(n registry.Node) error {
		if err := m.releaseMissing(ctx, &n); err != nil {
			return err
		}
		return m.cancelOrphans(ctx, &n)
	})
}

// readTaskLists reads the lists of the next nodes, and then takes the ends of task.status.
func (m *Monitor) readTaskLists(ctx context.Context) error {
	maps.DeleteFunc(m.orphans, func(k fleet.Key, _ []string) bool { _, there := m.fleet.Target(k); return !there })
	var nodes []registry.Node
	failure := each(ctx, m.fleet.ToCompare(maxLists), func(k fleet.Key) error {
		n, found, err := m.registry.Node(ctx, k.Node)
		switch {
		case errors.Is(err, registry.ErrIncomplete):
			// That a task is not in it means nothing.
		case err != nil:
			return fmt.Errorf("read the tasks of node %s: %w", k.Node, err)
		case found && n.Incarnation == k.Incarnation:
			nodes = append(nodes, n)
		}
		return nil
	})
	if len(nodes) == 0 {
		return failure
	}
	b, err := m.barriers.next(ctx)
	if err != nil {
		return errors.Join(failure, fmt.Errorf("compare the tasks of %d nodes: %w", len(nodes), err))
	}
	m.taskLists = &taskLists{nodes, b}
	return failure
}

// releaseMissing takes back what a node was sent and does not hold any more.
func (m *Monitor) releaseMissing(ctx context.Context, n *registry.Node) error {
	for page := range slices.Chunk(m.fleet.Missing(n, m.lease.Term()), store.MaxBatch) {
		if err := m.takeBack(ctx, page, task.LossForgotten); err != nil {
			return fmt.Errorf("release what node %s does not hold any more: %w", n.ID, err)
		}
		m.log.Warn("a node does not hold tasks any more whose end was never reported; they wait again",
			"node", n.ID, "tasks", len(page))
		m.capacity()
	}
	return nil
}

// cancelOrphans cancels what a node holds although the store shows another claim of that task, or its end. What has
// just begun or ended looks the same for a moment, so only what was an orphan in the list before, too, is cancelled.
func (m *Monitor) cancelOrphans(ctx context.Context, n *registry.Node) error {
	k := fleet.Key{Node: n.ID, Incarnation: n.Incarnation}
	orphans := m.fleet.Orphans(n)
	orphans = orphans[:min(len(orphans), maxOrphans)]
	before := m.orphans[k]
	delete(m.orphans, k)
	var repeated []fleet.Claim
	for _, t := range orphans {
		m.orphans[k] = append(m.orphans[k], t.ClaimID)
		if slices.Contains(before, t.ClaimID) {
			repeated = append(repeated, fleet.Claim{Key: k, TaskID: t.ID, Attempt: t.Attempt, ID: t.ClaimID})
		}
	}
	to, there := m.fleet.Target(k)
	if len(repeated) == 0 || !there {
		return nil
	}
	tasks, err := m.tasksOf(ctx, repeated)
	if err != nil {
		return fmt.Errorf("look up what node %s runs: %w", n.ID, err)
	}
	var cancels commands
	count := 0
	for _, c := range repeated {
		if t, ok := tasks[c.TaskID]; !ok || t.ClaimID != c.ID || !t.Held() {
			cancels.add(to, events.Command{Kind: events.CommandCancel, ID: c.TaskID, Attempt: c.Attempt, ClaimID: c.ID})
			count++
		}
	}
	if count == 0 || !m.lease.Valid() {
		return nil
	}
	m.log.Warn("a node holds tasks that nobody asked it for; they are cancelled there", "node", n.ID, "tasks", count)
	if err := m.commander.send(ctx, cancels); err != nil {
		return fmt.Errorf("cancel what node %s was not asked for: %w", n.ID, err)
	}
	return nil
}
