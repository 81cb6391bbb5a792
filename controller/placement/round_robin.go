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
	highest int64 // count of a member that was seen
}

func (r *rotating) count(n *node) float64 {
	r.highest = max(r.highest, n.served)
	n.served = max(n.served, r.highest-int64(n.capacity)) // what it is owed at most
	return float64(n.served)
}

// Served is how many tasks ROUND_ROBIN counts for a node; 0 for one that is not there.
func (c *Cluster) Served(id string) int64 {
	i, ok := c.ids[id]
	if !ok {
		return 0
	}
	c.countJoiners()
	return c.nodes[i].served
}

// Recount corrects how many tasks ROUND_ROBIN counts for a node.
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
