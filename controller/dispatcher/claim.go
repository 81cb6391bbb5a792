package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// claimer writes what a round has decided. It claims and publishes tasks, undoes claims, and ends tasks that cannot
// run. Only Round uses it.
type claimer struct {
	id        string // unique to this leadership; claim ids begin with it
	store     Store
	transport Transport
	lease     Lease
	fleet     *fleet.Fleet
	clock     clock.Clock
	metrics   *Metrics
	log       *slog.Logger

	mu     *sync.Mutex // the dispatcher's; guards picker
	picker *picker

	claims    int64         // made so far, for their ids
	unclaims  []*task.Task  // undone claims without an answer of the store; at most a page
	refusedAt time.Duration // when a refusal of the store was last logged; 0 = never
}

// nextID returns a new claim id.
func (c *claimer) nextID() string {
	c.claims++
	return c.id + "-" + strconv.FormatInt(c.claims, 36)
}

// claim writes the claims of picks and returns those that won. It drops those that another change of the task came
// before.
func (c *claimer) claim(ctx context.Context, picks []pick) ([]pick, error) {
	if len(picks) == 0 {
		return nil, nil
	}
	changes := make([]task.Change, len(picks))
	ids := make([]string, len(picks))
	for i := range picks {
		changes[i], ids[i] = picks[i].change, picks[i].claim.ID
	}
	n, err := c.store.Apply(ctx, changes)
	if err == nil && n == len(picks) {
		for i := range picks {
			picks[i].change.Apply(picks[i].task)
		}
		return picks, nil
	}
	if err != nil && !c.refusal(ctx, err) {
		// They may be written or not: the monitor finds out, and sends those that are.
		c.fleet.Sent(ids, c.clock.Boot())
		return nil, fmt.Errorf("claim %d tasks: %w", len(picks), err)
	}
	return c.winners(ctx, picks, ids)
}

// winners returns the claims that won, as the store shows them.
func (c *claimer) winners(ctx context.Context, picks []pick, ids []string) ([]pick, error) {
	taskIDs := make([]string, len(picks))
	for i := range picks {
		taskIDs[i] = picks[i].task.ID
	}
	stored, err := c.store.Get(ctx, taskIDs)
	if err != nil {
		c.fleet.Sent(ids, c.clock.Boot())
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
			c.fleet.PermitLost(&p.claim) // only a permit that is in use can have stopped the change
		}
		lost = append(lost, p)
	}
	c.drop(lost)
	c.metrics.lose(len(lost))
	return won, nil
}

// drop undoes the reservations of picks whose claims were not written.
func (c *claimer) drop(picks []pick) {
	if len(picks) == 0 {
		return
	}
	ids := make([]string, len(picks))
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range picks {
		p := &picks[i]
		ids[i] = p.claim.ID
		c.picker.cluster.Unplace(p.dec)
		c.picker.gates.rates.add(1, p.claim.Class, p.dec.Node, c.picker.gates.moment())
	}
	c.fleet.Drop(ids)
}

// refusalEvery is how often a refusal of the store is logged.
const refusalEvery = time.Minute

// refusal reports whether the store will never make some of the changes and has made the others.
func (c *claimer) refusal(ctx context.Context, err error) bool {
	if ctx.Err() != nil || errors.Is(err, store.ErrUnavailable) {
		return false
	}
	if now := c.clock.Boot(); c.refusedAt == 0 || now-c.refusedAt >= refusalEvery {
		c.refusedAt = now
		c.log.Error("the store refuses to change tasks that wait; they go on waiting", "error", err)
	}
	return true
}
