package fleet

import (
	"slices"

	"github.com/skalds-go/skalds/pkg/registry"
)

// ToCompare returns the next incarnations whose task lists should be compared with what they were sent, at most limit
// of them. Each that has something takes its turn.
func (l *Liveness) ToCompare(limit int) []Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []Key
	for k, m := range l.members {
		h := &m.heartbeat
		if m.present && !m.gone && !m.evicted && h.Mode == registry.ModeNode && (len(m.claims) > 0 || h.Running+h.Queued > 0) {
			list = append(list, k)
		}
	}
	slices.SortFunc(list, compareKeys)
	if len(list) > limit {
		at, found := slices.BinarySearchFunc(list, l.comparedTo, compareKeys)
		if found {
			at++
		}
		list = slices.Concat(list[at:], list[:at])[:limit]
	}
	if len(list) > 0 {
		l.comparedTo = list[len(list)-1]
	}
	return list
}

// Missing returns the claims that an incarnation has reported as begun and that it has forgotten, since they are absent
// from its task list. The list must have been made when the node knew the claim for certain: its heartbeat is newer
// than the report or, for a claim that had begun before this leadership, the node had seen this leader's term.
func (c *Claims) Missing(n *registry.Node, term int64) []Claim {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, ok := c.live.members[Key{n.ID, n.Incarnation}]
	if !ok || m.gone {
		return nil
	}
	listed := make(map[string]bool, len(n.Tasks))
	for _, t := range n.Tasks {
		listed[t.ClaimID] = true
	}
	return m.claimsWhere(func(e *entry) bool {
		knew := e.heartbeat > 0 && n.Counter > e.heartbeat || e.inherited && n.Term >= term
		return e.phase == sent && e.reported && knew && !listed[e.ID]
	})
}

// Orphans returns what an incarnation holds and has not ended, and for which this leader knows no claim.
func (c *Claims) Orphans(n *registry.Node) []registry.HeldTask {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []registry.HeldTask
	for _, t := range n.Tasks {
		if _, known := c.claims[t.ClaimID]; !known && !t.State.Final() {
			list = append(list, t)
		}
	}
	return list
}
