package placement

// SetRateLimited sets whether a node is at its rate limit. Such a node takes nothing. An unknown id is ignored.
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

func (c *Cluster) setRateLimited(n *node, on bool) {
	n.rateLimited = on
	if on {
		c.rateLimited++
	} else {
		c.rateLimited--
	}
}
