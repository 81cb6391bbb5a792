package placement

import (
	"container/list"

	"github.com/skalds-go/skalds/pkg/task"
)

// candidatesKey identifies a candidate set. Tasks with the same key share the set.
type candidatesKey struct {
	class    string
	labels   string // the text of the selector
	strategy Strategy
	width    int
}

func (q *Request) key() candidatesKey {
	return candidatesKey{class: q.Class, labels: q.Selector.String(), strategy: q.Strategy, width: q.width()}
}

// candidates is a candidate set: the nodes that match the tasks of a key, in the order of the strategy.
type candidates struct {
	candidatesKey
	c        *Cluster
	plan     plan
	selector task.Selector

	log     int    // index of the log that it reads
	seen    uint64 // end of what it has read of the log
	cost    int    // number of nodes that it looked at when it was built
	members members
	placed  byNode[int64] // the number of the set's last placement on each node
	stages  [stageCount]stage
	order   []int // the stages in the order in which they are asked
	epoch   uint64

	waits [stageCount]struct { // why no node of the stage took a task, see fullReason
		reason  Reason
		changed uint64 // Cluster.changed at that time
	}

	use    *list.Element // its place in candidateSets.byUse
	weight int
}

// The weight of a candidate set stands for its memory: it is emptyWeight and the number of its members. All sets
// together weigh at most maxWeight.
const (
	emptyWeight = 64
	maxWeight   = 1 << 21
)

// candidateSets holds the candidate sets that were used most recently.
type candidateSets struct {
	byKey  map[candidatesKey]*candidates
	byUse  list.List // the most recently used one is at the front
	weight int
	limit  int // of the weight
}

func newCandidateSets() candidateSets {
	return candidateSets{byKey: make(map[candidatesKey]*candidates), limit: maxWeight}
}

// latest returns the most recently used candidate set, or nil.
func (l *candidateSets) latest() *candidates {
	if l.byUse.Len() == 0 {
		return nil
	}
	return l.byUse.Front().Value.(*candidates) //nolint:forcetypeassert // only candidate sets are in the list
}

// weigh updates the weight of a candidate set that was just used, and drops the least recently used other sets while
// all of them weigh too much.
func (c *Cluster) weigh(p *candidates) {
	l := &c.candidates
	weight := emptyWeight + p.members.size()
	l.weight += weight - p.weight
	p.weight = weight
	for l.weight > l.limit && l.byUse.Len() > 1 {
		c.drop(l.byUse.Back().Value.(*candidates)) //nolint:forcetypeassert // only candidate sets are in the list
	}
}

func (c *Cluster) drop(p *candidates) {
	c.candidates.byUse.Remove(p.use)
	c.candidates.weight -= p.weight
	delete(c.candidates.byKey, p.candidatesKey)
	if p.log == every {
		c.listeners--
	}
}

// candidatesOf returns the candidate set of a request, up to date. If no node could run the request even if it were
// empty, it returns the reason.
func (c *Cluster) candidatesOf(q *Request) (*candidates, Reason) {
	c.countJoiners()
	if len(c.ids) == 0 {
		return nil, NoEligibleNode
	}
	key := q.key()
	p := c.candidates.latest()
	if p == nil || p.candidatesKey != key {
		p = c.candidates.byKey[key]
	}
	if p == nil {
		if c.index.candidates(q.Class, q.Selector, nil) == 0 {
			return nil, c.mismatch(q)
		}
		p = c.newCandidates(key, q.Selector)
	}
	c.candidates.byUse.MoveToFront(p.use)
	p.sync()
	if p.members.able == 0 {
		return nil, p.mismatch(q)
	}
	return p, ""
}

// mismatch returns the reason why no node matches a request.
func (c *Cluster) mismatch(q *Request) Reason {
	if len(c.index[feature{value: q.Class}]) == 0 {
		return NoNodeForClass
	}
	return NoNodeForLabels
}

// mismatch returns the reason why no member could ever run a request.
func (p *candidates) mismatch(q *Request) Reason {
	if p.members.matching > 0 {
		return SlotsOverCapacity
	}
	return p.c.mismatch(q)
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
	p.use = c.candidates.byUse.PushFront(p)
	p.placed = newByNode[int64](len(c.nodes), c.index.candidates(p.class, selector, nil))
	p.build()
	return p
}

// build builds the set from all nodes that may match.
func (p *candidates) build() {
	p.seen = p.c.logs[p.log].end
	for k := range p.stages {
		p.stages[k] = stage{c: p.c, p: p, kind: k}
	}
	p.cost = p.c.index.candidates(p.class, p.selector, nil)
	p.members.reset(len(p.c.nodes), p.cost)
	p.c.index.candidates(p.class, p.selector, p.classify)
	p.membersChanged()
	p.c.weigh(p)
}

// membersChanged starts a new epoch: the members are not those of the last one.
func (p *candidates) membersChanged() {
	p.c.epochs++
	p.epoch = p.c.epochs
}

// classify updates whether a node matches and is able.
func (p *candidates) classify(i int32) {
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

// sync brings the set up to date with the changes since it was used last.
func (p *candidates) sync() {
	log := &p.c.logs[p.log]
	if p.seen == log.end {
		return
	}
	if behind := log.end - p.seen; behind > logSize || behind > uint64(4*p.cost+emptyWeight) {
		p.build()
		return
	}
	moved := false
	for ; p.seen < log.end; p.seen++ {
		e := log.at(p.seen)
		was := p.members.isAble(e.node)
		if e.static {
			p.classify(e.node)
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
		p.membersChanged()
		p.c.weigh(p)
	}
}
