package dispatcher

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/store"
)

// Group is all tasks that wait for one reason.
type Group struct {
	Reason Reason
	Text   string
	Help   string
	Tasks  int64
	Queues int
	Sample []string // names of the queues with the most tasks
}

// maxSample bounds how many queues a group names.
const maxSample = 5

// Pending groups all waiting tasks by the reason that Explain returns, the largest group first. It counts them in the
// store, which is too slow for a loop.
func (d *Dispatcher) Pending(ctx context.Context) ([]Group, error) {
	depths := make(map[string]int64)
	for after, more := "", true; more; {
		page, err := d.store.Depths(ctx, after, store.MaxBatch)
		if err != nil {
			return nil, fmt.Errorf("count what waits: %w", err)
		}
		maps.Copy(depths, page)
		if more = len(page) == store.MaxBatch && len(depths) < maxQueues; more {
			after = slices.Max(slices.Collect(maps.Keys(page)))
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.picker.refresh()
	now := d.gates.moment()
	groups := make(map[Reason]*Group)
	for _, name := range slices.SortedFunc(maps.Keys(depths), func(a, b string) int {
		return cmp.Or(cmp.Compare(depths[b], depths[a]), strings.Compare(a, b))
	}) {
		q, ok := d.queues.byName[name]
		if !ok {
			q = &queueState{name: name}
		}
		blocked, _ := d.picker.blocked(q, now)
		first := "" // of several tasks, only the first may be placed next
		if depths[name] == 1 {
			first = q.item.ID
		}
		behind := d.behind(q, first)
		why := cmp.Or(blocked, behind, Ready)
		g := groups[why]
		if g == nil {
			g = &Group{Reason: why}
			groups[why] = g
		}
		if g.Text == "" {
			req := d.picker.queueRequest(q)
			p := d.picker.cluster.Explain(&req)
			e := Explanation{Reason: why, Placement: &p}
			if why == placement.NoEligibleNode {
				e.NotTaking = d.picker.notTaking()
			}
			if blocked == "" && behind != "" {
				g.Text, g.Help = d.gates.describeBehind(q, &e)
			} else {
				g.Text, g.Help = d.gates.describe(q, &e)
			}
		}
		g.Tasks += depths[name]
		g.Queues++
		if len(g.Sample) < maxSample {
			g.Sample = append(g.Sample, name)
		}
	}
	list := make([]Group, 0, len(groups))
	for _, g := range groups {
		list = append(list, *g)
	}
	slices.SortFunc(list, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Tasks, a.Tasks), cmp.Compare(a.Reason, b.Reason))
	})
	return list, nil
}
