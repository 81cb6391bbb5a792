package dispatcher

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/task"
)

// Explanation is why a task waits, and what would help.
type Explanation struct {
	Reason    Reason
	Text      string
	Help      string
	Queue     string
	Until     int64 // epoch ms; 0 = unknown
	Placement *placement.Explanation
	NotTaking map[string]string // the first nodes that take no work, and why
}

// Ready is the reason of a task that nothing keeps waiting: it is placed when its turn comes.
const Ready Reason = "READY"

// NotLookedAt is the reason of tasks whose queue the leader does not know yet. It has to read one of them to learn
// their requirements.
const NotLookedAt Reason = "NOT_LOOKED_AT"

// Explain returns why a task waits (Created, Passive, without notBefore). It never contradicts what the next round will
// do: a task is Ready only if the next round may place it, as far as is known.
func (d *Dispatcher) Explain(t *task.Task) Explanation {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.picker.refresh()
	q := queueState{name: t.Queue()}
	q.learn(t)
	e := Explanation{Queue: q.name}
	now := d.gates.moment()
	var wait time.Duration
	_, e.Reason, wait = d.gates.check(&q, now)
	if e.Reason == "" {
		req := d.picker.taskRequest(&q, t)
		p := d.picker.cluster.Explain(&req)
		e.Placement, e.Reason = &p, p.Reason
		e.NotTaking = d.picker.notTaking()
	}
	behind := false
	if e.Reason == "" {
		e.Reason = d.behind(d.queues.byName[q.name], t.ID)
		behind, wait = e.Reason != "", d.gates.nextToken(&q, e.Reason, now)
	}
	if wait > 0 {
		e.Until = d.clock.Now().Add(wait).UnixMilli()
	}
	e.Reason = cmp.Or(e.Reason, Ready)
	if behind {
		e.Text, e.Help = d.gates.describeBehind(&q, &e)
	} else {
		e.Text, e.Help = d.gates.describe(&q, &e)
	}
	return e
}

// maxNamed bounds how many nodes an explanation names.
const maxNamed = 10

func (p *picker) notTaking() map[string]string {
	_, not := p.fleet.View(p.gates.clock.Boot())
	if len(not) <= maxNamed {
		return not
	}
	first := make(map[string]string, maxNamed)
	for _, id := range slices.Sorted(maps.Keys(not))[:maxNamed] {
		first[id] = not[id]
	}
	return first
}
