package session

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/skalds-go/skalds/pkg/task"
)

// slots is how many slots a node has, in all and by class, and how many are taken: by handlers that have not returned, and by queued claims
// that are going to. It knows of a class only while that takes some.
type slots struct {
	capacity, prefetch int
	byClass            map[string]int // the most slots of a class; one without an entry has the capacity

	used, queued     int
	usedBy, queuedBy map[string]int
}

func newSlots(capacity, prefetch int, byClass map[string]int) slots {
	return slots{capacity: capacity, prefetch: prefetch, byClass: byClass, usedBy: map[string]int{}, queuedBy: map[string]int{}}
}

func (r *slots) free() int { return max(r.capacity-r.used, 0) }

// classLimit is how many slots classLimit the capacity a class may take.
func (r *slots) classLimit(class string) int {
	if most, limited := r.byClass[class]; limited {
		return min(most, r.capacity)
	}
	return r.capacity
}

// classFits says whether a class may take so many slots more, as far as its own limit goes.
func (r *slots) classFits(class string, width int) bool {
	most, limited := r.byClass[class]
	return !limited || most >= r.capacity || width <= most-r.usedBy[class]
}

// refusal says why the node does not take a claim in, or nothing.
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

// add counts a claim's slots for its class, and gives their number.
func add(by map[string]int, cl *claim, sign int) int {
	class, slots := cl.task.ClassName, sign*cl.task.Width()
	if by[class] += slots; by[class] == 0 {
		delete(by, class)
	}
	return slots
}

// takenByClass is how many slots each class takes, running and queued.
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

// nextIndex finds the queued claim that starts next, -1 if none can. It is the oldest, with one exception: those that wait for their class's
// slots are passed, together with all of their class behind them. So a claim that waits for more slots than are free keeps the free ones:
// nothing newer takes them. It would hold up the others for as long as what runs does not end, and so may a class whose slots are all taken
// hold up its own; that is why such claims are given back after a while, see tick.
func (c *claims) nextIndex(boot time.Duration) int {
	if c.slots.free() == 0 {
		return -1
	}
	var passed []string
	for i, cl := range c.queue {
		class, width := cl.task.ClassName, cl.task.Width()
		switch {
		case slices.Contains(passed, class):
		case !c.slots.classFits(class, width):
			passed = append(passed, class)
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

// block notes since when a claim is the first of those that wait for slots.
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

// unqueue takes a claim out of the queue.
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

// rejectOverdue gives back the claims that have waited too long for slots, so that they may run elsewhere, and what waits behind them here. With
// the first of a line go those that wait for the same: all of its class, or all that take more slots than are free. It says whether there
// were any.
func (c *claims) rejectOverdue(now int64, boot time.Duration) bool {
	gaveBack := false
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
			gaveBack = true
		}
	}
	return gaveBack
}

// overdueReason is the reason that is given for a claim that is given back.
func (c *claims) overdueReason(cl *claim) string {
	class, width := cl.task.ClassName, cl.task.Width()
	if !c.slots.classFits(class, width) {
		return fmt.Sprintf("no room within %s: the task takes %d slots, its class %q has %d on this node, %d are taken",
			c.limits.slotTimeout, width, class, c.slots.classLimit(class), c.slots.usedBy[class])
	}
	return fmt.Sprintf("no room within %s: the task takes %d slots, this node has %d, %d are taken", c.limits.slotTimeout, width, c.slots.capacity, c.slots.used)
}
