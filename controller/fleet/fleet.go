// Package fleet is the leader's picture of its nodes: who is alive, and which claims each holds. It does no I/O and reads no clock;
// times are given to it, all of one clock that goes on in suspend.
//
// Two rules make it right:
//
//   - A node's load is the claims that this leader has made and whose end it has not ingested, corrected upwards by what the node
//     itself says. So a burst spreads although heartbeats lag, and a slot is free as soon as its final report is ingested.
//   - A node was last confirmed no later than the end of the first read that showed its present counter, or that missed its key, and no
//     later than its last heartbeat that came over Kafka was taken in; and no later than the term of this leader was on its partition, for
//     until then an older leader may have confirmed it. Its work may be given away only on a read that began a whole waiting time after
//     all of that, under one run of the registry. (See docs/adr/0006.)
package fleet

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
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
	Alone   bool  // nothing else may run beside it
	Version int64 // of the attachments that the node is known to have

	Slots           int // that it takes of its node; less than one counts as one
	Namespace       string
	AntiAffinityKey string // empty = it has none
	KeyPermit       string // of its concurrency key; empty = it has none
	PoolPermit      string // of its pool; empty = it has none
	Why             string // how its node was picked, for people; empty = another leader picked it
}

func (c *Claim) width() int { return max(c.Slots, 1) }

// Config is how long things may take.
type Config struct {
	GiveAwayAfter time.Duration    // how long a counter stands still before the work is given away
	StaleAfter    time.Duration    // how long a counter stands still before the node takes no new work
	Protocol      int              // the major version of the events that a node must read
	Term          int64            // the leader's
	Now           func() time.Time // the wall clock, to tell what nodes say of theirs; nil = that is not looked at
	MaxPending    int              // tasks that are sent and not started, at most; 0 = no limit
}

// Fleet is the picture. It is safe for concurrent use. A new leadership begins with a new one, so that all waits begin with it.
type Fleet struct {
	cfg Config

	mu       sync.Mutex
	members  map[Key]*member
	claims   map[string]*entry
	runID    string
	blind    bool // the last read failed: the waits start again with the next
	classes  map[string]float64
	recent   map[string]struct{} // claims dropped since a comparison began; nil outside of one
	compared int64               // comparisons begun
	asides   map[string]Aside    // by node id
	draining map[string]bool     // by node id

	nodes      map[string][]*member // by node id: all its incarnations
	taking     map[string]*member   // by node id: the incarnation that takes work, as Changes has said
	changed    map[string]struct{}  // by node id: may be another to the dispatcher than Changes has said; nil until that was asked for
	nextLook   time.Duration        // when time alone may change whether some node takes work; 0 = never
	nextBack   time.Duration        // of these, when one may begin to
	recounted  bool                 // what the older leaders have given each node counts
	firstLook  time.Duration        // when Changes first told of a node; 0 = not yet
	counts     counts
	primed     bool // a comparison with the store has ended
	comparedTo Key  // the last whose list of tasks was compared
}

type member struct {
	key         Key
	beat        registry.Node
	present     bool  // in the last snapshot
	read        int64 // its counter there
	dated       bool  // changedAt holds
	changedAt   time.Duration
	beatAt      time.Duration // end of the last read that showed a higher counter, or it for the first time
	aloud       bool          // its last sign of life came over Kafka, at heardAt
	heard       int64         // the highest counter that came so
	heardAt     time.Duration
	told        bool // the leader's term is on its partition, since toldAt or before
	toldAt      time.Duration
	gone        bool // given away, or said goodbye
	left        bool // said goodbye, or its successor does: to be given away without a wait
	crashed     bool // its successor has proof that its process died
	evicted     bool // put out of the registry: it is confirmed no more
	claims      map[string]*entry
	fresh       int            // slots of claims that were made since its last new heartbeat
	slots       int            // that the claims take
	classes     map[string]int // likewise, by class
	anti        map[string]int // claims by anti-affinity key
	alone       int            // claims that nothing may run beside
	said        int64          // counts its reports
	ended       int            // slots of claims that ended since the last new heartbeat
	pause       time.Duration  // after it could not be reached, until pausedUntil; it doubles every time
	pausedUntil time.Duration
	nonsense    string // what in its last heartbeat cannot be; empty = nothing
	refused     bool   // it rejected or released a claim since then, or could not be reached: its next heartbeat says more
}

type entry struct {
	Claim
	phase    phase
	reported bool // the node has said something of it
	sentAt   time.Duration
	born     int64 // comparisons begun when it was made
	again    int   // times it was sent again since its node has reported anything, as far as said goes
	said     int64 // the node's count of reports when it was sent again

	seen      int64 // the node's newest heartbeat when it last reported the claim as begun; 0 = not known
	inherited bool  // it had begun when this leadership did
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
	return &Fleet{cfg: cfg, members: make(map[Key]*member), claims: make(map[string]*entry), classes: make(map[string]float64),
		asides: make(map[string]Aside), nodes: make(map[string][]*member), taking: make(map[string]*member),
		counts: newCounts()}
}

func (f *Fleet) member(k Key) *member {
	m, ok := f.members[k]
	if !ok {
		m = &member{key: k, claims: make(map[string]*entry), classes: make(map[string]int), anti: make(map[string]int)}
		f.members[k] = m
		f.nodes[k.Node] = append(f.nodes[k.Node], m)
	}
	return m
}

// forget lets go of a member that holds nothing.
func (f *Fleet) forget(m *member) {
	delete(f.members, m.key)
	f.touch(m)
	rest := slices.DeleteFunc(f.nodes[m.key.Node], func(o *member) bool { return o == m })
	if f.nodes[m.key.Node] = rest; len(rest) == 0 {
		delete(f.nodes, m.key.Node)
	}
}

// Blind notes that the registry could not be read: the waits start again with the next read.
func (f *Fleet) Blind() {
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
		}
		m.present, m.read = true, n.Counter
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
			m.left, m.gone, m.crashed = true, true, n.Crashed
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
	wait := max(m.changedAt, m.toldAt) + f.cfg.GiveAwayAfter
	return task.LossSilent, began > wait && !(m.gone && len(m.claims) == 0)
}

// speak takes in what a heartbeat says, unless it is older than what is known.
func (f *Fleet) speak(m *member, n *registry.Node) {
	if n.Counter >= m.beat.Counter {
		if n.Counter > m.beat.Counter {
			m.fresh = 0
		}
		m.beat, m.ended, m.refused = *n, 0, false
		m.nonsense = registry.Nonsense(n, f.wall())
	}
}

// maxMembers bounds how many incarnations are known by their heartbeats over Kafka. It is as many as the registry may hold.
const maxMembers = 100_000

// Heard takes in a heartbeat that came over Kafka and was read by now. It says whether it may be confirmed, and whether a node may take work
// that did not before.
func (f *Fleet) Heard(n *registry.Node, now time.Duration) (confirm, fresh bool) {
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
	f.speak(m, n)
	f.touch(m)
	return true, fresh
}

// Untold gives nodes on whose partition this leader has not announced its term since it has known them.
func (f *Fleet) Untold() []Target {
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

// Told notes that this leader's term is by now on the partition of nodes that Untold gave.
func (f *Fleet) Told(keys []Key, now time.Duration) {
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

// audible says whether a node was heard over Kafka a short time ago.
func (f *Fleet) audible(m *member, now time.Duration) bool {
	return m.aloud && now-m.heardAt <= f.cfg.StaleAfter
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
	if !ok || !m.present && !m.aloud {
		return Target{}, false
	}
	return Target{Key: k, Partition: m.beat.Partition}, true
}

// Size says how many nodes are there, and how many claims are held.
func (f *Fleet) Size() (nodes, claims int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		if (m.present || m.aloud) && !m.gone {
			nodes++
		}
	}
	return nodes, len(f.claims)
}
