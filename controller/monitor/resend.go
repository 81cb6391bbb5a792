package monitor

import (
	"context"
	"fmt"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/transport"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// resend sends claims again that their nodes have not reported in time.
func (m *Monitor) resend(ctx context.Context) error {
	due := m.fleet.Due(m.clock.Boot(), m.cfg.ResendAfter, store.MaxBatch)
	if len(due) == 0 {
		m.resendBarrier = nil
		return nil
	}
	if m.resendBarrier == nil {
		b, err := m.barriers.next(ctx)
		if err != nil {
			return fmt.Errorf("resend %d claims: %w", len(due), err)
		}
		m.resendBarrier = b
	}
	if reached, err := m.barriers.reached(ctx, m.resendBarrier); err != nil || !reached {
		return err
	}
	m.resendBarrier = nil
	due = m.fleet.Due(m.clock.Boot(), m.cfg.ResendAfter, store.MaxBatch) // some may have been reported meanwhile
	batches, err := m.resendable(ctx, due)
	if err != nil || len(batches) == 0 || !m.lease.Valid() {
		return err
	}
	for i, r := range m.transport.Assign(ctx, m.lease.Term(), batches) {
		b := &batches[i]
		if r.Err != nil {
			return fmt.Errorf("resend %d claims to node %s: %w", len(b.Tasks), b.To.Node, r.Err)
		}
		resent := make([]string, 0, len(b.Tasks))
		for j := range b.Tasks {
			t := &b.Tasks[j]
			// Its node has such a claim from a leader that could send it, or the task waits again when the node is
			// gone.
			if reason, never := r.Never[j]; never {
				m.log.Warn("a claim that was not reported cannot be resent", "task", t.ID, "node", t.Executor, "error", reason)
				continue
			}
			resent = append(resent, t.ClaimID)
		}
		m.fleet.Resent(resent)
		m.log.Info("resent claims that were not reported", "node", b.To.Node, "tasks", len(resent))
	}
	return nil
}

// resendable returns the due claims that must be resent, by node. It drops the claims that are over, and notes that the
// others were looked at.
func (m *Monitor) resendable(ctx context.Context, due []fleet.Claim) ([]transport.Batch, error) {
	tasks, err := m.tasksOf(ctx, due)
	if err != nil {
		return nil, err
	}
	adopted, err := m.adopt(ctx, due, tasks)
	if err != nil {
		return nil, err
	}
	var batches []transport.Batch
	var present, over []string
	at := make(map[fleet.Key]int)
	for _, c := range due {
		t, ok := tasks[c.TaskID]
		if !ok || !holds(t, c) {
			over = append(over, c.ID)
			continue
		}
		present = append(present, c.ID)
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
		m.capacity()
	}
	m.fleet.Sent(present, m.clock.Boot())
	return batches, nil
}
