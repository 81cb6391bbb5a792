package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/registry"
)

// touch notes that a member may be another to the dispatcher than Changes has said.
func (f *Fleet) touch(m *member) { f.touchNode(m.key.Node) }

func (f *Fleet) touchNode(id string) {
	if f.changed != nil { // until somebody asks for changes, none are kept
		f.changed[id] = struct{}{}
	}
}

// Placer is who places tasks, and is told what changes about the nodes that take work.
type Placer interface {
	// Set tells of a node that takes work, as it is now.
	Set(n placement.Node)
	// Remove tells of one that takes work no more.
	Remove(id string)
	// Recount says that so many more tasks were given to a node than it was told.
	Recount(id string, by int64)
}

// Changes tells what has changed since it was called last.
func (f *Fleet) Changes(now time.Duration, to Placer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.recount(now, to)
	all := f.changed == nil
	if all {
		f.changed = make(map[string]struct{})
	}
	if f.nextLook != 0 && now >= f.nextLook {
		f.nextLook, f.nextBack = 0, 0
		all = true
	}
	if all {
		for id := range f.nodes {
			f.touchNode(id)
		}
	}
	// In order, so that the same history has the same decisions.
	for _, id := range slices.Sorted(maps.Keys(f.changed)) {
		if m := f.taker(id, now); m != nil {
			f.taking[id] = m
			f.lookAt(f.takesUntil(m))
			to.Set(f.node(m, now))
		} else if _, took := f.taking[id]; took {
			delete(f.taking, id)
			to.Remove(id)
		}
	}
	clear(f.changed)
}

// taker gives the incarnation of a node that takes work, if one does: of two that live, the one in the registry, or else the newer one. Of
// those that do not, it notes when they may.
func (f *Fleet) taker(id string, now time.Duration) *member {
	var best *member
	for _, m := range f.nodes[id] {
		if f.takesWork(m, now) {
			if best == nil || m.present || !best.present {
				best = m
			}
			continue
		}
		if back := max(m.pausedUntil, f.asides[id].Until); now < back {
			f.lookAt(back)
			if f.nextBack == 0 || back < f.nextBack {
				f.nextBack = back
			}
		}
	}
	return best
}

// View gives the nodes that take work now, ordered by id, and why each other node that is there takes none.
func (f *Fleet) View(now time.Duration) (taking []placement.Node, not map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	not = make(map[string]string)
	for _, m := range f.members {
		if f.takesWork(m, now) {
			taking = append(taking, f.node(m, now))
		} else if (m.present || f.audible(m, now)) && !m.gone {
			not[m.key.Node] = f.why(m, now)
		}
	}
	for i := range taking {
		delete(not, taking[i].ID)
	}
	slices.SortFunc(taking, func(a, b placement.Node) int { return cmp.Compare(a.ID, b.ID) })
	return taking, not
}

// Draining is what View says of a node that takes no work since it drains.
const Draining = "draining"

// why says why a member that is there takes no work.
func (f *Fleet) why(m *member, now time.Duration) string {
	a, aside := f.asides[m.key.Node]
	switch {
	case aside && now < a.Until:
		return "set aside: " + a.Reason
	case f.draining[m.key.Node] || m.beat.State == registry.Draining:
		return Draining
	case m.beat.Mode != registry.ModeNode:
		return "an edge node, which runs its own list"
	case m.beat.Protocol != f.cfg.Protocol:
		return fmt.Sprintf("it speaks version %d of the events, not %d", m.beat.Protocol, f.cfg.Protocol)
	case m.refused || now < m.pausedUntil:
		return "it refused a task or could not be reached, and has not been heard of since"
	case m.nonsense != "":
		return "its heartbeat is not believed: " + m.nonsense
	case m.evicted:
		return "put out of the registry"
	case m.beat.Capacity <= 0:
		return "it has no capacity"
	}
	return "its heartbeats have stopped"
}

// NextReturn is the earliest time at which a node that was left out for a time may take work again, as of the last Changes; 0 = there is none.
func (f *Fleet) NextReturn() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.nextBack
}

// lookAt notes a time at which a node may begin or cease to take work although nothing happens to it.
func (f *Fleet) lookAt(at time.Duration) {
	if f.nextLook == 0 || at < f.nextLook {
		f.nextLook = max(at, 1)
	}
}

func (f *Fleet) takesWork(m *member, now time.Duration) bool {
	if a, aside := f.asides[m.key.Node]; aside && now < a.Until {
		return false
	}
	return !m.gone && !m.evicted && !m.refused && m.nonsense == "" && !f.draining[m.key.Node] &&
		m.beat.Mode == registry.ModeNode && m.beat.State == registry.Online && m.beat.Protocol == f.cfg.Protocol && m.beat.Capacity > 0 && now >= m.pausedUntil &&
		(m.present && now-m.changedAt <= f.cfg.StaleAfter || f.audible(m, now))
}

// takesUntil is when a member that takes work ceases to, if nothing is heard of it.
func (f *Fleet) takesUntil(m *member) time.Duration {
	until := time.Duration(0)
	if m.present {
		until = m.changedAt
	}
	if m.aloud {
		until = max(until, m.heardAt)
	}
	return until + f.cfg.StaleAfter + 1
}

// recount lets what the older leaders have given each node count in ROUND_ROBIN. A node says that in its heartbeats as soon as it knows of
// this leader's term. It counts for all nodes at once, since one that is counted alone would get nothing, or everything, until the others are;
// those that are silent are not waited for.
func (f *Fleet) recount(now time.Duration, to Placer) {
	if f.recounted || len(f.taking) == 0 {
		return
	}
	if f.firstLook == 0 {
		f.firstLook = max(now, 1)
	}
	lowest, known := int64(0), false
	for _, m := range f.taking {
		switch turn := m.beat.RoundRobinCount; {
		case m.beat.Term < f.cfg.Term:
			if now-f.firstLook <= f.cfg.StaleAfter {
				return
			}
		case turn > 0 && (!known || turn < lowest):
			lowest, known = turn, true
		}
	}
	f.recounted = true
	for _, id := range slices.Sorted(maps.Keys(f.taking)) {
		m := f.taking[id]
		by := m.beat.RoundRobinCount
		if by == 0 || m.beat.Term < f.cfg.Term {
			by = lowest // it has just joined, or is not known
		}
		to.Recount(id, by)
	}
}

// node is a member as placement sees it.
func (f *Fleet) node(m *member, now time.Duration) placement.Node {
	n := placement.Node{ID: m.key.Node, Classes: m.beat.Classes, Labels: m.beat.Labels, Capacity: m.beat.Capacity, Prefetch: m.beat.Prefetch,
		ByClass: m.beat.CapacityByClass, Load: m.load(), LoadByClass: m.classes, CPU: -1, Memory: -1, Age: max(now-m.beatAt, 0), Fresh: m.fresh}
	if m.beat.CPUs > 0 {
		n.CPU = m.beat.CPU / float64(m.beat.CPUs)
	}
	if m.beat.MemoryTotal > 0 {
		n.Memory = float64(m.beat.Memory) / float64(m.beat.MemoryTotal)
	}
	if f.recounted && m.beat.Term >= f.cfg.Term {
		n.Served = m.beat.RoundRobinCount
	}
	return n
}

// load is how many slots of a node are taken; one with a task that must be alone is full.
func (m *member) load() int {
	running, queued := m.beat.Slots()
	held := max(m.slots, running+queued-m.ended)
	if m.alone > 0 {
		return max(held, m.beat.Capacity+m.beat.Prefetch)
	}
	return held
}

// AssignTarget gives where the events of a node go that takes work, as Changes has said.
func (f *Fleet) AssignTarget(id string) (Target, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.taking[id]
	if !ok {
		return Target{}, false
	}
	return Target{Key: m.key, Partition: m.beat.Partition}, true
}
