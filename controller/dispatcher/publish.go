package dispatcher

import (
	"context"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/transport"
	"github.com/skalds-go/skalds/pkg/task"
)

// publish sends claimed tasks to their nodes, in one batch per node. A task that was certainly not sent waits again;
// one that can never be sent ends. It returns how many were sent, or may have been, and how many wait again.
func (c *claimer) publish(ctx context.Context, won []pick) (placed, failed int, err error) {
	if len(won) == 0 {
		return 0, 0, nil
	}
	at, sizes := make(map[fleet.Key]int), make(map[fleet.Key]int)
	for _, p := range won {
		sizes[p.to.Key]++
	}
	batches := make([]transport.Batch, 0, len(sizes))
	for _, p := range won {
		i, ok := at[p.to.Key]
		if !ok {
			i = len(batches)
			at[p.to.Key] = i
			batches = append(batches, transport.Batch{To: p.to, Tasks: make([]task.Task, 0, sizes[p.to.Key])})
		}
		batches[i].Tasks = append(batches[i].Tasks, *p.task)
	}
	c.mu.Lock()
	for i := range batches {
		batches[i].RoundRobinCount = c.picker.cluster.Served(batches[i].To.Node)
	}
	c.mu.Unlock()
	var sent []string
	var unsent, doomed []*task.Task
	var reasons []string // of the doomed
	var failure error
	unknown := 0
	for i, res := range c.transport.Assign(ctx, c.lease.Term(), batches) {
		if res.Err != nil {
			failure = res.Err
			// Otherwise the node would attract all tasks, since its load stays the lowest.
			c.fleet.Unreachable(batches[i].To.Key, c.clock.Boot())
		} else {
			c.fleet.Reachable(batches[i].To.Key)
		}
		for j, outcome := range res.Outcomes {
			t := &batches[i].Tasks[j]
			if outcome == transport.NotSent {
				unsent = append(unsent, t)
				if why, never := res.Never[j]; never {
					doomed, reasons = append(doomed, t), append(reasons, "cannot be sent to a node: "+why.Error())
				}
				continue
			}
			if outcome == transport.Unknown {
				unknown++
			}
			sent = append(sent, t.ClaimID)
		}
	}
	c.fleet.Sent(sent, c.clock.Boot())
	c.metrics.dispatched(len(sent)-unknown, unknown, len(unsent))
	if failure != nil {
		c.log.Warn("an assignment was not published; tasks that may have been sent are sent again, the others wait again",
			"unclaimed", len(unsent), "error", failure)
	}
	placed, failed = len(sent), len(unsent)-len(doomed)
	if err := c.unclaim(ctx, unsent); err != nil {
		return placed, failed, err
	}
	now := c.clock.Now().UnixMilli()
	ends := make([]task.Change, len(doomed))
	for i, t := range doomed {
		ends[i] = task.Refuse(t, reasons[i], now)
	}
	return placed, failed, c.end(ctx, ends)
}
