package placement

// Throttle says whether a node's rate limit lets it take anything now. One that is not there is none.
func (c *Cluster) Throttle(id string, on bool) {
	i, ok := c.ids[id]
	if !ok || c.nodes[i].throttled == on {
		return
	}
	n := &c.nodes[i]
	c.count(n, -1)
	c.throttle(n, on)
	c.count(n, +1)
	if on {
		c.note(i, false)
	} else {
		c.noteBetter(i, false)
	}
}

// Served is how many tasks ROUND_ROBIN counts for a node; 0 for one that is not there.
func (c *Cluster) Served(id string) int64 {
	i, ok := c.ids[id]
	if !ok {
		return 0
	}
	if len(c.joiners) > 0 {
		c.seat()
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
		c.seat()
	}
	n := &c.nodes[i]
	n.served = max(0, n.served+by)
	c.changed++
	c.noteBetter(i, false)
}
