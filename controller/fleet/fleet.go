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
	"slices"
	"sync"
	"time"

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
	Alone   bool  // nothing else may run beside it
	Version int64 // of the attachments that the node is known to have

	Slots           int // that it takes of its node; less than one counts as one
	Namespace       string
	AntiAffinityKey string // empty = it has none
	KeyPermit       string // of its concurrency key; empty = it has none
	PoolPermit      string // of its pool; empty = it has none
	Foreign         bool   // another leader made it, and may yet give it back: it is not sent before it is adopted
	Why             string // how its node was picked, for people; empty = another leader picked it
}

func (c *Claim) width() int { return max(c.Slots, 1) }

// Config is how long things may take.
type Config struct {
	LostTimeout time.Duration    // how long a counter stands still before the work is given away
	StaleAfter  time.Duration    // how long a counter stands still before the node takes no new work
	Protocol    int              // the major version of the events that a node must read
	Term        int64            // the leader's
	Now         func() time.Time // the wall clock, to tell what nodes say of theirs; nil = that is not looked at
	MaxPending  int              // tasks that are sent and not started, at most; 0 = no limit
}

// Fleet is the picture. It is safe for concurrent use. A new leadership begins with a new one, so that all waits begin with it.
type Fleet struct {
	cfg Config

	mu         sync.Mutex
	members    map[Key]*member
	claims     map[string]*entry
	runID      string
	blind      bool // the last read failed: the waits start again with the next
	classes    map[string]float64
	recent     map[string]struct{} // claims dropped since a comparison began; nil outside of one
	compared   int64               // comparisons begun
	asides     map[string]Cordon   // by node id
	draining   map[string]bool     // by node id
	departures departures

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
	replaced    bool // its successor has proof that it is dead
	crashed     bool // likewise, that its process died
	evicted     bool // put out of the registry: it is confirmed no more
	risen       bool // it beats although it is gone
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
	refused     bool   // it rejected or released a claim since then, unasked, or could not be reached: its next heartbeat says more
}

type entry struct {
	Claim
	phase    phase
	reported bool // the node has said something of it
	sentAt   time.Duration
	born     int64 // comparisons begun when it was made
	again    int   // times it was sent again since its node has reported anything, as far as said goes
	said     int64 // the node's count of reports when it was sent again

	back      bool  // its node is asked to give it back if it has not begun
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
		asides: make(map[string]Cordon), departures: departures{byKey: make(map[Key]*departure)}, nodes: make(map[string][]*member), taking: make(map[string]*member),
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

// Target is where a node's events go.
type Target struct {
	Key
	Partition int
}

// Target gives where events for an incarnation go, whether or not it takes new work. It reports false for one that is not there.
func (f *Fleet) Target(k Key) (Target, bool) {
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
