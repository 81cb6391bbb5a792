package monitor

import (
	"context"
	"fmt"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/pkg/task"
)

// adopt takes over the claims among these that other leaders made, before they are resent. Such a leader may know that
// it never sent a claim, and unclaim it; that write may be under way for longer than it leads. If it arrived after the
// claim was resent from here, the task would wait again and run elsewhere while its node starts it, too. adopt returns
// the ids of the claims that it could adopt, and updates tasks for the others.
func (m *Monitor) adopt(ctx context.Context, claims []fleet.Claim, tasks map[string]*task.Task) (map[string]bool, error) {
	now := m.clock.Now().UnixMilli()
	var foreign []fleet.Claim
	var changes []task.Change
	for _, c := range claims {
		if t := tasks[c.TaskID]; c.Foreign && t != nil && holds(t, c) && t.LifecycleStatus == task.Assigning {
			foreign = append(foreign, c)
			changes = append(changes, task.Adopt(t, now))
		}
	}
	if len(changes) == 0 {
		return nil, nil
	}
	if _, err := m.store.Apply(ctx, changes); err != nil {
		return nil, fmt.Errorf("take over %d claims of other leaders: %w", len(changes), err)
	}
	fresh, err := m.tasksOf(ctx, foreign)
	if err != nil {
		return nil, err
	}
	adopted := make(map[string]bool, len(foreign))
	var ids []string
	for i, c := range foreign {
		t := fresh[c.TaskID]
		if tasks[c.TaskID] = t; t == nil {
			delete(tasks, c.TaskID)
			continue
		}
		if holds(t, c) && t.AssignedDateTime == changes[i].Assign.At {
			adopted[c.ID] = true
			ids = append(ids, c.ID)
		}
	}
	m.fleet.Adopted(ids)
	return adopted, nil
}
