package dispatcher

import "github.com/skalds-go/skalds/controller/placement"

// behind returns what goes on keeping a task waiting although nothing keeps the first task of its queue waiting now.
// What has come free since the last round goes to the first task of one queue, and all others go on waiting. It is
// empty if the next round may place the task, as far as is known. Without it, explanations would change with each token
// and each slot.
func (d *Dispatcher) behind(q *queueState, id string) Reason {
	if q == nil || !q.known || d.queues.version != d.gates.settings.version {
		if d.gates.rates.any() { // the tokens may not be enough for all tasks
			return NotLookedAt
		}
		return ""
	}
	why, sharing := q.in.until.why, len(q.in.queues)
	if why == "" {
		why, sharing = d.queues.endedBy, len(d.queues.ordered.queues)+len(d.queues.open.queues)
	}
	if sharing == 1 && id == q.item.ID {
		return ""
	}
	return why
}

// describeBehind describes a reason that behind has returned.
func (g *gates) describeBehind(q *queueState, e *Explanation) (text, help string) {
	switch e.Reason {
	case RateLimited, ClassRateLimited, NotLookedAt:
		return g.describe(q, e)
	case placement.NodesFull:
		text = "A slot has just come free for a task before it."
	default:
		text = "What it waits for has just come free for a task before it."
	}
	return text, "Wait for its turn; skalds dispatcher pending shows what else waits."
}
