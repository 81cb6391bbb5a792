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

// maxHolders bounds how many tasks or nodes a description names.
const maxHolders = 3

// describe returns a reason in sentences for people, and what would help.
func (g *gates) describe(q *queueState, e *Explanation) (text, help string) {
	s := &g.settings
	switch e.Reason { //nolint:exhaustive // the others are placement's
	case DispatcherPaused:
		return "The dispatcher is paused.", "Resume it: skalds dispatcher resume"
	case ClassPaused:
		return fmt.Sprintf("The class %s is paused.", q.class), "Resume it: skalds dispatcher resume --class " + ShellWord(q.class)
	case NamespacePaused:
		flag := "skalds dispatcher resume --namespace " + ShellWord(q.item.Namespace)
		if q.item.Namespace == "" {
			return "Tasks without a namespace are paused.", "Resume them: " + flag
		}
		return fmt.Sprintf("The namespace %s is paused.", q.item.Namespace), "Resume it: " + flag
	case Throttled:
		return g.describeThrottle()
	case RateLimited:
		return g.describeRate(g.rates.all, "tasks", "")
	case ClassRateLimited:
		return g.describeRate(g.rates.classes.of(q.class, g.moment()), "tasks of the class "+q.class, " --class "+ShellWord(q.class))
	case NamespaceFull:
		what := "of the namespace " + q.item.Namespace
		if q.item.Namespace == "" {
			what = "without a namespace"
		}
		inUse, limit := g.fleet.NamespaceCount(q.item.Namespace), s.limits[q.item.Namespace]
		return g.describeUse(inUse, what, limit, func(c *fleet.Claim) bool { return c.Namespace == q.item.Namespace }),
			orRaise(inUse, limit, "skalds limit set namespace N --namespace "+ShellWord(q.item.Namespace))
	case KeyBusy:
		inUse := g.fleet.KeyCount(q.key)
		return g.describeUse(inUse, fmt.Sprintf("with the concurrency key %q", q.key), q.keyLimit, func(c *fleet.Claim) bool { return c.HasKey(q.key) }),
			waitFor(inUse) + "; skalds task explain ID says how far it is."
	case PoolFull:
		inUse, limit := g.fleet.PoolCount(q.pool), s.pools[q.pool]
		return g.describeUse(inUse, "of the pool "+q.pool, limit, func(c *fleet.Claim) bool { return c.InPool(q.pool) }),
			orRaise(inUse, limit, "skalds limit set pool N --pool "+ShellWord(q.pool))
	case NotLookedAt:
		return fmt.Sprintf("The leader has not looked at them yet: it looks at %d new queues in a round, and knows %d at once.", maxHeads, maxQueues),
			"Wait a moment. If it stays so, look whether rounds fail: skalds dispatcher status, and the leader's log."
	case PoolUnknown:
		return fmt.Sprintf("There is no pool %q.", q.pool), "Make it: skalds limit set pool N --pool " + ShellWord(q.pool)
	}
	text, help = e.Placement.Describe()
	if e.Reason == placement.AntiAffinity {
		text += fmt.Sprintf(" The key is %q, and held by %s.", q.anti, g.holders(func(c *fleet.Claim) bool { return c.AntiAffinityKey == q.anti }))
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

// describeRate describes a rate that has no token left.
func (g *gates) describeRate(b *bucket, what, flag string) (text, help string) {
	command := "skalds limit set rate N" + flag
	if b == nil || b.rate.PerSecond == 0 {
		return fmt.Sprintf("No %s may start: their rate is 0.", what), "Raise it: " + command
	}
	text = fmt.Sprintf("At most %v %s may start a second", b.rate.PerSecond, what)
	if wait := b.next(g.moment()); wait > 0 {
		text += fmt.Sprintf("; the next one in %s", wait.Round(10*time.Millisecond))
	}
	return text + ".", "Wait, or raise the rate: " + command
}

// describeThrottle describes which nodes have not started the tasks that were sent to them.
func (g *gates) describeThrottle() (text, help string) {
	by := make(map[string]int)
	for _, c := range g.fleet.Unbegun(func(*fleet.Claim) bool { return true }, g.maxPending) {
		by[c.Node]++
	}
	ids := slices.SortedFunc(maps.Keys(by), func(a, b string) int { return cmp.Or(by[b]-by[a], strings.Compare(a, b)) })
	parts := make([]string, 0, maxHolders)
	for _, id := range ids[:min(len(ids), maxHolders)] {
		parts = append(parts, fmt.Sprintf("%d to %s", by[id], id))
	}
	sent := counted(g.fleet.Unstarted(), "task was", "tasks were")
	most := g.maxPending
	return fmt.Sprintf("%s sent to nodes and not started yet, as many as may be (DISPATCHER_MAX_PENDING=%d): %s.", sent, most, andMore(parts, len(ids))),
		"Wait; if a node starts nothing, look at it (skalds nodes show ID), or raise DISPATCHER_MAX_PENDING and restart the controllers."
}

// describeUse describes a limit of tasks on nodes that is reached, and which tasks these are.
func (g *gates) describeUse(n int, what string, limit int, matches func(*fleet.Claim) bool) string {
	if limit == 0 {
		return fmt.Sprintf("No task %s may be on a node: the limit is 0.", what)
	}
	text := fmt.Sprintf("%s %s on nodes, and at most %d may be", counted(n, "task "+what, "tasks "+what), areOrIs(n), limit)
	if list := g.holders(matches); n > 0 && list != "" {
		text += ": " + list
	}
	return text + "."
}

// holders names the first tasks on nodes that match.
func (g *gates) holders(matches func(*fleet.Claim) bool) string {
	claims := g.fleet.Holders(matches, maxHolders+1)
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
