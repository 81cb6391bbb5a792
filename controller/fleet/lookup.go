package fleet

import "slices"

// Why says how the node of a claim was picked; empty if it is not known.
func (f *Fleet) Why(claimID string) string {
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
	var list []Claim
	for _, e := range f.claims {
		if !e.reported && matches(&e.Claim) {
			list = append(list, e.Claim)
		}
	}
	slices.SortFunc(list, byID)
	return list[:min(len(list), limit)]
}
