package placement

import "github.com/skalds-go/skalds/pkg/task"

// candidatesKey is what tasks of one candidate set have in common.
type candidatesKey struct {
	class    string
	labels   string // the selector's text
	strategy Strategy
	width    int
}

func (q *Request) key() candidatesKey {
	return candidatesKey{class: q.Class, labels: q.Selector.String(), strategy: q.Strategy, width: q.width()}
}

// candidates is the nodes that match tasks of a key, in the order of the strategy.
type candidates struct {
	candidatesKey
	c        *Cluster
	plan     plan
	selector task.Selector

	log     int    // the log that it reads
	seen    uint64 // how far it has read it
	cost    int    // nodes that it looked at when it was built
	members members
	turns   byNode[int64] // numbers of the candidate set's last placements
	stages  [stageCount]stage
	order   []int // the stages, as they are asked
	age     uint64

	waits [stageCount]struct { // why no node of the stage took a task
		reason  Reason
		changed uint64 // the cluster's changes at that time
	}

	newer, older *candidates // by use
	weight       int
}

// weights bound the memory of all candidate sets: a candidate set weighs as much as it has members, and a little.
const (
	emptyWeight = 64
	maxWeight   = 1 << 21
)

// candidateSets holds the candidateSets that were used most recently.
type candidateSets struct {
	byKey  map[candidatesKey]*candidates
	use    candidates // a ring through newer and older: newer is the oldest, older the newest
	weight int
	limit  int // of the weight
}

func newCandidateSets() candidateSets {
	return candidateSets{byKey: make(map[candidatesKey]*candidates), limit: maxWeight}
}

// touch makes a candidate set the most recently used.
func (l *candidateSets) touch(p *candidates) {
	if l.use.older == p {
		return
	}
	if l.use.older == nil {
		l.use.older, l.use.newer = &l.use, &l.use
	}
	l.unlink(p)
	p.older, p.newer = l.use.older, &l.use
	p.older.newer, l.use.older = p, p
}

func (l *candidateSets) unlink(p *candidates) {
	if p.older != nil {
		p.older.newer, p.newer.older = p.newer, p.older
		p.older, p.newer = nil, nil
	}
}

// weigh brings the weight of a candidate set up to date, and drops those that were not used for the longest time.
func (c *Cluster) weigh(p *candidates) {
	l := &c.candidates
	weight := emptyWeight + p.members.size()
	l.weight += weight - p.weight
	p.weight = weight
	for l.weight > l.limit && l.use.newer != p {
		c.drop(l.use.newer)
	}
}

func (c *Cluster) drop(p *candidates) {
	c.candidates.unlink(p)
	c.candidates.weight -= p.weight
	delete(c.candidates.byKey, p.candidatesKey)
	if p.log == every {
		c.listeners--
	}
}

// candidatesOf returns the candidatesOf of a request, up to date; or the reason why there is no node for it whatever
// the loads.
func (c *Cluster) candidatesOf(q *Request) (*candidates, Reason) {
	if len(c.joiners) > 0 {
		c.countJoiners()
	}
	if len(c.ids) == 0 {
		return nil, NoEligibleNode
	}
	key := q.key()
	p := c.candidates.use.older
	if p == nil || p.candidatesKey != key {
		p = c.candidates.byKey[key]
	}
	if p == nil {
		if c.index.candidates(q.Class, q.Selector, nil) == 0 {
			return nil, c.never(q)
		}
		p = c.newCandidates(key, q.Selector)
	}
	c.candidates.touch(p)
	p.sync()
	if p.members.able == 0 {
		return nil, p.never(q)
	}
	return p, ""
}

// never says why there is no node for a request.
func (c *Cluster) never(q *Request) Reason {
	if len(c.index[feature{value: q.Class}]) == 0 {
		return NoNodeForClass
	}
	return NoNodeForLabels
}

func (p *candidates) never(q *Request) Reason {
	if p.members.matching > 0 {
		return SlotsOverCapacity
	}
	return p.c.never(q)
}

func (c *Cluster) bareCandidates(key candidatesKey, selector task.Selector) *candidates {
	plan, _ := parse(c.table, string(key.strategy))
	p := &candidates{candidatesKey: key, c: c, plan: plan, selector: selector, order: []int{stageSlots, stageOnce, stageDeep}}
	if plan.idle {
		p.order = []int{stageIdle, stageSlots, stageOnce, stageDeep}
	}
	return p
}

func (c *Cluster) newCandidates(key candidatesKey, selector task.Selector) *candidates {
	p := c.bareCandidates(key, selector)
	if p.plan.every {
		p.log = every
		c.listeners++
	}
	c.candidates.byKey[key] = p
	c.candidates.touch(p)
	p.turns = newByNode[int64](len(c.nodes), c.index.candidates(p.class, selector, nil))
	p.build()
	return p
}

// build looks at all nodes that may match.
func (p *candidates) build() {
	p.seen = p.c.logs[p.log].end
	for k := range p.stages {
		p.stages[k] = stage{c: p.c, p: p, kind: k}
	}
	p.cost = p.c.index.candidates(p.class, p.selector, nil)
	p.members.reset(len(p.c.nodes), p.cost)
	p.c.index.candidates(p.class, p.selector, p.judge)
	p.stir()
	p.c.weigh(p)
}

// stir notes that the members are others than before.
func (p *candidates) stir() {
	p.c.ages++
	p.age = p.c.ages
}

// judge finds out whether a node is a member.
func (p *candidates) judge(i int32) {
	n := &p.c.nodes[i]
	switch {
	case !n.alive || !n.has(p.class) || !p.selector.Matches(n.labels):
		p.members.put(i, 0)
	case n.most(p.class) < p.width:
		p.members.put(i, isMatching)
	default:
		p.members.put(i, isMatching|isAble)
	}
}

// sync takes in what has changed since the candidate set was used last.
func (p *candidates) sync() {
	log := &p.c.logs[p.log]
	if p.seen == log.end {
		return
	}
	if behind := log.end - p.seen; behind > reach || behind > uint64(4*p.cost+emptyWeight) {
		p.build()
		return
	}
	moved := false
	for ; p.seen < log.end; p.seen++ {
		e := log.at(p.seen)
		was := p.members.isAble(e.node)
		if e.static {
			p.judge(e.node)
		}
		is := p.members.isAble(e.node)
		if !was && !is {
			continue
		}
		moved = moved || e.static
		last := e.stamp == p.c.nodes[e.node].stamps[p.log]
		for k := range p.stages {
			ch := p.stages[k].chooser
			if ch == nil {
				continue
			}
			if e.static {
				ch.drop(e.node)
			}
			if is && last {
				ch.add(e.node)
			}
		}
	}
	if moved {
		p.stir()
		p.c.weigh(p)
	}
}
