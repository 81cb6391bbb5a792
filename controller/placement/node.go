package placement

import (
	"slices"
	"time"
)

// Node is a node as the leader sees it. A Cluster keeps its slices and maps, so the caller must not change them after
// Set. A Cluster does not check the figures: the caller must keep to the ranges given here.
type Node struct {
	ID          string // not empty
	Classes     []string
	Labels      map[string]string
	Capacity    int            // slots, 1 to task.MaxSlots
	Prefetch    int            // slots of tasks that it may hold beyond its capacity, 0 to task.MaxSlots
	ByClass     map[string]int // capacity for tasks of a class, for classes with a lower one than Capacity; 0 or more
	Load        int            // slots of the tasks that it holds or that were sent to it; 0 or more
	LoadByClass map[string]int // the part of Load of each class in ByClass; other classes are ignored
	CPU         float64        // last reading of the fraction in use, 0 to 1; more counts as 1; below 0 = unknown
	Memory      float64        // likewise
	Age         time.Duration  // of the two readings; 0 or more
	Fresh       int            // slots of the tasks that were sent to it since the readings; 0 or more
	Served      int64          // round-robin count with which it joins the Cluster; 0 = the lowest of the others
	RateLimited bool           // it can take nothing now, since it is at its rate limit
}

// node is a node of a Cluster. The fields that a decision reads come first and fill one cache line of 64 bytes. The
// whole has 192 bytes.
type node struct {
	capacity, prefetch, load int
	served                   int64     // round-robin count
	last                     int64     // number of the last placement on it; 0 = none yet
	mark                     uint64    // number of the last request that excluded it
	stamps                   [2]uint32 // number of its changes in each log

	alive       bool
	rateLimited bool
	kept        bool // kept free for a task that must be alone
	joining     bool // served is not set yet
	limited     bool // it has limits

	limits []limit // capacity by class

	cpu, memory, decay float64 // decay is the weight of the readings, 0 to 1
	age                time.Duration
	fresh              int

	id      string
	classes []string
	labels  map[string]string

	joined uint64 // number of its join
	set    uint64 // number of its last Set
}

// limit is a node's capacity for a class and its load.
type limit struct {
	class          string
	capacity, load int
}

func (n *node) has(class string) bool { return slices.Contains(n.classes, class) }

// limit returns the index of a class in the limits, or -1.
func (n *node) limit(class string) int {
	for i := range n.limits {
		if n.limits[i].class == class {
			return i
		}
	}
	return -1
}

// most returns the number of slots that tasks of a class can have on the node when it is empty.
func (n *node) most(class string) int {
	if i := n.limit(class); i >= 0 {
		return min(n.capacity, n.limits[i].capacity)
	}
	return n.capacity
}

// ratio returns the load relative to the capacity. Two nodes have the same ratio exactly if the fractions are equal, as
// long as loads and capacities are below 2^31.
func (n *node) ratio() float64 { return float64(n.load) / float64(n.capacity) }
