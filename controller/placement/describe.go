package placement

import (
	"fmt"
	"strings"
)

// Describe returns the explanation in sentences for people, and what would help. The help is empty if the task would be
// placed.
func (e *Explanation) Describe() (text, help string) {
	class := "the class " + e.Class
	switch e.Reason {
	case "":
		text = "Nothing keeps it waiting: it is placed when its turn comes."
		if len(e.Best) > 0 {
			text += fmt.Sprintf(" %s would send it to %s now (%s).", e.Strategy, e.Best[0].Node, e.Best[0].Score)
		}
		return text, ""
	case NoEligibleNode:
		return "No node takes work.", "Start a node: skalds node, or a program of yours."
	case NoNodeForClass:
		return fmt.Sprintf("No node has %s: %s.", class, count(e.Nodes, "node takes work, but has other classes", "nodes take work, but have other classes")),
			"Start a node with a handler for it, or check the name: skalds nodes list shows the classes of each node."
	case NoNodeForLabels:
		return fmt.Sprintf("No node matches the labels %s: %s.", e.Selector,
				count(e.Nodes-e.NoClass, "node has "+class+", but other labels", "nodes have "+class+", but other labels")),
			"Start a node whose labels match (NODE_LABELS), or submit the task with others: skalds nodes list shows the labels of each node."
	case SlotsOverCapacity:
		return fmt.Sprintf("It takes %s, and no node that matches has more than %d for %s.", count(e.Slots, "slot", "slots"), e.Largest, class),
			"Start a larger node (NODE_CAPACITY, NODE_CAPACITY_BY_CLASS), or submit the task with fewer slots."
	case AntiAffinity:
		return fmt.Sprintf("Every node with free slots holds a task of the same anti-affinity key (%s)%s.", count(e.Anti, "node", "nodes"), e.others()),
			"Wait for one of these tasks to end, or start another node."
	case NodesAvoided:
		return fmt.Sprintf("It has crashed every node that has free slots (%s)%s.", count(e.Avoided, "node", "nodes"), e.others()),
			"Wait for free slots on a node that it has not crashed, or start another one."
	case NodesRateLimited:
		return fmt.Sprintf("Every node with free slots has used up its rate (%s)%s.", count(e.RateLimited, "node", "nodes"), e.others()),
			"Wait, or raise the rate of a node: skalds limit set rate N --node ID (skalds limit list shows what is set)."
	case NodesFull:
		return e.full(class), "Wait for a task to end, or start another node: skalds task list --status Running shows what runs."
	}
	return string(e.Reason), ""
}

// full describes what the nodes lack.
func (e *Explanation) full(class string) string {
	n := e.Full + e.Kept
	them := count(n, "node", "nodes")
	if n == 1 {
		them = "only node"
	}
	switch {
	case e.Alone:
		return fmt.Sprintf("It needs an empty node, since its node died twice while it ran, and the %s that could run it %s not empty (%s).",
			them, isOrAre(n), e.names()) + " One takes nothing else until it is."
	case e.Kept > 0:
		return fmt.Sprintf("No slot for %s is to be had on the %s that could run it (%s): %s nothing, to become empty for a task that must run alone.",
			class, them, e.names(), count(e.Kept, "takes", "take"))
	case e.Slots > 1:
		return fmt.Sprintf("It takes %d slots for %s, and the most that is free on the %s that could run it is %d (%s).", e.Slots, class, them, e.MostFree, e.names())
	}
	return fmt.Sprintf("No slot for %s is free on the %s that could run it (%s).", class, them, e.names())
}

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// others describes the other nodes that match, which are full.
func (e *Explanation) others() string {
	if e.Full+e.Kept == 0 {
		return ""
	}
	return fmt.Sprintf("; %s (%s)", count(e.Full+e.Kept, "other is full", "others are full"), e.names())
}

// names returns the ids of the nodes that are full.
func (e *Explanation) names() string {
	names := strings.Join(e.FullNodes, ", ")
	if more := e.Full + e.Kept - len(e.FullNodes); more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return names
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", many)
}
