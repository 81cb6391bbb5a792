package fleet

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/skalds-go/skalds/pkg/registry"
)

// member is one incarnation of a node, with what it holds.
type member struct {
	key       Key
	heartbeat registry.Node // the newest; without an incarnation if none has been seen
	seenAt    time.Duration // end of the last read that showed a higher counter, or showed it for the first time
	invalid   string        // what in that heartbeat cannot be; empty = nothing

	// In the registry.
	present     bool          // in the last snapshot
	counter     int64         // its counter there
	dated       bool          // confirmedBy is known
	confirmedBy time.Duration // it was last confirmed no later than this

	// Over Kafka.
	overKafka    bool  // its last sign of life came this way, at kafkaAt
	kafkaCounter int64 // the highest that came this way
	kafkaAt      time.Duration

	announced   bool // the leader's term is on its partition, since announcedAt or before
	announcedAt time.Duration

	gone     bool // its work was reassigned, or it said goodbye
	left     bool // it said goodbye, or was replaced: its work is reassigned without a wait
	replaced bool // its successor has proof that it is dead
	crashed  bool // its successor has proof that its process died
	evicted  bool // out of the registry: it is not confirmed any more
	zombie   bool // it sends heartbeats although it is gone

	// Why it takes no new work for a while.
	refused      bool          // it rejected or released a claim, or could not be reached, since its last heartbeat
	backoff      time.Duration // the pause after it could not be reached, until backoffUntil; doubles every time
	backoffUntil time.Duration

	// What it holds.
	claims       map[string]*entry
	slots        int            // that the claims take
	slotsByClass map[string]int // likewise, by class
	antiAffinity map[string]int // claims by anti-affinity key
	alone        int            // claims that nothing may run beside
	newSlots     int            // slots of claims that were made since its last new heartbeat
	endedSlots   int            // slots of claims that ended since then
	reports      int64          // how often it has shown that claims reach it
}

func newMember(k Key) *member {
	return &member{key: k, claims: make(map[string]*entry), slotsByClass: make(map[string]int),
		antiAffinity: make(map[string]int)}
}

// known reports whether this leader has seen a heartbeat of the member.
func (m *member) known() bool { return m.heartbeat.Incarnation != "" }

// reachable reports whether there is a place to send events to.
func (m *member) reachable() bool { return m.present || m.overKafka }

func (m *member) target() Target { return Target{Key: m.key, Partition: m.heartbeat.Partition} }

// load returns how many slots are taken. A node with a task that must be alone is full.
func (m *member) load() int {
	running, queued := m.heartbeat.Slots()
	held := max(m.slots, running+queued-m.endedSlots)
	if m.alone > 0 {
		return max(held, m.heartbeat.Capacity+m.heartbeat.Prefetch)
	}
	return held
}

// count adds a claim to what the member holds, or takes it away.
func (m *member) count(c *Claim, by int) {
	m.slots += by * c.width()
	add(m.slotsByClass, c.Class, by*c.width())
	if c.AntiAffinityKey != "" {
		add(m.antiAffinity, c.AntiAffinityKey, by)
	}
	if c.Alone {
		m.alone += by
	}
}

// add adds to a count. Counts of 0 are not kept.
func add(counts map[string]int, key string, by int) {
	if n := counts[key] + by; n != 0 {
		counts[key] = n
	} else {
		delete(counts, key)
	}
}

// claimsWhere returns the claims that match, ordered by id.
func (m *member) claimsWhere(matches func(*entry) bool) []Claim {
	return claimsWhere(m.claims, matches)
}

// claimsWhere returns the claims that match. They are ordered by id, so that the same history has the same events.
func claimsWhere(from map[string]*entry, matches func(*entry) bool) []Claim {
	var list []Claim
	for _, e := range from {
		if matches(e) {
			list = append(list, e.Claim)
		}
	}
	slices.SortFunc(list, func(a, b Claim) int { return strings.Compare(a.ID, b.ID) })
	return list
}

func compareKeys(a, b Key) int {
	return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.Incarnation, b.Incarnation))
}
