// Package placement decides which node runs which task. It is pure: no I/O, no clock, no goroutine; the same calls give the same
// decisions.
//
// A decision is filter -> score -> pick. Filters: the node takes work, it has the class, it has room. The score is the strategy's. What
// this call has placed counts at once, so that a burst spreads however old the nodes' own figures are.
//
// Invariants:
//
//   - No node is given more than its capacity, or, for a class of short runs and only when no node has a free slot, than its capacity
//     and prefetch together.
//   - A task that must be alone gets an empty node, and nothing is placed beside it.
//   - Every task gets a node or a reason.
package placement

import (
	"math/rand/v2"
	"strings"
)

// Node is one node as the leader sees it.
type Node struct {
	ID       string
	Classes  []string
	Capacity int // tasks at once
	Prefetch int // further tasks that it may hold queued
	Load     int // tasks that it holds or that are under way to it
}

// Request is one task to place.
type Request struct {
	Class string
	Short bool     // recent runs of the class were short enough to queue behind others
	Alone bool     // it must be the only one on its node
	Avoid []string // ids of nodes that are taken only if no other has the class
}

// Decision is what became of one request: the index of a node, or -1 and the reason.
type Decision struct {
	Node   int
	Reason Reason
}

// Reason says why a task was not placed.
type Reason string

// The reasons.
const (
	// NoEligibleNode says that no node takes work at all.
	NoEligibleNode Reason = "NO_ELIGIBLE_NODE"
	// NoNodeForClass says that nodes take work, but none of them has the class.
	NoNodeForClass Reason = "NO_NODE_FOR_CLASS"
	// NodesFull says that all nodes with the class are full.
	NodesFull Reason = "NODES_FULL"
)

// Strategy names a way to pick among the nodes that can run a task.
type Strategy string

// The strategies.
const (
	// LeastTasks picks the node with the least load relative to its capacity; equal ones in turn.
	LeastTasks Strategy = "LEAST_TASKS"
	// RoundRobin gives every node the same number of tasks. A node that joins begins with the lowest number of the others; a node that
	// was full is owed what it missed, up to its capacity.
	RoundRobin Strategy = "ROUND_ROBIN"
	// Random picks any node with a free slot, each as likely as the others.
	Random Strategy = "RANDOM"
)

var strategies = map[string]Strategy{
	"LEAST_TASKS": LeastTasks, "LEAST_LOADED": LeastTasks,
	"ROUND_ROBIN": RoundRobin,
	"RANDOM":      Random,
}

// Strategies lists the names of the strategies.
func Strategies() []Strategy { return []Strategy{LeastTasks, RoundRobin, Random} }

// ParseStrategy reads a strategy's name without regard to case; LEAST_LOADED is LEAST_TASKS.
func ParseStrategy(name string) (Strategy, bool) {
	s, ok := strategies[strings.ToUpper(strings.TrimSpace(name))]
	return s, ok
}

// Placer places tasks, one call after the other. What it remembers between calls is whose turn it is. It is not safe for concurrent use.
type Placer struct {
	rng   *rand.Rand
	turns map[string]*turn
	clock int64 // counts picks, to put the least recently picked first
}

// turn is what a placer remembers of a node.
type turn struct {
	served int64 // tasks that ROUND_ROBIN counts for it
	last   int64 // when it was picked last
	seen   bool  // it is in the present call
}

// New makes a placer. The seed decides what RANDOM picks.
func New(seed uint64) *Placer {
	return &Placer{rng: rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15)), turns: make(map[string]*turn)}
}

// Place decides for each request in order. It counts what it places in the nodes' Load.
func (p *Placer) Place(strategy Strategy, nodes []Node, requests []Request) []Decision {
	turns := p.attend(nodes)
	r := round{placer: p, strategy: strategy, nodes: nodes, turns: turns, pools: make(map[string]*pool)}
	decisions := make([]Decision, len(requests))
	for i, q := range requests {
		decisions[i] = r.decide(q)
	}
	return decisions
}

// attend brings the turns up to date with the nodes that are there.
func (p *Placer) attend(nodes []Node) []*turn {
	for _, t := range p.turns {
		t.seen = false
	}
	lowest, highest, known := int64(0), int64(0), false
	turns := make([]*turn, len(nodes))
	for i := range nodes {
		t, ok := p.turns[nodes[i].ID]
		if !ok {
			continue
		}
		t.seen = true
		turns[i] = t
		if !known || t.served < lowest {
			lowest = t.served
		}
		if !known || t.served > highest {
			highest = t.served
		}
		known = true
	}
	for id, t := range p.turns {
		if !t.seen {
			delete(p.turns, id)
		}
	}
	for i := range nodes {
		if turns[i] == nil {
			turns[i] = &turn{served: lowest, seen: true}
			p.turns[nodes[i].ID] = turns[i]
		}
		turns[i].served = max(turns[i].served, highest-int64(nodes[i].Capacity))
	}
	return turns
}
