package placement

// changes is a bounded log of nodes that have changed. Whoever is further behind than it reaches must look at all
// nodes.
type changes struct {
	ring []change
	end  uint64 // numbers the changes
}

// change is one node's change.
type change struct {
	node   int32
	stamp  uint32 // the node's after it: if the node has another by now, a later change says more
	static bool   // which requests the node matches may have changed
}

// reach is how many changes a log keeps.
const logSize = 1 << 14

// The logs.
const (
	better = iota // what can make a node a better pick: more room, another capacity or label, a lower count
	every         // all changes
)

func (l *changes) add(e change) {
	if l.ring == nil {
		l.ring = make([]change, logSize)
	}
	l.ring[l.end%logSize] = e
	l.end++
}

func (l *changes) at(i uint64) change { return l.ring[i%logSize] }

// logBetter writes to the logs that a node may be a better pick by now.
func (c *Cluster) logBetter(i int32, static bool) {
	n := &c.nodes[i]
	n.stamps[better]++
	c.logs[better].add(change{node: i, stamp: n.stamps[better], static: static})
	c.logChange(i, static)
}

// logChange writes to the log of all changes, if anybody reads it.
func (c *Cluster) logChange(i int32, static bool) {
	c.changed++
	if c.listeners == 0 {
		return
	}
	n := &c.nodes[i]
	n.stamps[every]++
	c.logs[every].add(change{node: i, stamp: n.stamps[every], static: static})
}
