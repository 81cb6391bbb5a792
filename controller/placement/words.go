package placement

import (
	"fmt"
	"strings"
)

// Words says the explanation in sentences, and what would help.
func (e *Explanation) Words() string {
	class := fmt.Sprintf("the class %q", e.Class)
	switch e.Reason {
	case "":
		if len(e.Best) == 0 {
			return "It can be placed now."
		}
		return fmt.Sprintf("It goes to node %s next (%s), by %s.", e.Best[0].Node, e.Best[0].Score, e.Strategy)
	case NoEligibleNode:
		return "No node takes work now. It starts when a node comes online, or is no longer draining."
	case NoNodeForClass:
		return fmt.Sprintf("No node has %s: %s for other classes only. It needs a node that registers a handler for it.",
			class, count(e.Nodes, "node takes work,", "nodes take work,"))
	case NoNodeForLabels:
		return fmt.Sprintf("No node has labels that match %q: %s %s, with other labels. It needs a node with such labels, or another selector.",
			e.Selector, count(e.Nodes-e.NoClass, "node has", "nodes have"), class)
	case SlotsOverCapacity:
		return fmt.Sprintf("It takes %s, and no node that matches can hold more than %d of %s. "+
			"It needs a larger node (NODE_CAPACITY, NODE_CAPACITY_BY_CLASS), or fewer slots.",
			count(e.Slots, "slot", "slots"), e.Largest, class)
	case AntiAffinity:
		return fmt.Sprintf("%s of the same anti-affinity key%s. It starts when one of those tasks ends.",
			count(e.Anti, "node that matches holds a task", "nodes that match hold a task"), e.others())
	case NodesAvoided:
		return fmt.Sprintf("It has crashed %s%s. It waits for one of those that it has not crashed.",
			count(e.Avoided, "node that matches", "nodes that match"), e.others())
	case NodesThrottled:
		return fmt.Sprintf("%s no token of the rate limit now%s. It starts with the next token.",
			count(e.Throttled, "node that matches has", "nodes that match have"), e.others())
	case NodesFull:
		return e.full()
	}
	return string(e.Reason)
}

// full says what it takes until one of the nodes that match has room.
func (e *Explanation) full() string {
	if e.Alone {
		return fmt.Sprintf("It must run alone on its node, since its node died twice while it ran, and none that matches is empty (%s). "+
			"One of them takes nothing else until it is.", e.names())
	}
	return fmt.Sprintf("It takes %s, and %s (%s). The most that is free on one of them is %d. It starts when enough of their tasks end, or with another node.",
		count(e.Slots, "slot", "slots"), count(e.Full+e.Kept, "node that matches is full", "nodes that match are full"), e.names(), e.MostFree)
}

// others says how many more nodes match, and are full.
func (e *Explanation) others() string {
	if e.Full+e.Kept == 0 {
		return ""
	}
	return fmt.Sprintf("; %s (%s)", count(e.Full+e.Kept, "other is full", "others are full"), e.names())
}

// names lists the nodes that are full.
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
