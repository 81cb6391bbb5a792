package fleet

import "slices"

// PickedBy says how the node of a claim was picked; empty if it is not known.
func (f *Fleet) PickedBy(claimID string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e, ok := f.claims[claimID]; ok {
		return e.Why
	}
	return ""
}

// Unbegun gives the claims of which the node has not said that they began, of those that match, at most limit of them.
func (f *Fleet) Unbegun(matches func(c *Claim) bool, limit int) []Claim {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.counts.unstarted == 0 {
		return nil
	}
	return f.find(func(e *entry) bool { return !e.reported && matches(&e.Claim) }, limit)
}

// Holders gives the claims that match, at most limit of them.
func (f *Fleet) Holders(matches func(c *Claim) bool, limit int) []Claim {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.find(func(e *entry) bool { return matches(&e.Claim) }, limit)
}

// find gives claims in the order of their ids.
func (f *Fleet) find(matches func(e *entry) bool, limit int) []Claim {
	var list []Claim
	for _, e := range f.claims {
		if matches(e) {
			list = append(list, e.Claim)
		}
	}
	slices.SortFunc(list, byID)
	return list[:min(len(list), limit)]
}

// HasKey says whether the claim holds a permit of a concurrency key.
func (c *Claim) HasKey(key string) bool { return holds(c.KeyPermit, key) }

// InPool says whether the claim holds a permit of a pool.
func (c *Claim) InPool(pool string) bool { return holds(c.PoolPermit, pool) }

func holds(permit, name string) bool {
	of, _, ok := number(permit)
	return ok && of == name
}
