package session

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/skalds-go/skalds/pkg/task"
)

// slots is how many slots a node has, in all and by class, and how many are taken: by handlers that have not returned,
// and by queued claims. It holds a class only while that takes some.
type slots struct {
	capacity, prefetch int
	byClass            map[string]int // the most slots of a class; default: the capacity

	used, queued     int
	usedBy, queuedBy map[string]int
}

func newSlots(capacity, prefetch int, byClass map[string]int) slots {
	return slots{capacity: capacity, prefetch: prefetch, byClass: byClass, usedBy: map[string]int{}, queuedBy: map[string]int{}}
}

func (r *slots) free() int { return max(r.capacity-r.used, 0) }

// classLimit returns how many slots of the capacity a class may take.
func (r *slots) classLimit(class string) int {
	if most, limited := r.byClass[class]; limited {
		return min(most, r.capacity)
	}
	return r.capacity
}

// classFits reports whether the limit of a class allows so many slots more.
func (r *slots) classFits(class string, width int) bool {
	most, limited := r.byClass[class]
	return !limited || most >= r.capacity || width <= most-r.usedBy[class]
}

// refusal returns why the node does not take a claim in; empty if it does.
func (r *slots) refusal(class string, width int) string {
	switch {
	case width > r.capacity:
		return fmt.Sprintf("the task takes %d slots, the capacity of this node is %d", width, r.capacity)
	case width > r.classLimit(class):
		return fmt.Sprintf("the task takes %d slots, its class %q has %d on this node", width, class, r.classLimit(class))
	case width > r.capacity+r.prefetch-r.used-r.queued:
		text := fmt.Sprintf("no room: %d running and %d queued, capacity %d and prefetch %d", r.used, r.queued, r.capacity, r.prefetch)
		if width > 1 {
			text += fmt.Sprintf(", in slots; the task takes %d", width)
		}
		return text
	}
	return ""
}

func (r *slots) enqueue(cl *claim) { r.queued += add(r.queuedBy, cl, 1) }
func (r *slots) dequeue(cl *claim) { r.queued += add(r.queuedBy, cl, -1) }
func (r *slots) occupy(cl *claim)  { r.used += add(r.usedBy, cl, 1) }
func (r *slots) release(cl *claim) { r.used += add(r.usedBy, cl, -1) }

// add counts a claim's slots for its class, and returns their number.
func add(by map[string]int, cl *claim, sign int) int {
	class, slots := cl.task.ClassName, sign*cl.task.Width()
	if by[class] += slots; by[class] == 0 {
		delete(by, class)
	}
	return slots
}

// takenByClass returns how many slots each class takes, running and queued.
func (r *slots) takenByClass() map[string]int {
	if len(r.usedBy)+len(r.queuedBy) == 0 {
		return nil
	}
	all := maps.Clone(r.usedBy)
	for class, slots := range r.queuedBy {
		all[class] += slots
	}
	return all
}

// nextIndex returns the index of the queued claim that starts next, or -1. It is the oldest, with one exception: a
// class whose slots are all taken is skipped. A claim that needs more slots than are free keeps the free ones, so that
// nothing newer takes them. Both would hold up other claims for as long as what runs does not end. That is why such
// claims are rejected after a while, see rejectOverdue.
func (c *claims) nextIndex(boot time.Duration) int {
	if c.slots.free() == 0 {
		return -1
	}
	var skipped []string
	for i, cl := range c.queue {
		class, width := cl.task.ClassName, cl.task.Width()
		switch {
		case slices.Contains(skipped, class):
		case !c.slots.classFits(class, width):
			skipped = append(skipped, class)
			c.block(cl, boot)
		case width > c.slots.free():
			c.block(cl, boot)
			return -1
		default:
			return i
		}
	}
	return -1
}

// block records since when a claim is the first that waits for slots.
func (c *claims) block(cl *claim, boot time.Duration) {
	if !cl.blocked {
		cl.blocked, cl.blockedAt = true, boot
		c.blocked = append(c.blocked, cl)
	}
}

func (c *claims) unblock(cl *claim) {
	if cl.blocked {
		cl.blocked = false
		c.blocked = slices.DeleteFunc(c.blocked, func(b *claim) bool { return b == cl })
	}
}

// unqueue removes a claim from the queue.
func (c *claims) unqueue(cl *claim) {
	if i := slices.Index(c.queue, cl); i >= 0 {
		c.remove(i)
	}
}

func (c *claims) remove(i int) *claim {
	cl := c.queue[i]
	if i == 0 {
		c.queue[0] = nil
		c.queue = c.queue[1:]
	} else {
		c.queue = slices.Delete(c.queue, i, i+1)
	}
	c.slots.dequeue(cl)
	c.unblock(cl)
	return cl
}

// rejectOverdue rejects the claims that have waited too long for slots, so that they may run elsewhere and what waits
// behind them may run here. All that wait for the same are rejected together: all of a class, or all that take more
// slots than are free. It reports whether there were any.
func (c *claims) rejectOverdue(now int64, boot time.Duration) bool {
	rejected := false
	for len(c.blocked) > 0 && boot >= c.blocked[0].blockedAt+c.limits.slotTimeout {
		first := c.blocked[0]
		class, free := first.task.ClassName, c.slots.free()
		var same func(cl *claim) bool
		switch {
		case !c.slots.classFits(class, first.task.Width()):
			same = func(cl *claim) bool { return cl.task.ClassName == class }
		case free > 0 && first.task.Width() > free:
			same = func(cl *claim) bool { return cl.task.Width() > free }
		default: // the node is full: it waits as any other does
			c.unblock(first)
			continue
		}
		for _, cl := range slices.DeleteFunc(slices.Clone(c.queue), func(cl *claim) bool { return !same(cl) }) {
			c.unqueue(cl)
			c.finish(cl, task.ReportRejected, nil, c.overdueReason(cl), now)
			rejected = true
		}
	}
	return rejected
}

// overdueReason returns why rejectOverdue rejects a claim.
func (c *claims) overdueReason(cl *claim) string {
	class, width := cl.task.ClassName, cl.task.Width()
	if !c.slots.classFits(class, width) {
		return fmt.Sprintf("no room within %s: the task takes %d slots, its class %q has %d on this node, %d are taken",
			c.limits.slotTimeout, width, class, c.slots.classLimit(class), c.slots.usedBy[class])
	}
	return fmt.Sprintf("no room within %s: the task takes %d slots, this node has %d, %d are taken",
		c.limits.slotTimeout, width, c.slots.capacity, c.slots.used)
}
