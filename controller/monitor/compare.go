package monitor

import (
	"context"
	"fmt"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// compare brings the leader's picture up to date with the store.
func (m *Monitor) compare(ctx context.Context) error {
	now := m.clock.Boot()
	if m.compared && now-m.comparedAt < m.cfg.Compare {
		return nil
	}
	m.fleet.BeginCompare()
	var held []fleet.Held
	var desired []task.Task
	var outdated []string
	err := m.store.Active(ctx, func(t *task.Task) error {
		if t.Desired != "" {
			desired = append(desired, *t)
		}
		if h, ok := fleet.HeldBy(t); ok {
			held = append(held, h)
			if !m.fleet.HasAttachments(h.ID, t.AttachmentsVersion) {
				outdated = append(outdated, t.ID)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the tasks that nodes hold: %w", err)
	}
	m.fleet.EndCompare(held)
	m.comparedAt, m.compared = m.clock.Boot(), true
	m.attachments.add(outdated)
	if len(desired) < store.MaxBatch {
		return nil // Desired reads them all
	}
	return m.applyDesired(ctx, desired)
}
