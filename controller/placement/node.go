package placement

import (
	"slices"
	"time"
)

// Node is one node as the leader sees it. What it refers to must not be changed after it was given to a Cluster. Its
// figures must be in the ranges that are said here, and nothing looks whether they are: a node that says of itself what
// cannot be is not to be given to a Cluster.
type Node struct {
	ID          string // not empty
	Classes     []string
	Labels      map[string]string
	Capacity    int            // slots, 1 to task.MaxSlots
	Prefetch    int            // slots' worth of tasks that it may hold queued beside them, 0 to task.MaxSlots
	ByClass     map[string]int // slots that tasks of a class may take, where that is less than Capacity; 0 or more
	Load        int            // slots of the tasks that it holds or that are under way to it; 0 or more
	LoadByClass map[string]int // of them, those of each class in ByClass; others are not looked at
	CPU         float64        // fraction of the machine in use, 0 to 1, as last read; more counts as 1; below 0 = unknown
	Memory      float64        // likewise
	Age         time.Duration  // of the two readings; 0 or more
	Fresh       int            // slots of the tasks that were sent to it since; 0 or more
	Served      int64          // tasks given to it so far, looked at when the node is new to the Cluster; 0 = it begins with the lowest of the others
	RateLimited bool           // its rate limit lets it take nothing now
}

// node is a node in the index. What a decision looks at comes first: it is 64 bytes, as a line of the cache is, and the
// whole is 192.
type node struct {
	capacity, prefetch, load int
	served                   int64     // tasks given to it
	last                     int64     // the number of the placement that gave it the last; 0 = none yet
	mark                     uint64    // the request that excludes it
	stamps                   [2]uint32 // changes in each log; see changes

	alive       bool
	rateLimited bool
	kept        bool // free for a task that must be alone
	joining     bool // served is yet to be found
	limited     bool // it has limits

	limits []limit // capacity by class

	cpu, memory, decay float64 // decay: how much the readings still count, 0 to 1
	age                time.Duration
	fresh              int

	id      string
	classes []string
	labels  map[string]string

	joined uint64 // numbers the joins
	set    uint64 // numbers the calls of Set
}

// limit is a node's capacity for a class.
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

// most is how many slots tasks of a class can ever have on the node.
func (n *node) most(class string) int {
	if i := n.limit(class); i >= 0 {
		return min(n.capacity, n.limits[i].capacity)
	}
	return n.capacity
}

// ratio is the load relative to the capacity. Equal fractions give equal numbers, and others do not as long as both are
// below 2^31.
func (n *node) ratio() float64 { return float64(n.load) / float64(n.capacity) }
