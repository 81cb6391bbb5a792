package dispatcher

import (
	"context"
	"fmt"
	"slices"

	"github.com/skalds-go/skalds/pkg/task"
)

// unclaim undoes claims that no node can have seen. It stops when the leadership may be over, as another leader may
// then send them again.
//
// If the store does not answer, the write may still take effect, even much later. Such claims must not be sent again.
// They stay in unclaims, and each round repeats the write until the store answers.
func (c *claimer) unclaim(ctx context.Context, fresh []*task.Task) error {
	all := slices.Concat(c.unclaims, fresh)
	if len(all) == 0 {
		return nil
	}
	now := c.clock.Now().UnixMilli()
	ids := make([]string, len(all))
	changes := make([]task.Change, len(all))
	for i, t := range all {
		ids[i] = t.ClaimID
		changes[i] = task.Unclaim(t.ID, t.Assignment(), now)
	}
	remaining := c.lease.Remaining()
	if remaining <= 0 {
		c.fleet.Sent(ids[len(c.unclaims):], c.clock.Boot())
		return ErrNotLeading
	}
	c.unclaims = all
	ctx, cancel := context.WithTimeout(ctx, remaining)
	defer cancel()
	switch _, err := c.store.Apply(ctx, changes); {
	case err == nil:
		c.fleet.Drop(ids)
		c.mu.Lock()
		for i, t := range all {
			c.picker.gates.rates.add(1, t.ClassName, t.Executor, c.picker.gates.moment())
			changes[i].Apply(t)
		}
		c.mu.Unlock()
	case c.refusal(ctx, err):
		c.fleet.Sent(ids, c.clock.Boot()) // the write will never take effect
	default:
		return fmt.Errorf("unclaim %d tasks: %w", len(ids), err)
	}
	c.unclaims = nil
	return nil
}
