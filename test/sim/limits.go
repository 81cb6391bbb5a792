package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// inForce is the dispatcher's settings from a time on.
type inForce struct {
	since time.Duration
	store.Dispatcher
}

// settingsChanged notes that the settings have changed in the store.
func (c *checker) settingsChanged(d store.Dispatcher) {
	c.world.note("store", "version %d of the settings: paused %t %q %q, pools %v, limits %v", d.Version, d.Paused, d.PausedClasses, d.PausedNamespaces,
		d.Pools, d.NamespaceLimits)
	c.settingsLog = append(c.settingsLog, inForce{c.world.now, d})
}

// pauses reports whether settings keep tasks like this one from being dispatched.
func pauses(d *store.Dispatcher, t *task.Task) bool {
	return d.Paused || slices.Contains(d.PausedClasses, t.ClassName) || slices.Contains(d.PausedNamespaces, t.Namespace)
}

// forbids returns why settings forbid that a task is dispatched with a permit of its pool, as the n-th of its
// namespace. It is empty if they do not.
func forbids(d *store.Dispatcher, t *task.Task, poolPermit string, n int) string {
	limit, known := d.Pools[t.Pool]
	space, limited := d.NamespaceLimits[t.Namespace]
	switch {
	case pauses(d, t):
		return "it is paused"
	case t.Pool != "" && (!known || permitNumber(poolPermit) >= limit):
		return fmt.Sprintf("the limit of its pool is %d, and it got the permit %q", limit, poolPermit)
	case limited && n > space:
		return fmt.Sprintf("the limit of its namespace %q is %d, and it is number %d", t.Namespace, space, n)
	}
	return ""
}

// permitNumber returns the number of a permit. For a task without a permit it is larger than every limit.
func permitNumber(permit string) int {
	n, err := strconv.Atoi(permit[strings.LastIndexByte(permit, '#')+1:])
	if err != nil {
		return task.MaxSlots
	}
	return n
}

// When the faults have been over for steadyAfter, the leader applies settings that are settingsAfter old: it reads them
// every 500 ms.
const (
	steadyAfter   = 10 * time.Second
	settingsAfter = 1500 * time.Millisecond
)

// steady reports whether the faults have been over for so long that settings apply soon.
func (c *checker) steady() bool {
	last := max(c.cfg.faults, c.mended)
	return last != never && c.world.now-last > steadyAfter
}

// obeyed checks a placement that was made by the settings of a version, or of newer ones, the n-th of its namespace.
func (c *checker) obeyed(t *task.Task, a *task.Assignment, version int64, n int) {
	if c.steady() {
		for int(version)+1 < len(c.settingsLog) && c.world.now-c.settingsLog[version+1].since > settingsAfter {
			version++
		}
	}
	why := ""
	for i := range c.settingsLog[version:] {
		if why = forbids(&c.settingsLog[int(version)+i].Dispatcher, t, a.PoolPermit, n); why == "" {
			return
		}
	}
	c.violate("%s was placed by settings of version %d or newer, but %s", t.ID, version, why)
}

// fits checks that a node is one that a task may run on.
func (c *checker) fits(t *task.Task, node string) {
	s := c.cfg.shapeOf(node)
	selector, err := t.NodeSelector()
	switch {
	case err != nil:
		panic(err) // asks.go made it
	case !slices.Contains(s.classes, t.ClassName):
		c.violate("%s was placed at %s, which does not know its class", t.ID, node)
	case !selector.Matches(s.labels):
		c.violate("%s was placed at %s, and selects %s", t.ID, node, selector)
	case t.ClassName == sideClass && t.Width() > c.cfg.sideSlots || t.Width() > c.cfg.capacity:
		c.violate("%s was placed at %s, and takes %d slots", t.ID, node, t.Width())
	}
}

// permitted checks that no permit is given twice, and that no more tasks of a key or a pool are held than there are
// permits.
func (c *checker) permitted(before, after *task.Task) {
	if before.Held() == after.Held() && before.ClaimID == after.ClaimID {
		return
	}
	for _, of := range []struct{ kind, name, was, is string }{
		{"key", before.ConcurrencyKey, before.KeyPermit, after.KeyPermit}, {"pool", before.Pool, before.PoolPermit, after.PoolPermit},
	} {
		if of.name == "" {
			continue
		}
		at := of.kind + " " + of.name
		if before.Held() {
			if c.inUse[at]--; c.holders[of.kind+of.was] == before.ID {
				delete(c.holders, of.kind+of.was)
			}
		}
		if !after.Held() {
			continue
		}
		c.inUse[at]++
		is, _, _ := strings.Cut(of.is, secondHolder)
		if other, taken := c.holders[of.kind+is]; taken {
			c.violate("%s has the permit %q, which %s has", after.ID, is, other)
		}
		c.holders[of.kind+is] = after.ID
		if name, _, ok := strings.Cut(is, "#"); !ok || name != of.name {
			c.violate("%s has the permit %q, and its %s is %s", after.ID, is, of.kind, of.name)
		}
		if of.kind == "key" && c.inUse[at] > before.KeyLimit() {
			c.violate("%d tasks of the key %s are held, and its limit is %d", c.inUse[at], of.name, before.KeyLimit())
		}
	}
}

// rooms checks the slots of the node at which a run begins, and the number of runs of its key.
func (c *checker) rooms(r *taskRun, sign int) {
	doc, n := &c.task(r.task).doc, r.session.node
	n.slots += sign * doc.Width()
	if doc.ClassName == sideClass {
		n.sideSlots += sign * doc.Width()
	}
	switch {
	case sign < 0:
		return
	case n.slots > c.cfg.capacity:
		c.violate("%s runs tasks of %d slots, its capacity is %d", n.process.name, n.slots, c.cfg.capacity)
	case n.sideSlots > c.cfg.sideSlots:
		c.violate("%s runs tasks of class %s of %d slots, its capacity for them is %d", n.process.name, sideClass, n.sideSlots, c.cfg.sideSlots)
	}
	if doc.ConcurrencyKey == "" || r.ghost {
		return
	}
	var runs []string
	for _, t := range c.order {
		for _, o := range t.runs {
			if t.doc.ConcurrencyKey == doc.ConcurrencyKey && c.counts(o) {
				runs = append(runs, o.task+" at "+o.session.incarnation)
			}
		}
	}
	if len(runs) > doc.KeyLimit() {
		c.violate("%d tasks of the key %s run at once, and its limit is %d: %s", len(runs), doc.ConcurrencyKey, doc.KeyLimit(), strings.Join(runs, ", "))
	}
}

// sentThoughPaused lists the tasks that are paused, and are still sent although they have not begun.
func (c *checker) sentThoughPaused(say func(format string, args ...any)) {
	now := &c.settingsLog[len(c.settingsLog)-1]
	for _, t := range c.order {
		if doc, ok := c.truth.get(t.id); ok && doc.LifecycleStatus == task.Assigning && pauses(&now.Dispatcher, &doc) && doc.Held() {
			say("%s is paused since %d ms, and is still %s", t.id, now.since.Milliseconds(), doc.LifecycleStatus)
		}
	}
}

// settingsAltered reports whether the settings differ from those that apply at the end.
func (c *checker) settingsAltered() bool {
	return c.settingsLog[len(c.settingsLog)-1].Paused || len(c.settingsLog) > 2
}
