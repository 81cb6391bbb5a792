package placement

// SetRateLimited reports whether a node's rate limit lets it take anything now. One that is not there is none.
func (c *Cluster) SetRateLimited(id string, on bool) {
	i, ok := c.ids[id]
	if !ok || c.nodes[i].rateLimited == on {
		return
	}
	n := &c.nodes[i]
	c.count(n, -1)
	c.setRateLimited(n, on)
	c.count(n, +1)
	if on {
		c.logChange(i, false)
	} else {
		c.logBetter(i, false)
	}
}

// Served is how many tasks ROUND_ROBIN counts for a node; 0 for one that is not there.
func (c *Cluster) Served(id string) int64 {
	i, ok := c.ids[id]
	if !ok {
		return 0
	}
	if len(c.joiners) > 0 {
		c.countJoiners()
	}
	return c.nodes[i].served
}

// Recount corrects how many tasks ROUND_ROBIN counts for a node.
func (c *Cluster) Recount(id string, by int64) {
	i, ok := c.ids[id]
	if !ok || by == 0 {
		return
	}
	if len(c.joiners) > 0 {
		c.countJoiners()
	}
	n := &c.nodes[i]
	n.served = max(0, n.served+by)
	c.changed++
	c.logBetter(i, false)
}
