package dispatcher

import (
	"fmt"
	"slices"
	"strings"

	"github.com/skalds-go/skalds/controller/placement"
)

// words says a reason as a sentence, and what would help.
func (d *Dispatcher) words(l *line, e *Explanation) (text, help string) {
	s := &d.settings
	ofNamespace, ofKey, ofPool := d.fleet.InUse(l.item.Namespace, l.key, l.pool)
	switch e.Reason {
	case Ready:
		return d.ready(e), ""
	case DispatcherPaused:
		return "The dispatcher is paused.", "Resume it: skalds dispatcher resume"
	case ClassPaused:
		return fmt.Sprintf("The class %s is paused.", l.class), fmt.Sprintf("Resume it: skalds dispatcher resume --class %s", l.class)
	case NamespacePaused:
		return fmt.Sprintf("The namespace %s is paused.", named(l.item.Namespace)),
			fmt.Sprintf("Resume it: skalds dispatcher resume --namespace %q", l.item.Namespace)
	case Throttled:
		return fmt.Sprintf("%d tasks are sent to nodes and not started yet, as many as may be (DISPATCHER_MAX_PENDING=%d).", d.fleet.Unstarted(), d.cfg.MaxPending),
			"Look for nodes that start nothing (skalds nodes list), or raise DISPATCHER_MAX_PENDING."
	case RateLimited:
		return fmt.Sprintf("The dispatcher starts at most %v tasks a second, and has no token left.", d.buckets.all.rate.PerSecond),
			"Wait, or raise the limit: skalds limit set rate N"
	case ClassRateLimited:
		return fmt.Sprintf("The class %s has a rate limit, and no token left.", l.class), "Wait, or raise the limit: skalds limit set rate N --class " + l.class
	case NamespaceFull:
		return fmt.Sprintf("The namespace %s has %d tasks on nodes, as many as it may (%d).", named(l.item.Namespace), ofNamespace, s.limits[l.item.Namespace]),
			fmt.Sprintf("Wait for one of them to end, or raise the limit: skalds limit set namespace N --namespace %q", l.item.Namespace)
	case KeyBusy:
		return fmt.Sprintf("%s with the concurrency key %q %s on nodes, and %d may be at once.", tasks(ofKey), l.key, areOrIs(ofKey), l.keyLimit),
			"Wait for one of them to end; skalds task list shows which run."
	case PoolFull:
		return fmt.Sprintf("The pool %s has %d tasks on nodes, as many as it may (%d).", l.pool, ofPool, s.pools[l.pool]),
			fmt.Sprintf("Wait for one of them to end, or raise the limit: skalds limit set pool N --pool %s", l.pool)
	case PoolUnknown:
		return fmt.Sprintf("There is no pool %q.", l.pool), fmt.Sprintf("Make it: skalds limit set pool N --pool %s", l.pool)
	}
	text, help = placed(l, e.Placement, e.Reason)
	if list := len(e.NotTaking); list > 0 {
		var parts []string
		for id, why := range e.NotTaking {
			parts = append(parts, fmt.Sprintf("%s (%s)", id, why))
		}
		text += " Taking no work: " + strings.Join(slices.Sorted(slices.Values(parts)), ", ") + "."
	}
	return text, help
}

// ready says where a task would go that nothing keeps waiting.
func (d *Dispatcher) ready(e *Explanation) string {
	text := "Nothing keeps it waiting: it is placed when its turn comes."
	if p := e.Placement; p != nil && len(p.Best) > 0 {
		text += fmt.Sprintf(" %s would send it to %s now (%s).", p.Strategy, p.Best[0].Node, p.Best[0].Score)
	}
	return text
}

// placed says why no node can take a task.
func placed(l *line, p *placement.Explanation, why Reason) (text, help string) {
	selector := l.request.Selector.String()
	switch why {
	case placement.NoEligibleNode:
		return "No node takes work.", "Start a node: skalds node"
	case placement.NoNodeForClass:
		return fmt.Sprintf("No node has the class %s: %s.", l.class, taking(p.Nodes)), fmt.Sprintf("Start a node with a handler for %s, or check the name of the class.", l.class)
	case placement.NoNodeForLabels:
		with := p.Nodes - p.NoClass
		return fmt.Sprintf("No node matches %s: %s the class %s, but not these labels.", selector, have(with), l.class),
			"Start a node with these labels (NODE_LABELS), or submit the task with others."
	case placement.SlotsOverCapacity:
		return fmt.Sprintf("It takes %d slots, and no node that matches has more than %d for the class %s.", p.Slots, p.Largest, l.class),
			"Start a node with more capacity (NODE_CAPACITY, NODE_CAPACITY_BY_CLASS), or submit the task with fewer slots."
	case placement.AntiAffinity:
		return fmt.Sprintf("Every node with room holds a task of the anti-affinity key %q.", l.anti), "Wait for one of them to end, or start another node."
	case placement.NodesAvoided:
		return "The only nodes with room are those that it crashed, and others could run it later.", "Wait for room on another node, or start one."
	case placement.NodesThrottled:
		return "Every node with room has used up its rate limit.", "Wait, or raise the limit: skalds limit set rate N --node ID"
	}
	full := p.Full + p.Kept
	text = fmt.Sprintf("%s that could run it %s full", nodes(full), areOrIs(full))
	if len(p.FullNodes) > 0 {
		text += ": " + strings.Join(p.FullNodes, ", ")
		if full > len(p.FullNodes) {
			text += ", ..."
		}
	}
	switch {
	case p.Alone:
		text += "; after crashes it needs an empty node"
	case p.Slots > 1:
		text += fmt.Sprintf("; it takes %d slots, and the most that is free on one node is %d", p.Slots, p.MostFree)
	}
	return text + ".", "Wait for a task to end, or add nodes or capacity."
}

func named(namespace string) string {
	if namespace == "" {
		return "of tasks without one"
	}
	return namespace
}

func tasks(n int) string { return counted(n, "task") }
func nodes(n int) string { return counted(n, "node") }

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func areOrIs(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func have(n int) string {
	if n == 1 {
		return "1 node has"
	}
	return fmt.Sprintf("%d nodes have", n)
}

func taking(n int) string {
	if n == 1 {
		return "1 node takes work, with other classes"
	}
	return fmt.Sprintf("%d nodes take work, with other classes", n)
}
