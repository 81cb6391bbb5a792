package fleet

import (
	"slices"
	"time"

	"github.com/skalds-go/skalds/pkg/registry"
)

// ToCompare gives the next incarnations whose lists of tasks are to be compared with what they were sent, at most limit of them: each
// that has something comes in its turn.
func (f *Fleet) ToCompare(limit int) []Key {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []Key
	for k, m := range f.members {
		if m.present && !m.gone && !m.evicted && m.beat.Mode == registry.ModeNode && (len(m.claims) > 0 || m.beat.Running+m.beat.Queued > 0) {
			list = append(list, k)
		}
	}
	slices.SortFunc(list, compareKeys)
	if len(list) > limit {
		at, found := slices.BinarySearchFunc(list, f.comparedTo, compareKeys)
		if found {
			at++
		}
		list = slices.Concat(list[at:], list[:at])[:limit]
	}
	if len(list) > 0 {
		f.comparedTo = list[len(list)-1]
	}
	return list
}

// Missing gives the claims that an incarnation has reported as begun, and whose absence from its list means that it has forgotten them. The
// list must have been made after the claim was known to the node for certain: its heartbeat is newer than the report, or, for a claim that had
// begun before this leadership, its node had seen this leader's term.
func (f *Fleet) Missing(n *registry.Node, term int64) []Claim {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.members[Key{n.ID, n.Incarnation}]
	if !ok || m.gone {
		return nil
	}
	held := make(map[string]bool, len(n.Tasks))
	for _, t := range n.Tasks {
		held[t.ClaimID] = true
	}
	var list []Claim
	for id, e := range m.claims {
		known := e.seen > 0 && n.Counter > e.seen || e.inherited && n.Term >= term
		if e.phase == sent && e.reported && known && !held[id] {
			list = append(list, e.Claim)
		}
	}
	slices.SortFunc(list, byID)
	return list
}

// Orphans gives what an incarnation holds and has not ended, and what this leader knows of no claim for.
func (f *Fleet) Orphans(n *registry.Node) []registry.HeldTask {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []registry.HeldTask
	for _, t := range n.Tasks {
		if _, known := f.claims[t.ClaimID]; !known && !t.State.Final() {
			list = append(list, t)
		}
	}
	return list
}

// Stuck counts the claims of nodes that nobody hears of: they wait for their node to come back, or to be given away.
func (f *Fleet) Stuck(now time.Duration) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, m := range f.members {
		if !(m.present && now-m.changedAt <= f.cfg.StaleAfter || f.audible(m, now)) {
			n += len(m.claims)
		}
	}
	return n
}
