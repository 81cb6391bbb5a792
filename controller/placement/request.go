package placement

import "github.com/skalds-go/skalds/pkg/task"

// Request is one task to place.
type Request struct {
	Class     string
	Selector  task.Selector // of the nodes' labels
	Slots     int           // that it takes; below 1 = 1
	Prefetch  PrefetchDepth // how far it may queue behind others on a node that has no free slot
	Alone     bool          // it must be the only one on its node
	Avoid     []string      // ids of nodes that are taken only if no other could ever run it
	Anti      []string      // ids of nodes that must not have it now
	Strategy  Strategy      // as ParseStrategy gives it; anything else is LEAST_TASKS
	StickyKey string        // of STICKY
}

// PrefetchDepth says how far tasks of a class may queue on a node. All nodes' free slots come first.
type PrefetchDepth int

// How far it may queue.
const (
	NoPrefetch   PrefetchDepth = iota
	PrefetchOnce               // within the node's prefetch, as many slots as its capacity: what waits begins after about one run
	PrefetchDeep               // within the node's prefetch
)

func (q *Request) width() int { return max(q.Slots, 1) }

// Decision is what became of one request: a node, or the reason why there is none.
type Decision struct {
	Node   string // id; empty = not placed
	Reason Reason // empty = placed

	ticket uint64 // numbers the placements; 0 = none
	joined uint64 // of the node, when it was placed
	set    uint64
	node   int32
	limit  int32 // index of the class in the node's limits, or -1
	load   int32 // slots that it took
	width  int32 // slots that it asked for
}

// Reason says why a task was not placed.
type Reason string

// The reasons, in the order in which they are found.
const (
	// NoEligibleNode says that no node takes work at all.
	NoEligibleNode Reason = "NO_ELIGIBLE_NODE"
	// NoNodeForClass says that nodes take work, but none of them has the class.
	NoNodeForClass Reason = "NO_NODE_FOR_CLASS"
	// NoNodeForLabels says that nodes have the class, but the labels of none of them match.
	NoNodeForLabels Reason = "NO_NODE_FOR_LABELS"
	// SlotsOverCapacity says that no node that matches could ever hold the task: it asks for more slots than they have.
	SlotsOverCapacity Reason = "SLOTS_OVER_CAPACITY"
	// AntiAffinity says that the nodes that match and have room hold a task of the same anti-affinity key.
	AntiAffinity Reason = "ANTI_AFFINITY"
	// NodesAvoided says that the nodes that match and have room are those that the task crashed, and that others could
	// run it later.
	NodesAvoided Reason = "NODES_AVOIDED"
	// NodesRateLimited says that the nodes that match and have room have no token of their rate limit.
	NodesRateLimited Reason = "NODES_RATE_LIMITED"
	// NodesFull says that all nodes that match are full, or kept free for a task that must be alone.
	NodesFull Reason = "NODES_FULL"
)
