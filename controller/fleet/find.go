package fleet

import "time"

// PickedBy returns how the node of a claim was picked; empty if that is not known.
func (c *Claims) PickedBy(claimID string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.claims[claimID]; ok {
		return e.Why
	}
	return ""
}

// Due returns claims that were sent longer than after ago and that their nodes have not reported, at most limit of
// them.
func (c *Claims) Due(now, after time.Duration, limit int) []Claim {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	return claimsWhere(c.claims, func(e *entry) bool {
		if n == limit || !e.due(now, after) || c.live.members[e.Key].gone {
			return false
		}
		n++
		return true
	})
}

// Unbegun returns the matching claims that no node has reported as begun, at most limit of them, in the order of their
// ids.
func (c *Claims) Unbegun(matches func(c *Claim) bool, limit int) []Claim {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unstarted == 0 {
		return nil
	}
	list := claimsWhere(c.claims, func(e *entry) bool { return !e.reported && matches(&e.Claim) })
	return list[:min(len(list), limit)]
}

// Holders returns the matching claims, at most limit of them, in the order of their ids.
func (c *Claims) Holders(matches func(c *Claim) bool, limit int) []Claim {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := claimsWhere(c.claims, func(e *entry) bool { return matches(&e.Claim) })
	return list[:min(len(list), limit)]
}

// Unanswered returns the claims that an incarnation has not reported, and how many it has reported as begun.
func (c *Claims) Unanswered(k Key) (claims []Claim, begun int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, ok := c.live.members[k]
	if !ok {
		return nil, 0
	}
	claims = m.claimsWhere(func(e *entry) bool { return !e.reported })
	return claims, len(m.claims) - len(claims)
}

// HasKey reports whether the claim holds a permit of a concurrency key.
func (c *Claim) HasKey(key string) bool { return isPermitOf(c.KeyPermit, key) }

// InPool reports whether the claim holds a permit of a pool.
func (c *Claim) InPool(pool string) bool { return isPermitOf(c.PoolPermit, pool) }

func isPermitOf(permit, name string) bool {
	of, _, ok := parsePermit(permit)
	return ok && of == name
}
