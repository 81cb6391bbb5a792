package placement

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Cluster is the leader's index of the nodes that take work. Set and Remove update it between rounds. It is not safe
// for concurrent use.
//
// A round calls Begin; Set and Remove for the nodes that have changed; Place for each task, most urgent first; and
// Unplace for each claim that was lost or could not be sent. A placed task counts at once in the node's load, until the
// next Set of the node replaces the load. Load and LoadByClass of that Set must therefore include the tasks that were
// placed there and not taken back.
//
// Decisions do not allocate. A Request does, unless the caller reuses it for the next task.
type Cluster struct {
	nodes []node
	ids   map[string]int32
	free  []int32 // indices of nodes that are not in use
	index index

	logs      [2]changes
	changed   uint64 // number of changes of nodes other than placements
	listeners int    // number of candidate sets that read the log of all changes

	table      []*definition
	candidates candidateSets
	rng        *rand.Rand

	freeSlots, freePrefetch int     // of all nodes, see Free
	rateLimited             int     // nodes
	joiners                 []int32 // nodes without a round-robin count yet, see countJoiners
	kept                    []int32 // nodes that are kept free for tasks that must be alone

	clock    int64  // number of placements so far
	setCalls uint64 // number of calls of Set so far
	joins    uint64 // number of nodes that have joined so far
	epochs   uint64 // number of changes of the members of candidate sets so far
	tickets  tickets

	favourites favourites // of sticky keys

	exclusions uint64 // number of requests that excluded nodes so far
	excluding  uint64 // number of the present request among them, or nobody
}

// NewCluster returns a cluster without nodes. The seed decides what RANDOM and POWER_OF_TWO pick.
func NewCluster(seed uint64) *Cluster {
	return &Cluster{ids: make(map[string]int32), index: make(index), table: table, candidates: newCandidateSets(),
		excluding: nobody, rng: rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15))}
}

// Len returns the number of nodes.
func (c *Cluster) Len() int { return len(c.ids) }

// Free returns the number of free slots on all nodes, and the number of slots that short tasks can still prefetch
// there. A node that is rate limited, or kept free for a task that must be alone, has none of either.
func (c *Cluster) Free() (slots, prefetch int) { return c.freeSlots, c.freePrefetch }

// Begin begins a round. Nodes that were kept free for a task that must be alone take work again, until Place keeps one
// free anew.
func (c *Cluster) Begin() {
	for _, i := range c.kept {
		if n := &c.nodes[i]; n.kept {
			c.count(n, -1)
			n.kept = false
			c.count(n, +1)
			c.logBetter(i, false)
		}
	}
	c.kept = c.kept[:0]
}

// count adds a node's free slots to the totals (sign is +1) or subtracts them (-1). A change of them is made between
// the two calls.
func (c *Cluster) count(n *node, sign int) {
	if !n.alive || n.rateLimited || n.kept {
		return
	}
	c.freeSlots += sign * max(0, n.capacity-n.load)
	c.freePrefetch += sign * max(0, n.capacity+n.prefetch-max(n.load, n.capacity))
}

// Set adds a node, or replaces what is known of it.
func (c *Cluster) Set(n Node) {
	i, known := c.ids[n.ID]
	texts := !known || !slices.Equal(c.nodes[i].classes, n.Classes) || !maps.Equal(c.nodes[i].labels, n.Labels)
	if !known {
		i = c.join(&n)
	}
	s := &c.nodes[i]
	c.setCalls++
	s.set = c.setCalls
	if texts {
		c.index.remove(s, i)
		s.classes, s.labels = n.Classes, n.Labels
		c.index.add(s, i)
	}
	static := texts || s.capacity != n.Capacity || s.prefetch != n.Prefetch
	c.count(s, -1)
	grown := n.Load < s.load || s.rateLimited && !n.RateLimited
	moved := s.setReadings(&n) || n.Load != s.load || s.rateLimited != n.RateLimited
	limits, freed := s.setLimits(&n)
	if s.rateLimited != n.RateLimited {
		c.setRateLimited(s, n.RateLimited)
	}
	s.capacity, s.prefetch, s.load = n.Capacity, n.Prefetch, n.Load
	c.count(s, +1)
	static, grown = static || limits, grown || freed
	switch {
	case static || grown:
		c.logBetter(i, static)
	case moved:
		c.logChange(i, false)
	}
}

// join adds a node without its figures and returns its index.
func (c *Cluster) join(n *Node) int32 {
	var i int32
	if k := len(c.free); k > 0 {
		i, c.free = c.free[k-1], c.free[:k-1]
	} else {
		i = int32(len(c.nodes))
		c.nodes = append(c.nodes, node{})
	}
	c.joins++
	s := &c.nodes[i]
	*s = node{alive: true, id: n.ID, joined: c.joins, stamps: s.stamps, served: n.Served, joining: n.Served == 0, decay: 1}
	if s.joining {
		c.joiners = append(c.joiners, i)
	}
	c.ids[n.ID] = i
	return i
}

// setReadings sets a node's readings and reports whether they have changed.
func (n *node) setReadings(to *Node) bool {
	cpu, memory, fresh := min(to.CPU, 1), min(to.Memory, 1), to.Fresh
	if n.cpu == cpu && n.memory == memory && n.fresh == fresh && n.age == to.Age {
		return false
	}
	n.cpu, n.memory, n.fresh, n.age = cpu, memory, fresh, to.Age
	n.decay = math.Exp2(-float64(to.Age) / float64(halfLife))
	return true
}

// halfLife is the age at which a reading counts half.
const halfLife = 10 * time.Second

// setLimits sets a node's capacities by class. It reports whether they have changed, and whether a class may have more
// free slots than before.
func (n *node) setLimits(to *Node) (changed, freed bool) {
	if len(to.ByClass) == 0 {
		changed = len(n.limits) > 0
		n.limits, n.limited = nil, false
		return changed, false
	}
	changed = len(n.limits) != len(to.ByClass)
	for class, capacity := range to.ByClass {
		at := n.limit(class)
		if at < 0 || n.limits[at].capacity != capacity {
			changed = true
			break
		}
		load := to.LoadByClass[class]
		freed = freed || load < n.limits[at].load
		n.limits[at].load = load
	}
	if changed {
		n.limits, n.limited = n.limits[:0], true
		for class, capacity := range to.ByClass {
			n.limits = append(n.limits, limit{class: class, capacity: capacity, load: to.LoadByClass[class]})
		}
	}
	return changed, freed
}

// Remove removes a node. An unknown id is ignored.
func (c *Cluster) Remove(id string) {
	i, ok := c.ids[id]
	if !ok {
		return
	}
	n := &c.nodes[i]
	c.count(n, -1)
	if n.rateLimited {
		c.setRateLimited(n, false)
	}
	same := func(k int32) bool { return k == i }
	if n.kept {
		c.kept = slices.DeleteFunc(c.kept, same)
	}
	if n.joining {
		c.joiners = slices.DeleteFunc(c.joiners, same)
	}
	c.index.remove(n, i)
	delete(c.ids, id)
	n.alive, n.kept, n.joining = false, false, false
	n.classes, n.labels, n.limits, n.limited = nil, nil, nil, false
	c.free = append(c.free, i)
	c.logBetter(i, true)
}
