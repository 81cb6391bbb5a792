package dispatcher

import "github.com/skalds-go/skalds/controller/placement"

// behind returns what goes on keeping a task waiting although nothing keeps the first task of its queue waiting at this moment: what has
// come free since the last round goes to the first task of one queue, and all others go on waiting. It is empty where the next round may
// place the task, as far as is known. Without it, explanations would change with each token and each slot.
func (d *Dispatcher) behind(queue *queueState, id string) Reason {
	if queue.in == nil {
		return ""
	}
	why, sharing := queue.in.until.why, len(queue.in.queues)
	if why == "" {
		why, sharing = d.queues.endedBy, len(d.queues.ordered.queues)+len(d.queues.free.queues)
	}
	if sharing == 1 && id == queue.item.ID {
		return ""
	}
	return why
}

// describeBehind describes a reason that behind has returned.
func (d *Dispatcher) describeBehind(queue *queueState, e *Explanation) (text, help string) {
	switch e.Reason {
	case RateLimited, ClassRateLimited:
		return d.describe(queue, e)
	case placement.NodesFull:
		text = "A slot has just come free for a task before it."
	default:
		text = "What it waits for has just come free for a task before it."
	}
	return text, "Wait for its turn; skalds dispatcher pending shows what else waits."
}
