package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

func (d *Dispatcher) claimID() string {
	d.claims++
	return d.cfg.ID + "-" + strconv.FormatInt(d.claims, 36)
}

// claim writes the claims of what was picked, and returns those that won. What another change of the task came before
// is dropped.
func (d *Dispatcher) claim(ctx context.Context, r *round) ([]pick, error) {
	picks := r.picks
	r.picks = nil
	if len(picks) == 0 {
		return nil, nil
	}
	changes := make([]task.Change, len(picks))
	ids := make([]string, len(picks))
	for i := range picks {
		changes[i], ids[i] = picks[i].change, picks[i].claim.ID
	}
	n, err := d.store.Apply(ctx, changes)
	if err == nil && n == len(picks) {
		for i := range picks {
			picks[i].change.Apply(picks[i].task)
		}
		return picks, nil
	}
	if err != nil && !d.refusal(ctx, err) {
		// They may be written or not: the monitor finds out, and sends those that are.
		d.fleet.Sent(ids, d.clock.Boot())
		return nil, fmt.Errorf("claim %d tasks: %w", len(picks), err)
	}
	return d.winners(ctx, r, picks, ids)
}

// winners returns the claims that won, as the store shows them.
func (d *Dispatcher) winners(ctx context.Context, r *round, picks []pick, ids []string) ([]pick, error) {
	taskIDs := make([]string, len(picks))
	for i := range picks {
		taskIDs[i] = picks[i].task.ID
	}
	stored, err := d.store.Get(ctx, taskIDs)
	if err != nil {
		d.fleet.Sent(ids, d.clock.Boot())
		return nil, fmt.Errorf("read back %d claims: %w", len(picks), err)
	}
	present := make(map[string]*task.Task, len(stored))
	for i := range stored {
		present[stored[i].ID] = &stored[i]
	}
	var lost []pick
	won := picks[:0]
	for _, p := range picks {
		now, there := present[p.task.ID]
		if there && now.ClaimID == p.claim.ID && p.change.Apply(p.task) {
			won = append(won, p)
			continue
		}
		if there && p.change.Matches(now) && (p.claim.KeyPermit != "" || p.claim.PoolPermit != "") {
			d.fleet.PermitLost(&p.claim) // nothing else can have kept it from applying
		}
		lost = append(lost, p)
	}
	d.drop(lost)
	r.lost += len(lost)
	d.metrics.lose(len(lost))
	return won, nil
}

// refusalEvery is how often a refusal of the store is logged.
const refusalEvery = time.Minute

// refusal reports whether the store will never take some of the changes, and has carried out the others.
func (d *Dispatcher) refusal(ctx context.Context, err error) bool {
	if ctx.Err() != nil || errors.Is(err, store.ErrUnavailable) {
		return false
	}
	if now := d.clock.Boot(); d.refusedAt == 0 || now-d.refusedAt >= refusalEvery {
		d.refusedAt = now
		d.log.Error("the store refuses to change tasks that wait; they go on waiting", "error", err)
	}
	return true
}
