package monitor

import (
	"context"
	"fmt"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/events"
)

// Recall asks nodes to give claims back that they have not started.
func (m *Monitor) Recall(ctx context.Context, claims []fleet.Claim) error {
	var list orders
	for i := range claims {
		c := &claims[i]
		if to, there := m.fleet.Target(c.Key); there {
			list.add(to, events.Command{Kind: events.CommandRecall, ID: c.TaskID, Attempt: c.Attempt, ClaimID: c.ID})
		}
	}
	if err := m.order(ctx, list); err != nil {
		return fmt.Errorf("recall %d tasks: %w", len(claims), err)
	}
	return nil
}
