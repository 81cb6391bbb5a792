package placement

import "fmt"

var roundRobin = definition{
	name: RoundRobin,
	choose: func(s *stage) chooser {
		r := &rotating{}
		r.ranking = rankingOf(s, r.count)
		return r
	},
	score: func(*scan) (rank, func(n *node) string) {
		return func(n *node) float64 { return float64(n.served) },
			func(n *node) string { return fmt.Sprintf("%d tasks given to it so far", n.served) }
	},
}

// rotating is the chooser of ROUND_ROBIN.
type rotating struct {
	ranking
	highest int64 // highest count of any member so far
}

// count returns the count of a node. It first raises the count, so that the node is owed no more than its capacity.
func (r *rotating) count(n *node) float64 {
	r.highest = max(r.highest, n.served)
	n.served = max(n.served, r.highest-int64(n.capacity))
	return float64(n.served)
}

// Served returns the round-robin count of a node, or 0 for an unknown id.
func (c *Cluster) Served(id string) int64 {
	i, ok := c.ids[id]
	if !ok {
		return 0
	}
	c.countJoiners()
	return c.nodes[i].served
}

// Recount adds to the round-robin count of a node. The count does not fall below 0. An unknown id is ignored.
func (c *Cluster) Recount(id string, by int64) {
	i, ok := c.ids[id]
	if !ok || by == 0 {
		return
	}
	c.countJoiners()
	n := &c.nodes[i]
	n.served = max(0, n.served+by)
	c.changed++
	c.logBetter(i, false)
}

// countJoiners gives each new node without a count the lowest count of the other nodes.
func (c *Cluster) countJoiners() {
	if len(c.joiners) > 0 {
		c.setLowestCounts()
	}
}

func (c *Cluster) setLowestCounts() {
	lowest, known := int64(0), false
	for i := range c.nodes {
		if n := &c.nodes[i]; n.alive && !n.joining && (!known || n.served < lowest) {
			lowest, known = n.served, true
		}
	}
	for _, i := range c.joiners {
		c.nodes[i].served, c.nodes[i].joining = lowest, false
	}
	c.joiners = c.joiners[:0]
}
