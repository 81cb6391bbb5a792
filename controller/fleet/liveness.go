package fleet

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

// Liveness is which nodes are alive, and which are gone.
type Liveness struct {
	mu         *sync.Mutex
	cfg        Config
	members    map[Key]*member
	nodes      map[string][]*member // all incarnations, by node id
	runID      string               // of the registry, as of the last read
	failed     bool                 // the last read failed: the waits start again with the next
	comparedTo Key                  // the last whose task list was chosen for a comparison
	departures departures

	// changed are the ids of the nodes that may look different to the dispatcher since the last Changes; nil until the
	// first.
	changed map[string]struct{}
}

func newLiveness(mu *sync.Mutex, cfg Config) *Liveness {
	return &Liveness{mu: mu, cfg: cfg, members: make(map[Key]*member), nodes: make(map[string][]*member),
		departures: departures{byKey: make(map[Key]*departure)}}
}

// LostTimeout returns how long a node may be silent before its work is reassigned. It is longer than any node trusts
// itself.
func (l *Liveness) LostTimeout() time.Duration { return l.cfg.LostTimeout }

// RegistryFailed notes that the registry could not be read. The waits start again with the next read.
func (l *Liveness) RegistryFailed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = true
}

// Lost is an incarnation whose work must be reassigned, and how it was lost.
type Lost struct {
	Key
	Loss task.Loss
}

// Observe takes in a snapshot that was read between began and ended. It reports whether a node may take work that did
// not before, and returns the incarnations whose work must be reassigned now.
func (l *Liveness) Observe(snap registry.Snapshot, began, ended time.Duration) (available bool, lost []Lost) {
	l.mu.Lock()
	defer l.mu.Unlock()
	restart := l.failed || snap.RunID != l.runID
	l.failed, l.runID = false, snap.RunID
	there := make(map[Key]bool, len(snap.Nodes))
	for i := range snap.Nodes {
		n := &snap.Nodes[i]
		k := Key{n.ID, n.Incarnation}
		there[k] = true
		available = l.observe(l.member(k), n, restart, ended) || available
	}
	l.replace(snap.Nodes)
	for k, m := range l.members {
		if !there[k] && l.observeAbsence(m, restart, ended) {
			continue
		}
		if loss, ok := l.lost(m, began); ok {
			lost = append(lost, Lost{k, loss})
		}
	}
	slices.SortFunc(lost, func(a, b Lost) int { return compareKeys(a.Key, b.Key) })
	return available, lost
}

// observe takes in what a snapshot shows of a member. It reports whether the member may take work that did not before.
func (l *Liveness) observe(m *member, n *registry.Node, restart bool, ended time.Duration) (available bool) {
	moved := n.Counter != m.counter
	available = !m.gone && (!m.present && !l.heardOverKafka(m, ended) || moved && (m.refused || m.heartbeat.State != n.State))
	if !m.dated || !m.present || moved || restart {
		m.dated, m.confirmedBy = true, ended
	}
	if !m.known() || n.Counter > m.heartbeat.Counter {
		m.seenAt = ended
	}
	if moved {
		m.overKafka = false
		l.update(m, n)
		m.zombie = m.gone && !m.left && m.present
	}
	m.present, m.counter = true, n.Counter
	m.evicted = false // if it was, the registry does not refuse it any more
	if !m.gone {
		l.departures.remove(m.key)
	}
	l.touch(m)
	return available
}

// observeAbsence takes in that a snapshot does not show a member. It reports whether the member was forgotten.
func (l *Liveness) observeAbsence(m *member, restart bool, ended time.Duration) (forgotten bool) {
	if !m.dated || m.present || restart {
		m.dated, m.confirmedBy = true, ended
	}
	if m.present {
		m.present = false
		l.touch(m)
	}
	if len(m.claims) > 0 || l.heardOverKafka(m, ended) {
		return false
	}
	l.departures.add(m, ended)
	l.forget(m)
	return true
}

// replace takes in which incarnations are known to be dead, because others replace them.
func (l *Liveness) replace(nodes []registry.Node) {
	for i := range nodes {
		n := &nodes[i]
		if n.Replaces == "" {
			continue
		}
		if m, ok := l.members[Key{n.ID, n.Replaces}]; ok && !m.left {
			m.left, m.gone, m.replaced, m.crashed = true, true, true, n.Crashed
			l.touch(m)
		}
	}
}

// lost reports whether a member's work must be reassigned on a read that began then, and how the member was lost.
func (l *Liveness) lost(m *member, began time.Duration) (task.Loss, bool) {
	switch {
	case m.left && m.crashed:
		return task.LossDied, true
	case m.left:
		return task.LossLeft, true
	}
	// The partition of a node that was never seen is not known. It got its claims before this leader announced itself
	// on all partitions.
	if !m.announced && m.known() {
		return 0, false
	}
	wait := max(m.confirmedBy, m.announcedAt) + l.cfg.LostTimeout
	return task.LossSilent, began > wait && !(m.gone && len(m.claims) == 0)
}

// update takes in a heartbeat, unless a newer one is known.
func (l *Liveness) update(m *member, n *registry.Node) {
	if n.Counter < m.heartbeat.Counter {
		return
	}
	if n.Counter > m.heartbeat.Counter {
		m.newSlots = 0
	}
	m.heartbeat, m.endedSlots, m.refused = *n, 0, false
	m.invalid = registry.Validate(n, l.wallClock())
}

// wallClock returns the time in epoch ms; without a clock a time so late that no heartbeat is ahead of it.
func (l *Liveness) wallClock() int64 {
	if l.cfg.Now == nil {
		return math.MaxInt64 / 2
	}
	return l.cfg.Now().UnixMilli()
}

// maxMembers bounds how many incarnations are known by their heartbeats over Kafka. It is as many as the registry may
// hold.
const maxMembers = 100_000

// ObserveKafka takes in a heartbeat that came over Kafka and was read by now. It reports whether the heartbeat may be
// confirmed, and whether a node may take work that did not before.
func (l *Liveness) ObserveKafka(n *registry.Node, now time.Duration) (confirm, available bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := Key{n.ID, n.Incarnation}
	if _, known := l.members[k]; !known && len(l.members) >= maxMembers {
		return false, false
	}
	m := l.member(k)
	if m.gone || m.evicted || n.Counter <= m.kafkaCounter {
		return false, false
	}
	available = m.refused || !l.heardOverKafka(m, now) && now-m.confirmedBy > l.cfg.StaleAfter || !m.dated
	m.overKafka, m.kafkaCounter, m.kafkaAt = true, n.Counter, now
	m.dated, m.confirmedBy = true, max(m.confirmedBy, now)
	l.departures.remove(k)
	l.update(m, n)
	l.touch(m)
	return true, available
}

// heardOverKafka reports whether a heartbeat of the member came over Kafka within StaleAfter.
func (l *Liveness) heardOverKafka(m *member, now time.Duration) bool {
	return m.overKafka && now-m.kafkaAt <= l.cfg.StaleAfter
}

// fresh reports whether a heartbeat of the member came within StaleAfter, in either way.
func (l *Liveness) fresh(m *member, now time.Duration) bool {
	return m.present && now-m.confirmedBy <= l.cfg.StaleAfter || l.heardOverKafka(m, now)
}

// freshUntil returns when fresh ceases to be true if nothing more is heard of the member.
func (l *Liveness) freshUntil(m *member) time.Duration {
	until := time.Duration(0)
	if m.present {
		until = m.confirmedBy
	}
	if m.overKafka {
		until = max(until, m.kafkaAt)
	}
	return until + l.cfg.StaleAfter + 1
}

// Unannounced returns the nodes on whose partitions this leader has not announced its term since it came to know them.
func (l *Liveness) Unannounced() []Target {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []Target
	for _, m := range l.members {
		if !m.announced && m.known() {
			list = append(list, m.target())
		}
	}
	slices.SortFunc(list, func(a, b Target) int { return compareKeys(a.Key, b.Key) })
	return list
}

// Announced notes that by now this leader's term is on the partitions of nodes that Unannounced returned.
func (l *Liveness) Announced(keys []Key, now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range keys {
		if m, ok := l.members[k]; ok && !m.announced {
			m.announced, m.announcedAt = true, now
		}
	}
}

// Zombies returns the incarnations that send heartbeats to the registry although their work was reassigned, once for
// each heartbeat. They still trust themselves, and this leader sends them nothing any more.
func (l *Liveness) Zombies() []Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []Key
	for k, m := range l.members {
		if m.zombie {
			m.zombie = false
			list = append(list, k)
		}
	}
	slices.SortFunc(list, compareKeys)
	return list
}

// Left notes that an incarnation said goodbye: it holds nothing and takes nothing any more. It reports whether the
// incarnation was known.
func (l *Liveness) Left(k Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	m, ok := l.members[k]
	if ok {
		m.left, m.gone = true, true
		l.touch(m)
	}
	l.departures.left(k)
	return ok
}

// Evicted notes that an incarnation was put out of the registry: it is not confirmed any more, so that its trust ends.
// Should a later snapshot show it all the same, it is treated like any other.
func (l *Liveness) Evicted(k Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m, ok := l.members[k]; ok {
		m.evicted = true
		l.touch(m)
	}
}

// Reassign marks an incarnation as gone for good and returns its claims. The caller takes them back in the store and
// then reports that to TakenBack.
func (l *Liveness) Reassign(k Key, now time.Duration) []Claim {
	l.mu.Lock()
	defer l.mu.Unlock()
	m, ok := l.members[k]
	if !ok {
		return nil
	}
	l.departures.add(m, now)
	m.gone = true
	l.touch(m)
	if len(m.claims) == 0 {
		m.left = false
	}
	// What the dispatcher is about to publish it will have decided by the next round.
	return m.claimsWhere(func(e *entry) bool { return e.phase != publishing })
}

// Target returns where events for an incarnation go, whether or not it takes new work. It reports false for one that is
// not there.
func (l *Liveness) Target(k Key) (Target, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m, ok := l.members[k]
	if !ok || !m.reachable() {
		return Target{}, false
	}
	return m.target(), true
}

// Stuck returns how many claims are held by nodes that nothing is heard of. They wait until their node comes back or is
// lost.
func (l *Liveness) Stuck(now time.Duration) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, m := range l.members {
		if !l.fresh(m, now) {
			n += len(m.claims)
		}
	}
	return n
}

// member returns a member, and adds it if it is not known.
func (l *Liveness) member(k Key) *member {
	m, ok := l.members[k]
	if !ok {
		m = newMember(k)
		l.members[k] = m
		l.nodes[k.Node] = append(l.nodes[k.Node], m)
	}
	return m
}

// forget removes a member that holds nothing.
func (l *Liveness) forget(m *member) {
	delete(l.members, m.key)
	l.touch(m)
	others := slices.DeleteFunc(l.nodes[m.key.Node], func(o *member) bool { return o == m })
	if l.nodes[m.key.Node] = others; len(others) == 0 {
		delete(l.nodes, m.key.Node)
	}
}

// touch notes that a member may look different to the dispatcher.
func (l *Liveness) touch(m *member) { l.touchNode(m.key.Node) }

func (l *Liveness) touchNode(id string) {
	if l.changed != nil { // until Changes is called for the first time, it will tell of all nodes
		l.changed[id] = struct{}{}
	}
}
