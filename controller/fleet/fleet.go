// Package fleet is the leader's picture of its nodes: which are alive, which take new work, and which claims each
// holds. It does no I/O and reads no clock of its own. All times are passed in and come from one clock that keeps
// running while the machine is suspended.
//
// Two rules make it right:
//
//   - The load of a node is the claims that this leader has made and whose end it has not ingested, corrected upwards
//     by the node's own heartbeat. So a burst spreads although heartbeats lag, and a slot is free as soon as the final
//     report is ingested.
//   - A node was last confirmed no later than the end of the first read that showed its present counter or missed its
//     key, no later than its last heartbeat over Kafka was read, and no later than the term of this leader was on its
//     partition, since an older leader may have confirmed it until then. Its work may be reassigned only on a read that
//     began LostTimeout after all of these, under one run of the registry. See docs/adr/0006.
package fleet

import (
	"sync"
	"time"
)

// Key names one incarnation of a node.
type Key struct {
	Node        string
	Incarnation string
}

// Target is where a node's events go.
type Target struct {
	Key
	Partition int
}

// Config is what a fleet is told. All durations are required.
type Config struct {
	LostTimeout time.Duration    // how long a counter stands still before the node's work is reassigned
	StaleAfter  time.Duration    // how long a counter stands still before the node takes no new work
	Protocol    int              // the major version of the events that a node must read
	Term        int64            // the leader's
	Now         func() time.Time // the wall clock, to validate the times in heartbeats; nil = they are not validated
	MaxPending  int              // the most claims that are sent and not started; 0 = no limit
}

// Fleet is the whole picture, in four parts. Each part uses only those named before it. One mutex guards them all:
// every exported method takes it, no other method does. A Fleet is safe for concurrent use. Each leadership makes a new
// one, so that all waits start again.
type Fleet struct {
	*Liveness     // which nodes are alive, and which are gone
	*Availability // which nodes take new work
	*Permits      // what the claims take of the cluster as a whole
	*Claims       // which claims the nodes hold
}

// New returns an empty picture.
func New(cfg Config) *Fleet {
	mu := new(sync.Mutex)
	live := newLiveness(mu, cfg)
	available := newAvailability(mu, cfg, live)
	permits := newPermits(mu)
	return &Fleet{live, available, permits, newClaims(mu, cfg, live, available, permits)}
}

// Size returns how many nodes are there, and how many claims are held.
func (f *Fleet) Size() (nodes, claims int) {
	f.Liveness.mu.Lock()
	defer f.Liveness.mu.Unlock()
	for _, m := range f.members {
		if m.reachable() && !m.gone {
			nodes++
		}
	}
	return nodes, len(f.claims)
}
