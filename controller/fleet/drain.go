package fleet

import (
	"slices"

	"github.com/skalds-go/skalds/pkg/registry"
)

// SetDraining says which nodes take no work since a person wants it so. It reports whether one may take work again by that.
func (f *Fleet) SetDraining(nodes []string) (fresh bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := make(map[string]bool, len(nodes))
	for _, id := range nodes {
		next[id] = true
	}
	for id := range f.draining {
		fresh = fresh || !next[id]
		f.touchNode(id)
	}
	for id := range next {
		f.touchNode(id)
	}
	f.draining = next
	return fresh
}

// Drain is what a node is yet to be told: to drain, or to end that.
type Drain struct {
	To    Target
	Drain bool
}

// Drains gives the nodes whose heartbeats do not yet say what people want of them.
func (f *Fleet) Drains() []Drain {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []Drain
	for k, m := range f.members {
		if want := f.draining[k.Node]; !m.gone && (m.present || m.aloud) && want != (m.beat.State == registry.Draining) {
			list = append(list, Drain{To: Target{Key: k, Partition: m.beat.Partition}, Drain: want})
		}
	}
	slices.SortFunc(list, func(a, b Drain) int { return compareKeys(a.To.Key, b.To.Key) })
	return list
}
