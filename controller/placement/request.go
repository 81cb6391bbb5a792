package placement

import "github.com/skalds-go/skalds/pkg/task"

// Request is one task to place.
type Request struct {
	Class     string
	Selector  task.Selector // of the nodes' labels
	Slots     int           // that it takes; below 1 counts as 1
	Prefetch  PrefetchDepth // how much of a node's prefetch it may use once no node has a free slot
	Alone     bool          // it must be the only task on its node
	Avoid     []string      // ids of nodes that are used only if no other node could ever run it
	Anti      []string      // ids of nodes that must not run it now
	Strategy  Strategy      // as ParseStrategy returns it; anything else counts as LEAST_TASKS
	StickyKey string        // for STICKY
}

// PrefetchDepth is how much of a node's prefetch a task may use. The free slots of all nodes come first.
type PrefetchDepth int

// The prefetch depths.
const (
	// NoPrefetch uses free slots only.
	NoPrefetch PrefetchDepth = iota
	// PrefetchOnce uses prefetch up to the node's capacity, so that a task waits for about one run.
	PrefetchOnce
	// PrefetchDeep uses all of the node's prefetch.
	PrefetchDeep
)

func (q *Request) width() int { return max(q.Slots, 1) }

// Decision is the result of a request: a node, or the reason why there is none.
type Decision struct {
	Node   string // id; empty = not placed
	Reason Reason // empty = placed

	ticket uint64 // number of the placement; 0 = none
	joined uint64 // of the node at that time
	set    uint64 // of the node at that time
	node   int32
	limit  int32 // index of the class in the limits of the node, or -1
	load   int32 // slots that it took
	width  int32 // slots that it asked for
}

// Reason says why a task was not placed.
type Reason string

// The reasons, in the order in which they are checked.
const (
	// NoEligibleNode says that no node takes work at all.
	NoEligibleNode Reason = "NO_ELIGIBLE_NODE"
	// NoNodeForClass says that nodes take work, but none of them has the class.
	NoNodeForClass Reason = "NO_NODE_FOR_CLASS"
	// NoNodeForLabels says that nodes have the class, but the labels of none match.
	NoNodeForLabels Reason = "NO_NODE_FOR_LABELS"
	// SlotsOverCapacity says that no node that matches could ever hold the task: it asks for more slots than they have.
	SlotsOverCapacity Reason = "SLOTS_OVER_CAPACITY"
	// AntiAffinity says that the nodes which match and have free slots hold a task of the same anti-affinity key.
	AntiAffinity Reason = "ANTI_AFFINITY"
	// NodesAvoided says that the task has crashed the nodes which match and have free slots. Others could run it later.
	NodesAvoided Reason = "NODES_AVOIDED"
	// NodesRateLimited says that the nodes which match and have free slots are at their rate limits.
	NodesRateLimited Reason = "NODES_RATE_LIMITED"
	// NodesFull says that all nodes which match are full, or kept free for a task that must be alone.
	NodesFull Reason = "NODES_FULL"
)
