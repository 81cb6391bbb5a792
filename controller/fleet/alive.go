package fleet

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

// LostTimeout is how long a node may be silent before its work is given away: longer than any node trusts itself.
func (f *Fleet) LostTimeout() time.Duration { return f.cfg.LostTimeout }

// RegistryFailed notes that the registry could not be read: the waits start again with the next read.
func (f *Fleet) RegistryFailed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.blind = true
}

// wall is the time by the wall clock, in epoch ms.
func (f *Fleet) wall() int64 {
	if f.cfg.Now == nil {
		return math.MaxInt64 / 2
	}
	return f.cfg.Now().UnixMilli()
}

// Lost is an incarnation whose work is to be given away, and how it was lost.
type Lost struct {
	Key
	Loss task.Loss
}

// Observe takes in a snapshot that was read between began and ended. It says whether a node may take work that did not before, and whose
// work is to be given away now.
func (f *Fleet) Observe(snap registry.Snapshot, began, ended time.Duration) (fresh bool, lost []Lost) {
	f.mu.Lock()
	defer f.mu.Unlock()
	restart := f.blind || snap.RunID != f.runID
	f.blind, f.runID = false, snap.RunID
	there := make(map[Key]bool, len(snap.Nodes))
	for i := range snap.Nodes {
		n := &snap.Nodes[i]
		k := Key{n.ID, n.Incarnation}
		there[k] = true
		m := f.member(k)
		moved := n.Counter != m.read
		fresh = fresh || !m.gone && (!m.present && !f.audible(m, ended) || moved && (m.refused || m.beat.State != n.State))
		if !m.dated || !m.present || moved || restart {
			m.dated, m.changedAt = true, ended
		}
		if m.beat.Incarnation == "" || n.Counter > m.beat.Counter {
			m.beatAt = ended
		}
		if moved {
			m.aloud = false
			f.speak(m, n)
			m.risen = m.gone && !m.left && m.present
		}
		m.present, m.read = true, n.Counter
		if !m.gone {
			f.departures.remove(k)
		}
		m.evicted = false // if it was: the registry has forgotten that it refuses it
		f.touch(m)
	}
	f.replace(snap.Nodes)
	for k, m := range f.members {
		if !there[k] {
			if !m.dated || m.present || restart {
				m.dated, m.changedAt = true, ended
			}
			if m.present {
				m.present = false
				f.touch(m)
			}
			if len(m.claims) == 0 && !f.audible(m, ended) {
				f.departures.add(m, ended)
				f.forget(m)
				continue
			}
		}
		if loss, over := f.over(m, began); over {
			lost = append(lost, Lost{k, loss})
		}
	}
	slices.SortFunc(lost, func(a, b Lost) int { return compareKeys(a.Key, b.Key) })
	return fresh, lost
}

// replace takes in who is known to be dead: the incarnations that others replace.
func (f *Fleet) replace(nodes []registry.Node) {
	for i := range nodes {
		n := &nodes[i]
		if n.Replaces == "" {
			continue
		}
		if m, ok := f.members[Key{n.ID, n.Replaces}]; ok && !m.left {
			m.left, m.gone, m.replaced, m.crashed = true, true, true, n.Crashed
			f.touch(m)
		}
	}
}

func compareKeys(a, b Key) int {
	return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.Incarnation, b.Incarnation))
}

// over says whether a member's work is to be given away on a read that began then, and how it was lost.
func (f *Fleet) over(m *member, began time.Duration) (task.Loss, bool) {
	switch {
	case m.left && m.crashed:
		return task.LossDied, true
	case m.left:
		return task.LossLeft, true
	}
	// Of a node that was never seen, no partition is known; what it holds it got before this leader announced itself on all of them.
	if !m.told && m.beat.Incarnation != "" {
		return 0, false
	}
	wait := max(m.changedAt, m.toldAt) + f.cfg.LostTimeout
	return task.LossSilent, began > wait && !(m.gone && len(m.claims) == 0)
}

// speak takes in what a heartbeat says, unless it is older than what is known.
func (f *Fleet) speak(m *member, n *registry.Node) {
	if n.Counter >= m.beat.Counter {
		if n.Counter > m.beat.Counter {
			m.fresh = 0
		}
		m.beat, m.ended, m.refused = *n, 0, false
		m.nonsense = registry.Validate(n, f.wall())
	}
}

// maxMembers bounds how many incarnations are known by their heartbeats over Kafka. It is as many as the registry may hold.
const maxMembers = 100_000

// ObserveKafka takes in a heartbeat that came over Kafka and was read by now. It says whether it may be confirmed, and whether a node may take work
// that did not before.
func (f *Fleet) ObserveKafka(n *registry.Node, now time.Duration) (confirm, fresh bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := Key{n.ID, n.Incarnation}
	if _, known := f.members[k]; !known && len(f.members) >= maxMembers {
		return false, false
	}
	m := f.member(k)
	if m.gone || m.evicted || n.Counter <= m.heard {
		return false, false
	}
	fresh = m.refused || !f.audible(m, now) && now-m.changedAt > f.cfg.StaleAfter || !m.dated
	m.aloud, m.heard, m.heardAt = true, n.Counter, now
	m.dated, m.changedAt = true, max(m.changedAt, now)
	f.departures.remove(k)
	f.speak(m, n)
	f.touch(m)
	return true, fresh
}

// Unannounced gives nodes on whose partition this leader has not announced its term since it has known them.
func (f *Fleet) Unannounced() []Target {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []Target
	for k, m := range f.members {
		if !m.told && m.beat.Incarnation != "" {
			list = append(list, Target{Key: k, Partition: m.beat.Partition})
		}
	}
	slices.SortFunc(list, func(a, b Target) int { return compareKeys(a.Key, b.Key) })
	return list
}

// Zombies gives incarnations that beat although their work was given away, once for each heartbeat: they believe in themselves, and this leader gives
// them nothing any more.
func (f *Fleet) Zombies() []Key {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []Key
	for k, m := range f.members {
		if m.risen {
			m.risen = false
			list = append(list, k)
		}
	}
	slices.SortFunc(list, compareKeys)
	return list
}

// Announced notes that this leader's term is by now on the partition of nodes that Untold gave.
func (f *Fleet) Announced(keys []Key, now time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range keys {
		if m, ok := f.members[k]; ok && !m.told {
			m.told, m.toldAt = true, now
		}
	}
}

// Left notes that an incarnation said goodbye: it holds nothing and takes nothing any more. It reports false if it was not known.
func (f *Fleet) Left(k Key) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.members[k]
	if ok {
		m.left, m.gone = true, true
		f.touch(m)
	}
	f.departures.left(k) // it may have left the registry before this message of it came
	return ok
}

// Reassign marks an incarnation as gone for good, and gives its claims, which are to be taken back in the store and then dropped.
func (f *Fleet) Reassign(k Key, now time.Duration) []Claim {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.members[k]
	if !ok {
		return nil
	}
	f.departures.add(m, now)
	m.gone = true
	f.touch(m)
	list := make([]Claim, 0, len(m.claims))
	for _, e := range m.claims {
		if e.phase != publishing { // the dispatcher will have decided by the next round
			list = append(list, e.Claim)
		}
	}
	if len(m.claims) == 0 {
		m.left = false
	}
	slices.SortFunc(list, byID)
	return list
}

// audible says whether a node was heard over Kafka a short time ago.
func (f *Fleet) audible(m *member, now time.Duration) bool {
	return m.aloud && now-m.heardAt <= f.cfg.StaleAfter
}
