package dispatcher

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/placement"
)

// maxHolders bounds how many tasks or nodes a sentence names.
const maxHolders = 3

// describe says a reason as sentences, and what would help.
func (d *Dispatcher) describe(queue *queueState, e *Explanation) (text, help string) {
	s := &d.gates.settings
	switch e.Reason { //nolint:exhaustive // the others are placement's
	case DispatcherPaused:
		return "The dispatcher is paused.", "Resume it: skalds dispatcher resume"
	case ClassPaused:
		return fmt.Sprintf("The class %s is paused.", queue.class), "Resume it: skalds dispatcher resume --class " + ShellWord(queue.class)
	case NamespacePaused:
		flag := "skalds dispatcher resume --namespace " + ShellWord(queue.item.Namespace)
		if queue.item.Namespace == "" {
			return "Tasks without a namespace are paused.", "Resume them: " + flag
		}
		return fmt.Sprintf("The namespace %s is paused.", queue.item.Namespace), "Resume it: " + flag
	case Throttled:
		return d.describeBackPressure()
	case RateLimited:
		return d.describeRate(d.gates.buckets.all, "tasks", "")
	case ClassRateLimited:
		return d.describeRate(d.gates.buckets.classes.of(queue.class, d.gates.moment()), "tasks of the class "+queue.class, " --class "+ShellWord(queue.class))
	case NamespaceFull:
		what := "of the namespace " + queue.item.Namespace
		if queue.item.Namespace == "" {
			what = "without a namespace"
		}
		inUse, limit := d.fleet.NamespaceCount(queue.item.Namespace), s.limits[queue.item.Namespace]
		return d.describeFull(inUse, what, limit, func(c *fleet.Claim) bool { return c.Namespace == queue.item.Namespace }),
			orRaise(inUse, limit, "skalds limit set namespace N --namespace "+ShellWord(queue.item.Namespace))
	case KeyBusy:
		inUse := d.fleet.KeyCount(queue.key)
		return d.describeFull(inUse, fmt.Sprintf("with the concurrency key %q", queue.key), queue.keyLimit, func(c *fleet.Claim) bool { return c.HasKey(queue.key) }),
			waitFor(inUse) + "; skalds task explain ID says how far it is."
	case PoolFull:
		inUse, limit := d.fleet.PoolCount(queue.pool), s.pools[queue.pool]
		return d.describeFull(inUse, "of the pool "+queue.pool, limit, func(c *fleet.Claim) bool { return c.InPool(queue.pool) }),
			orRaise(inUse, limit, "skalds limit set pool N --pool "+ShellWord(queue.pool))
	case NotLookedAt:
		return fmt.Sprintf("The leader has not looked at them yet: it looks at %d new queues in a round, and knows %d at once.", maxHeads, maxLines),
			"Wait a moment. If it stays so, look whether rounds fail: skalds dispatcher status, and the leader's log."
	case PoolUnknown:
		return fmt.Sprintf("There is no pool %q.", queue.pool), "Make it: skalds limit set pool N --pool " + ShellWord(queue.pool)
	}
	text, help = e.Placement.Describe()
	if e.Reason == placement.AntiAffinity {
		text += fmt.Sprintf(" The key is %q, and held by %s.", queue.anti, d.holders(func(c *fleet.Claim) bool { return c.AntiAffinityKey == queue.anti }))
	}
	if e.Reason != Ready && len(e.NotTaking) > 0 {
		var parts []string
		for _, id := range slices.Sorted(maps.Keys(e.NotTaking)) {
			parts = append(parts, fmt.Sprintf("%s (%s)", id, e.NotTaking[id]))
			if e.NotTaking[id] == fleet.Draining && !strings.Contains(help, " undrain ") {
				help += " Or end a drain: skalds nodes undrain " + ShellWord(id)
			}
		}
		text += " Taking no work: " + strings.Join(parts, ", ") + "."
	}
	return text, help
}

func waitFor(n int) string {
	if n == 1 {
		return "Wait for it to end"
	}
	return "Wait for one of them to end"
}

func orRaise(n, limit int, command string) string {
	if limit == 0 {
		return "Raise the limit: " + command
	}
	return waitFor(n) + ", or raise the limit: " + command
}

// describeRate says what a rate lets through.
func (d *Dispatcher) describeRate(b *bucket, what, flag string) (text, help string) {
	command := "skalds limit set rate N" + flag
	if b == nil || b.rate.PerSecond == 0 {
		return fmt.Sprintf("No %s may start: their rate is 0.", what), "Raise it: " + command
	}
	text = fmt.Sprintf("At most %v %s may start a second", b.rate.PerSecond, what)
	if wait := b.wait(d.gates.moment()); wait > 0 {
		text += fmt.Sprintf("; the next one in %s", wait.Round(10*time.Millisecond))
	}
	return text + ".", "Wait, or raise the rate: " + command
}

// describeBackPressure says which nodes have been sent tasks and have not started them.
func (d *Dispatcher) describeBackPressure() (text, help string) {
	by := make(map[string]int)
	for _, c := range d.fleet.Unbegun(func(*fleet.Claim) bool { return true }, d.cfg.MaxPending) {
		by[c.Node]++
	}
	ids := slices.SortedFunc(maps.Keys(by), func(a, b string) int { return cmp.Or(by[b]-by[a], strings.Compare(a, b)) })
	parts := make([]string, 0, maxHolders)
	for _, id := range ids[:min(len(ids), maxHolders)] {
		parts = append(parts, fmt.Sprintf("%d to %s", by[id], id))
	}
	sent := counted(d.fleet.Unstarted(), "task was", "tasks were")
	most := d.cfg.MaxPending
	return fmt.Sprintf("%s sent to nodes and not started yet, as many as may be (DISPATCHER_MAX_PENDING=%d): %s.", sent, most, andMore(parts, len(ids))),
		"Wait; if a node starts nothing, look at it (skalds nodes show ID), or raise DISPATCHER_MAX_PENDING and restart the controllers."
}

// describeFull says that as many tasks are on nodes as may be, and which.
func (d *Dispatcher) describeFull(n int, what string, limit int, matches func(*fleet.Claim) bool) string {
	if limit == 0 {
		return fmt.Sprintf("No task %s may be on a node: the limit is 0.", what)
	}
	text := fmt.Sprintf("%s %s on nodes, and at most %d may be", counted(n, "task "+what, "tasks "+what), areOrIs(n), limit)
	if list := d.holders(matches); n > 0 && list != "" {
		text += ": " + list
	}
	return text + "."
}

// holders names the tasks on nodes that match, the first of them.
func (d *Dispatcher) holders(matches func(*fleet.Claim) bool) string {
	claims := d.fleet.Holders(matches, maxHolders+1)
	parts := make([]string, 0, maxHolders)
	for _, c := range claims[:min(len(claims), maxHolders)] {
		parts = append(parts, c.TaskID+" on "+c.Node)
	}
	return andMore(parts, len(claims))
}

func andMore(parts []string, of int) string {
	text := strings.Join(parts, ", ")
	if of > len(parts) {
		text += ", ..."
	}
	return text
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func areOrIs(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
