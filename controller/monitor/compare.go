package monitor

import (
	"context"
	"fmt"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// compare brings the picture up to date with the store.
func (m *Monitor) compare(ctx context.Context) error {
	now := m.clock.Boot()
	if m.started && now-m.compared < m.cfg.Compare {
		return nil
	}
	m.fleet.BeginCompare()
	var held []fleet.Held
	var wishes []task.Task
	var outdated []string
	err := m.store.Active(ctx, func(t *task.Task) error {
		if t.Desired != "" {
			wishes = append(wishes, *t)
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
	m.compared, m.started = m.clock.Boot(), true
	m.Updated(outdated)
	if len(wishes) < store.MaxBatch {
		return nil // a page shows them all
	}
	return m.carryOut(ctx, wishes)
}
