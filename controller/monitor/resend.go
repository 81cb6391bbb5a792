package monitor

import (
	"context"
	"fmt"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/transport"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// again sends claims again of which no node has said anything in time.
func (m *Monitor) again(ctx context.Context) error {
	due := m.fleet.Due(m.clock.Boot(), m.cfg.ResendAfter, store.MaxBatch)
	if len(due) == 0 {
		m.resend = nil
		return nil
	}
	if m.resend == nil {
		b, err := m.barrier(ctx)
		if err != nil {
			return fmt.Errorf("send %d claims again: %w", len(due), err)
		}
		m.resend = b
	}
	if there, err := m.reached(ctx, m.resend); err != nil || !there {
		return err
	}
	m.resend = nil
	due = m.fleet.Due(m.clock.Boot(), m.cfg.ResendAfter, store.MaxBatch) // some may have been reported meanwhile
	tasks, err := m.read(ctx, due)
	if err != nil {
		return err
	}
	adopted, err := m.adopt(ctx, due, tasks)
	if err != nil {
		return err
	}
	var batches []transport.Batch
	var touched, over []string
	at := make(map[fleet.Key]int)
	for _, c := range due {
		t, ok := tasks[c.TaskID]
		if !ok || !holds(t, c) {
			over = append(over, c.ID)
			continue
		}
		touched = append(touched, c.ID)
		to, there := m.fleet.Target(c.Key)
		if t.LifecycleStatus != task.Assigning || !there || c.Foreign && !adopted[c.ID] {
			continue
		}
		i, ok := at[c.Key]
		if !ok {
			i = len(batches)
			at[c.Key] = i
			batches = append(batches, transport.Batch{To: to})
		}
		batches[i].Tasks = append(batches[i].Tasks, *t)
	}
	m.fleet.Drop(over)
	if len(over) > 0 {
		m.room()
	}
	m.fleet.Sent(touched, m.clock.Boot())
	if len(batches) == 0 || !m.lease.Valid() {
		return nil
	}
	for i, r := range m.transport.Assign(ctx, m.lease.Term(), batches) {
		if r.Err != nil {
			return fmt.Errorf("send %d claims again to node %s: %w", len(batches[i].Tasks), batches[i].To.Node, r.Err)
		}
		ids := make([]string, 0, len(batches[i].Tasks))
		for j := range batches[i].Tasks {
			t := &batches[i].Tasks[j]
			if why, never := r.Never[j]; never { // its node has it from a leader that could send it, or it waits again when the node is gone
				m.log.Warn("a claim that was not reported cannot be sent again", "task", t.ID, "node", t.Executor, "error", why)
				continue
			}
			ids = append(ids, t.ClaimID)
		}
		m.fleet.Resent(ids)
		m.log.Info("sent claims again that were not reported", "node", batches[i].To.Node, "tasks", len(ids))
	}
	return nil
}
