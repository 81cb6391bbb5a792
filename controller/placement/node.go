package placement

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/skalds-go/skalds/pkg/task"
)

// Limits of what a node may say of itself.
const (
	MaxCapacity = task.MaxSlots // also of prefetch
	MaxLoad     = 1 << 30
	MaxLabels   = 256
	MaxClasses  = 10_000
)

// Node is one node as the leader sees it. What it refers to must not be changed after it was given to a Cluster.
type Node struct {
	ID          string
	Classes     []string
	Labels      map[string]string
	Capacity    int            // slots
	Prefetch    int            // slots' worth of tasks that it may hold queued beside them
	ByClass     map[string]int // slots that tasks of a class may take, where that is less than Capacity
	Load        int            // slots of the tasks that it holds or that are under way to it
	LoadByClass map[string]int // of them, those of each class in ByClass; others are not looked at
	CPU         float64        // fraction of the machine in use, 0 to 1, as last read; below 0 = unknown
	Memory      float64        // likewise
	Age         time.Duration  // of the two readings
	Fresh       int            // slots of the tasks that were sent to it since
	Served      int64          // tasks given to it so far, looked at when the node is new to the Cluster; 0 = it begins with the lowest of the others
	Throttled   bool           // its rate limit lets it take nothing now
}

// Check says why a node's figures are nonsense, so that it gets no work; empty if they are not.
func (n *Node) Check() string {
	if reason := n.checkFigures(); reason != "" {
		return reason
	}
	return n.checkTexts()
}

func (n *Node) checkFigures() string {
	switch {
	case n.ID == "":
		return "its id is empty"
	case n.Capacity < 1 || n.Capacity > MaxCapacity:
		return fmt.Sprintf("its capacity is %d, must be 1 to %d", n.Capacity, MaxCapacity)
	case n.Prefetch < 0 || n.Prefetch > MaxCapacity:
		return fmt.Sprintf("its prefetch is %d, must be 0 to %d", n.Prefetch, MaxCapacity)
	case n.Load < 0 || n.Load > MaxLoad:
		return fmt.Sprintf("its load is %d, must be 0 to %d", n.Load, MaxLoad)
	case n.Fresh < 0 || n.Fresh > MaxLoad:
		return fmt.Sprintf("its load since the last reading is %d, must be 0 to %d", n.Fresh, MaxLoad)
	case unreal(n.CPU) || unreal(n.Memory):
		return fmt.Sprintf("its cpu or memory is no number: %v, %v", n.CPU, n.Memory)
	case n.Age < 0:
		return fmt.Sprintf("its reading is from the future: %v old", n.Age)
	case n.Served < 0:
		return fmt.Sprintf("its count of tasks is %d, must not be negative", n.Served)
	}
	for class, limit := range n.ByClass {
		if load := n.LoadByClass[class]; limit < 0 || limit > MaxCapacity || load < 0 || load > MaxLoad {
			return fmt.Sprintf("its capacity for class %.80q is %d and its load of it %d", class, limit, load)
		}
	}
	return ""
}

func (n *Node) checkTexts() string {
	const longest = 4096
	switch {
	case len(n.Labels) > MaxLabels:
		return fmt.Sprintf("it has %d labels, %d at most", len(n.Labels), MaxLabels)
	case len(n.Classes) > MaxClasses || len(n.ByClass) > MaxClasses:
		return fmt.Sprintf("it has %d classes, %d at most", max(len(n.Classes), len(n.ByClass)), MaxClasses)
	}
	for key, value := range n.Labels {
		if len(key) > longest || len(value) > longest {
			return fmt.Sprintf("a label has %d bytes, %d at most", max(len(key), len(value)), longest)
		}
	}
	return ""
}

func unreal(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }

// node is a node in the index. What a decision looks at comes first: it is 64 bytes, as a line of the cache is, and the whole is 192.
type node struct {
	capacity, prefetch, load int
	served                   int64     // tasks given to it
	last                     int64     // the number of the placement that gave it the last; 0 = none yet
	mark                     uint64    // the request that excludes it
	stamps                   [2]uint32 // changes in each log; see changes

	alive     bool
	throttled bool
	kept      bool // free for a task that must be alone
	joining   bool // served is yet to be found
	limited   bool // it has limits

	limits []limit // capacity by class

	cpu, memory, aged float64 // aged: how much the readings still count, 0 to 1
	age               time.Duration
	fresh             int

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

// limit gives the index of a class in the limits, or -1.
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

// ratio is the load relative to the capacity. Equal fractions give equal numbers, and others do not: both are below 2^31.
func (n *node) ratio() float64 { return float64(n.load) / float64(n.capacity) }
