// Package fleet is the leader's picture of its nodes: who is alive, and which claims each holds. It does no I/O and reads no clock;
// times are given to it, all of one clock that goes on in suspend.
//
// Two rules make it right:
//
//   - A node's load is the claims that this leader has made and whose end it has not ingested, corrected upwards by what the node
//     itself says. So a burst spreads although heartbeats lag, and a slot is free as soon as its final report is ingested.
//   - A node was last confirmed no later than the end of the first read that showed its present counter, or that missed its key. Its
//     work may be given away only on a read that began a whole waiting time after that, all under one run of the registry.
package fleet

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/registry"
)

// Key names one incarnation of a node.
type Key struct {
	Node        string
	Incarnation string
}

// Claim is one claim of a task for an incarnation.
type Claim struct {
	Key
	TaskID  string
	Attempt int64
	ID      string
	Class   string
}

// Config is how long things may take.
type Config struct {
	GiveAwayAfter time.Duration // how long a counter stands still before the work is given away
	StaleAfter    time.Duration // how long a counter stands still before the node takes no new work
	Protocol      int           // the major version of the events that a node must read
}

// Fleet is the picture. It is safe for concurrent use. A new leadership begins with a new one, so that all waits begin with it.
type Fleet struct {
	cfg Config

	mu      sync.Mutex
	members map[Key]*member
	claims  map[string]*entry
	runID   string
	blind   bool // the last read failed: the waits start again with the next
	classes map[string]float64
	recent  map[string]struct{} // claims dropped since a comparison began; nil outside of one
	begun   int64               // comparisons begun
}

type member struct {
	key       Key
	beat      registry.Node
	present   bool // in the last snapshot
	dated     bool // changedAt holds
	changedAt time.Duration
	gone      bool // given away, or said goodbye
	left      bool // said goodbye: to be given away without a wait
	claims    map[string]*entry
	ended     int  // claims that ended since the last new heartbeat
	refused   bool // it rejected or released a claim since then, or could not be reached: its next heartbeat says more
}

type entry struct {
	Claim
	phase    phase
	reported bool // the node has said something of it
	sentAt   time.Duration
	born     int64 // comparisons begun when it was made
}

// phase is how far the making of a claim has come.
type phase uint8

const (
	// publishing claims are in the dispatcher's hands, which may still give them back.
	publishing phase = iota
	// sent claims may be at their node; they can only be sent again.
	sent
)

// New makes an empty picture.
func New(cfg Config) *Fleet {
	return &Fleet{cfg: cfg, members: make(map[Key]*member), claims: make(map[string]*entry), classes: make(map[string]float64)}
}

func (f *Fleet) member(k Key) *member {
	m, ok := f.members[k]
	if !ok {
		m = &member{key: k, claims: make(map[string]*entry)}
		f.members[k] = m
	}
	return m
}

// Blind notes that the registry could not be read: the waits start again with the next read.
func (f *Fleet) Blind() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.blind = true
}

// Observe takes in a snapshot that was read between began and ended. It says whether a node may take work that did not before, and whose
// work is to be given away now.
func (f *Fleet) Observe(snap registry.Snapshot, began, ended time.Duration) (fresh bool, lost []Key) {
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
		moved := n.Counter != m.beat.Counter
		fresh = fresh || !m.gone && (!m.present || moved && m.refused)
		if moved {
			m.ended, m.refused = 0, false
		}
		if !m.dated || !m.present || moved || restart {
			m.dated, m.changedAt = true, ended
		}
		m.present, m.beat = true, *n
	}
	for k, m := range f.members {
		if !there[k] {
			if !m.dated || m.present || restart {
				m.dated, m.changedAt = true, ended
			}
			m.present = false
			if len(m.claims) == 0 {
				delete(f.members, k)
				continue
			}
		}
		if m.left || began > m.changedAt+f.cfg.GiveAwayAfter && !(m.gone && len(m.claims) == 0) {
			lost = append(lost, k)
		}
	}
	slices.SortFunc(lost, func(a, b Key) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.Incarnation, b.Incarnation))
	})
	return fresh, lost
}

// Left notes that an incarnation said goodbye: it holds nothing and takes nothing any more. It reports false if it was not known.
func (f *Fleet) Left(k Key) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.members[k]
	if ok {
		m.left, m.gone = true, true
	}
	return ok
}

// GiveAway marks an incarnation as gone for good, and gives its claims, which are to be taken back in the store and then dropped.
func (f *Fleet) GiveAway(k Key) []Claim {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.members[k]
	if !ok {
		return nil
	}
	m.gone = true
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

// View gives the nodes that take work, ordered by id, and where the events of each go.
func (f *Fleet) View(now time.Duration) ([]placement.Node, []Target) {
	f.mu.Lock()
	defer f.mu.Unlock()
	able := make([]*member, 0, len(f.members))
	for _, m := range f.members {
		if f.takesWork(m, now) {
			able = append(able, m)
		}
	}
	slices.SortFunc(able, func(a, b *member) int { return strings.Compare(a.key.Node, b.key.Node) })
	nodes := make([]placement.Node, len(able))
	targets := make([]Target, len(able))
	for i, m := range able {
		nodes[i] = placement.Node{ID: m.key.Node, Classes: m.beat.Classes,
			Capacity: m.beat.Capacity, Prefetch: m.beat.Prefetch, Load: m.load()}
		targets[i] = Target{Key: m.key, Partition: m.beat.Partition}
	}
	return nodes, targets
}

func (f *Fleet) takesWork(m *member, now time.Duration) bool {
	return m.present && !m.gone && !m.refused && m.beat.Mode == registry.ModeNode && m.beat.State == registry.Online &&
		m.beat.Protocol == f.cfg.Protocol && m.beat.Capacity > 0 && now-m.changedAt <= f.cfg.StaleAfter
}

func (m *member) load() int {
	return max(len(m.claims), m.beat.Running+m.beat.Queued-m.ended)
}

// Target is where a node's events go.
type Target struct {
	Key
	Partition int
}

// Reach gives where events for an incarnation go, whether or not it takes new work. It reports false for one that is not there.
func (f *Fleet) Reach(k Key) (Target, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.members[k]
	if !ok || !m.present {
		return Target{}, false
	}
	return Target{Key: k, Partition: m.beat.Partition}, true
}

// Size says how many nodes are there, and how many claims are held.
func (f *Fleet) Size() (nodes, claims int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		if m.present && !m.gone {
			nodes++
		}
	}
	return nodes, len(f.claims)
}
