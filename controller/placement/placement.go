package placement

import "math/rand/v2"

// Choice is what became of one request: the index of a node, or -1 and the reason.
type Choice struct {
	Node   int
	Reason Reason
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
func (p *Placer) Place(strategy Strategy, nodes []Node, requests []Request) []Choice {
	turns := p.attend(nodes)
	r := round{placer: p, strategy: strategy, nodes: nodes, turns: turns, pools: make(map[string]*roundPool)}
	decisions := make([]Choice, len(requests))
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
