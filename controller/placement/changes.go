package placement

// changes is a log of the last changes of nodes. A reader that is more than logSize changes behind must look at all
// nodes.
type changes struct {
	ring []change
	end  uint64 // number of changes so far
}

// change is a change of one node.
type change struct {
	node   int32
	stamp  uint32 // of the node after the change; another stamp at the node means a later change
	static bool   // whether the node may match other requests than before
}

// logSize is the number of changes that a log keeps.
const logSize = 1 << 14

// The logs.
const (
	better = iota // changes that can make a node a better pick, such as a lower load, another label or a lower count
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

// logBetter logs that a node may have become a better pick.
func (c *Cluster) logBetter(i int32, static bool) {
	n := &c.nodes[i]
	n.stamps[better]++
	c.logs[better].add(change{node: i, stamp: n.stamps[better], static: static})
	c.logChange(i, static)
}

// logChange logs a change in the log of all changes, if a candidate set reads that log.
func (c *Cluster) logChange(i int32, static bool) {
	c.changed++
	if c.listeners == 0 {
		return
	}
	n := &c.nodes[i]
	n.stamps[every]++
	c.logs[every].add(change{node: i, stamp: n.stamps[every], static: static})
}
