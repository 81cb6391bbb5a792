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
// If the store does not answer, the undoing may still take effect, even much later. So these claims are not sent again:
// they are owed, and each round undoes them again, until the store has answered.
func (d *Dispatcher) unclaim(ctx context.Context, fresh []*task.Task) error {
	back := slices.Concat(d.owed, fresh)
	if len(back) == 0 {
		return nil
	}
	now := d.clock.Now().UnixMilli()
	ids := make([]string, len(back))
	changes := make([]task.Change, len(back))
	for i, t := range back {
		ids[i] = t.ClaimID
		changes[i] = task.Unclaim(t.ID, t.Assignment(), now)
	}
	left := d.lease.Remaining()
	if left <= 0 {
		d.fleet.Sent(ids[len(d.owed):], d.clock.Boot())
		return ErrNotLeading
	}
	d.owed = back
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	switch _, err := d.store.Apply(ctx, changes); {
	case err == nil:
		d.fleet.Drop(ids)
		d.mu.Lock()
		for i, t := range back {
			d.gates.rates.add(1, t.ClassName, t.Executor, d.gates.moment())
			changes[i].Apply(t)
		}
		d.mu.Unlock()
	case d.refusal(ctx, err):
		d.fleet.Sent(ids, d.clock.Boot()) // it never takes effect
	default:
		return fmt.Errorf("undo %d claims: %w", len(ids), err)
	}
	d.owed = nil
	return nil
}
