package dispatcher

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// Explanation is why a task that waits does so, and what would help.
type Explanation struct {
	Reason    Reason
	Text      string
	Help      string
	Queue     string
	Until     int64 // epoch ms; 0 = not known
	Placement *placement.Explanation
	NotTaking map[string]string // nodes that are there and take no work, and why; the first of them
}

// Ready is the reason of a task that nothing keeps waiting: it comes in its turn.
const Ready Reason = "READY"

// NotLookedAt is the reason of tasks whose queue the leader does not know yet: it has to read one of them to know what they ask for.
const NotLookedAt Reason = "NOT_LOOKED_AT"

// Explain says why a task waits (Created, Passive, without notBefore).
func (d *Dispatcher) Explain(t *task.Task) Explanation {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.picker.refresh()
	queue := queueState{name: t.Queue()}
	queue.learn(t)
	e := Explanation{Queue: queue.name}
	now := d.gates.moment()
	var wait time.Duration
	if _, e.Reason, wait = d.gates.gate(&queue, now); wait > 0 {
		e.Until = d.clock.Now().Add(wait).UnixMilli()
	}
	if e.Reason == "" {
		q := d.picker.requestFor(&queue, t)
		p := d.picker.cluster.Explain(&q)
		e.Placement, e.Reason = &p, p.Reason
		e.NotTaking = d.notTaking()
	}
	if known, ok := d.queues.byName[queue.name]; ok && e.Reason == "" {
		if e.Reason = d.behind(known, t.ID); e.Reason != "" {
			e.Text, e.Help = d.describeBehind(&queue, &e)
			return e
		}
	}
	e.Reason = cmp.Or(e.Reason, Ready)
	e.Text, e.Help = d.describe(&queue, &e)
	return e
}

// maxNamed bounds how many nodes an explanation names.
const maxNamed = 10

func (d *Dispatcher) notTaking() map[string]string {
	_, not := d.fleet.View(d.clock.Boot())
	if len(not) <= maxNamed {
		return not
	}
	first := make(map[string]string, maxNamed)
	for _, id := range slices.Sorted(maps.Keys(not))[:maxNamed] {
		first[id] = not[id]
	}
	return first
}

// Group is the tasks that wait for one reason.
type Group struct {
	Reason Reason
	Text   string
	Help   string
	Tasks  int64
	Queues int
	Sample []string // names of some of the queues, those with the most tasks first
}

// maxSample bounds how many queues a group names.
const maxSample = 5

// Pending groups all tasks that wait by reason, the largest group first. It counts them, so it is for people, not for loops.
func (d *Dispatcher) Pending(ctx context.Context) ([]Group, error) {
	depths := make(map[string]int64)
	for after, more := "", true; more; {
		page, err := d.store.Depths(ctx, after, store.MaxBatch)
		if err != nil {
			return nil, fmt.Errorf("count what waits: %w", err)
		}
		maps.Copy(depths, page)
		if more = len(page) == store.MaxBatch && len(depths) < maxLines; more {
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
		queue, ok := d.queues.byName[name]
		if !ok {
			queue = &queueState{name: name}
		}
		blocked, _ := d.picker.blocked(queue, now)
		first := "" // of several tasks, the first alone is placed next
		if depths[name] == 1 {
			first = queue.item.ID
		}
		behind := d.behind(queue, first)
		why := cmp.Or(blocked, behind, Ready)
		g := groups[why]
		if g == nil {
			g = &Group{Reason: why}
			groups[why] = g
		}
		if g.Text == "" {
			q := d.picker.request(queue)
			p := d.picker.cluster.Explain(&q)
			e := Explanation{Reason: why, Placement: &p}
			if why == placement.NoEligibleNode {
				e.NotTaking = d.notTaking()
			}
			if blocked == "" && behind != "" {
				g.Text, g.Help = d.describeBehind(queue, &e)
			} else {
				g.Text, g.Help = d.describe(queue, &e)
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
