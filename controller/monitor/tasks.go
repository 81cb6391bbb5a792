package monitor

import (
	"context"
	"fmt"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/pkg/task"
)

// holds reports whether c is the task's present claim.
func holds(t *task.Task, c fleet.Claim) bool {
	h, ok := fleet.HeldBy(t)
	return ok && h.ID == c.ID && h.Key == c.Key
}

// tasksOf reads the tasks of claims, by id.
func (m *Monitor) tasksOf(ctx context.Context, claims []fleet.Claim) (map[string]*task.Task, error) {
	ids := make([]string, len(claims))
	for i, c := range claims {
		ids[i] = c.TaskID
	}
	list, err := m.store.Get(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read %d tasks: %w", len(ids), err)
	}
	byID := make(map[string]*task.Task, len(list))
	for i := range list {
		byID[list[i].ID] = &list[i]
	}
	return byID, nil
}
