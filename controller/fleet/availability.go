package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/registry"
)

// Availability is which nodes take new work, and with what load.
type Availability struct {
	mu       *sync.Mutex
	cfg      Config
	live     *Liveness
	cordons  map[string]Cordon // by node id
	draining map[string]bool   // by node id

	// What Changes has told.
	available    map[string]*member // the incarnation that takes work, by node id
	nextLook     time.Duration      // when time alone may change whether some node takes work; 0 = never
	nextReturn   time.Duration      // the earliest of these at which one may begin to; 0 = never
	recounted    bool               // ROUND_ROBIN counts what older leaders gave the nodes
	firstChanges time.Duration      // when Changes first told of a node; 0 = not yet
}

func newAvailability(mu *sync.Mutex, cfg Config, live *Liveness) *Availability {
	return &Availability{mu: mu, cfg: cfg, live: live, cordons: make(map[string]Cordon), available: make(map[string]*member)}
}

// Placer places tasks and is told what changes about the nodes that take work.
type Placer interface {
	// Set tells of a node that takes work, as it is now.
	Set(n placement.Node)
	// Remove tells of one that takes no work any more.
	Remove(id string)
	// Recount tells that so many more tasks were given to a node than Set has told.
	Recount(id string, by int64)
}

// Changes tells a placer what has changed since the last call.
func (a *Availability) Changes(now time.Duration, to Placer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.recount(now, to)
	all := a.live.changed == nil
	if all {
		a.live.changed = make(map[string]struct{})
	}
	if a.nextLook != 0 && now >= a.nextLook {
		a.nextLook, a.nextReturn = 0, 0
		all = true
	}
	if all {
		for id := range a.live.nodes {
			a.live.touchNode(id)
		}
	}
	// In order, so that the same history has the same decisions.
	for _, id := range slices.Sorted(maps.Keys(a.live.changed)) {
		if m := a.pick(id, now); m != nil {
			a.available[id] = m
			a.lookAt(a.live.freshUntil(m))
			to.Set(a.node(m, now))
		} else if _, was := a.available[id]; was {
			delete(a.available, id)
			to.Remove(id)
		}
	}
	clear(a.live.changed)
}

// pick returns the incarnation of a node that takes work; nil if none does. Of two that live it is the one in the
// registry, or else the newer one. It notes when those that take no work now may do so.
func (a *Availability) pick(id string, now time.Duration) *member {
	var best *member
	for _, m := range a.live.nodes[id] {
		if a.takesWork(m, now) {
			if best == nil || m.present || !best.present {
				best = m
			}
			continue
		}
		if back := max(m.backoffUntil, a.cordons[id].Until); now < back {
			a.lookAt(back)
			if a.nextReturn == 0 || back < a.nextReturn {
				a.nextReturn = back
			}
		}
	}
	return best
}

// lookAt notes a time at which a node may begin or cease to take work although nothing happens to it.
func (a *Availability) lookAt(at time.Duration) {
	if a.nextLook == 0 || at < a.nextLook {
		a.nextLook = max(at, 1)
	}
}

// NextReturn returns the earliest time at which a node that is left out for a time may take work again, as of the last
// Changes; 0 = there is none.
func (a *Availability) NextReturn() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.nextReturn
}

// AssignTarget returns where the events of a node go that takes work, as of the last Changes.
func (a *Availability) AssignTarget(id string) (Target, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m, ok := a.available[id]
	if !ok {
		return Target{}, false
	}
	return m.target(), true
}

// View returns the nodes that take work now, ordered by id, and why each other node that is there takes none.
func (a *Availability) View(now time.Duration) (available []placement.Node, not map[string]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	not = make(map[string]string)
	for _, m := range a.live.members {
		if reason := a.unavailable(m, now); reason == "" {
			available = append(available, a.node(m, now))
		} else if (m.present || a.live.heardOverKafka(m, now)) && !m.gone {
			not[m.key.Node] = reason
		}
	}
	for i := range available {
		delete(not, available[i].ID)
	}
	slices.SortFunc(available, func(a, b placement.Node) int { return cmp.Compare(a.ID, b.ID) })
	return available, not
}

// Draining is the reason that View returns for a node that drains.
const Draining = "draining"

// takesWork reports whether a member takes new work.
func (a *Availability) takesWork(m *member, now time.Duration) bool {
	return a.unavailable(m, now) == ""
}

// unavailable returns why a member takes no new work; empty if it takes work.
func (a *Availability) unavailable(m *member, now time.Duration) string {
	cordon, cordoned := a.cordoned(m.key.Node, now)
	switch n := &m.heartbeat; {
	case m.gone:
		return "it is gone"
	case cordoned:
		return "cordoned: " + cordon.Reason
	case a.draining[m.key.Node] || n.State == registry.Draining:
		return Draining
	case n.Mode != registry.ModeNode:
		return "an edge node, which runs its own list"
	case n.Protocol != a.cfg.Protocol:
		return fmt.Sprintf("it speaks version %d of the events, not %d", n.Protocol, a.cfg.Protocol)
	case m.refused || now < m.backoffUntil:
		return "it refused a task or could not be reached, and has not been heard of since"
	case m.invalid != "":
		return "its heartbeat is invalid: " + m.invalid
	case m.evicted:
		return "evicted from the registry"
	case n.Capacity <= 0:
		return "it has no capacity"
	case n.State != registry.Online:
		return fmt.Sprintf("its state is %q, not %q", n.State, registry.Online)
	case !a.live.fresh(m, now):
		return "its heartbeats have stopped"
	}
	return ""
}

// recount lets ROUND_ROBIN count what older leaders gave each node. A node says that in its heartbeats as soon as it
// knows this leader's term. It is counted for all nodes at once: a node that were counted alone would get nothing, or
// everything, until the others are. Silent nodes are waited for no longer than StaleAfter.
func (a *Availability) recount(now time.Duration, to Placer) {
	if a.recounted || len(a.available) == 0 {
		return
	}
	if a.firstChanges == 0 {
		a.firstChanges = max(now, 1)
	}
	lowest, known := int64(0), false
	for _, m := range a.available {
		switch count := m.heartbeat.RoundRobinCount; {
		case m.heartbeat.Term < a.cfg.Term:
			if now-a.firstChanges <= a.cfg.StaleAfter {
				return
			}
		case count > 0 && (!known || count < lowest):
			lowest, known = count, true
		}
	}
	a.recounted = true
	for _, id := range slices.Sorted(maps.Keys(a.available)) {
		m := a.available[id]
		by := m.heartbeat.RoundRobinCount
		if by == 0 || m.heartbeat.Term < a.cfg.Term {
			by = lowest // it has just joined, or has not said its count
		}
		to.Recount(id, by)
	}
}

// node returns a member as placement sees it.
func (a *Availability) node(m *member, now time.Duration) placement.Node {
	h := &m.heartbeat
	n := placement.Node{ID: m.key.Node, Classes: h.Classes, Labels: h.Labels, Capacity: h.Capacity, Prefetch: h.Prefetch,
		ByClass: h.CapacityByClass, Load: m.load(), LoadByClass: m.slotsByClass, CPU: -1, Memory: -1,
		Age: max(now-m.seenAt, 0), Fresh: m.newSlots}
	if h.CPUs > 0 {
		n.CPU = h.CPU / float64(h.CPUs)
	}
	if h.MemoryTotal > 0 {
		n.Memory = float64(h.Memory) / float64(h.MemoryTotal)
	}
	if a.recounted && h.Term >= a.cfg.Term {
		n.Served = h.RoundRobinCount
	}
	return n
}
