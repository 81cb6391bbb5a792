package fleet

import (
	"slices"

	"github.com/skalds-go/skalds/pkg/registry"
)

// SetDraining sets which nodes take no new work because a person drains them. It takes effect at once. It reports
// whether a node may take work again.
func (a *Availability) SetDraining(nodes []string) (available bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := make(map[string]bool, len(nodes))
	for _, id := range nodes {
		next[id] = true
		a.live.touchNode(id)
	}
	for id := range a.draining {
		available = available || !next[id]
		a.live.touchNode(id)
	}
	a.draining = next
	return available
}

// Drain is what a node has yet to be told: to drain, or not to drain any more.
type Drain struct {
	To    Target
	Drain bool
}

// Drains returns the nodes whose heartbeats do not yet say what people want of them.
func (a *Availability) Drains() []Drain {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []Drain
	for k, m := range a.live.members {
		if want := a.draining[k.Node]; !m.gone && m.reachable() && want != (m.heartbeat.State == registry.Draining) {
			list = append(list, Drain{To: m.target(), Drain: want})
		}
	}
	slices.SortFunc(list, func(a, b Drain) int { return compareKeys(a.To.Key, b.To.Key) })
	return list
}
