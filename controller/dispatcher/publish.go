package dispatcher

import (
	"context"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/transport"
	"github.com/skalds-go/skalds/pkg/task"
)

// publish sends claims to their nodes, one batch for each node. A task that certainly did not go out
// waits again; one that never can ends.
func (d *Dispatcher) publish(ctx context.Context, r *round, won []pick) error {
	if len(won) == 0 {
		return nil
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
	d.mu.Lock()
	for i := range batches {
		batches[i].RoundRobinCount = d.picker.cluster.Served(batches[i].To.Node)
	}
	d.mu.Unlock()
	var sent []string
	var back, doomed []*task.Task
	var reasons []string // of the doomed
	var failure error
	unknown := 0
	for i, res := range d.transport.Assign(ctx, d.lease.Term(), batches) {
		if res.Err != nil {
			failure = res.Err
			// Or it would draw all tasks, since its load stays the least.
			d.fleet.Unreachable(batches[i].To.Key, d.clock.Boot())
		} else {
			d.fleet.Reachable(batches[i].To.Key)
		}
		for j, outcome := range res.Outcomes {
			t := &batches[i].Tasks[j]
			if outcome == transport.NotSent {
				back = append(back, t)
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
	d.fleet.Sent(sent, d.clock.Boot())
	d.metrics.dispatched(len(sent)-unknown, unknown, len(back))
	if failure != nil {
		d.log.Warn("an assignment was not published; what may be on its way is sent again, the rest waits again",
			"unclaimed", len(back), "error", failure)
	}
	r.out.Placed += len(sent)
	r.out.Failed += len(back) - len(doomed)
	if err := d.unclaim(ctx, back); err != nil {
		return err
	}
	now := d.clock.Now().UnixMilli()
	ends := make([]task.Change, len(doomed))
	for i, t := range doomed {
		ends[i] = task.Refuse(t, reasons[i], now)
	}
	return d.end(ctx, ends)
}
