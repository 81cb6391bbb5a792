package placement

// The stages of a candidate set. They are asked in turn; the first that has a node gives it.
const (
	stageIdle  = iota // nodes that have nothing
	stageSlots        // nodes that have free slots
	stageOnce         // nodes that have free to queue what begins after one run
	stageDeep         // nodes that have free to queue
	stageCount
)

// asks reports whether a request goes to a stage.
func (q *Request) uses(kind int) bool {
	switch kind {
	case stageOnce:
		return q.Prefetch >= PrefetchOnce
	case stageDeep:
		return q.Prefetch >= PrefetchDeep
	}
	return true
}

// chooser picks among the nodes of one stage by a strategy. It may hold nodes that do not fit any more, and drops them
// when it comes to them; the candidate set adds them again when they may fit.
type chooser interface {
	// add says that a member is new, has changed or may fit by now.
	add(i int32)
	// drop says that a node is no member any more.
	drop(i int32)
	// pick returns the best node that fits and is not excluded, or -1. It places nothing.
	pick(q *Request) int32
	// any reports whether pick would give a node. It draws no lots.
	any() bool
}

// stage is the nodes of a candidate set that fit in one way.
type stage struct {
	c       *Cluster
	p       *candidates
	kind    int
	chooser chooser // nil = not asked yet
}

// ready returns the chooser, which is made when the stage is asked first.
func (s *stage) ready() chooser {
	if s.chooser == nil {
		s.chooser = s.p.plan.choose(s)
		for i := range s.p.members.all {
			s.chooser.add(i)
		}
	}
	return s.chooser
}

// fits reports whether a member can take a task of the candidate set in this stage.
func (s *stage) fits(n *node) bool { return s.p.fits(n, s.kind) }

func (p *candidates) fits(n *node, kind int) bool {
	return !n.rateLimited && !n.kept && p.hasSlots(n, kind)
}

// room reports whether a member has room for a task of the candidate set.
func (p *candidates) hasSlots(n *node, kind int) bool {
	free := n.capacity - n.load
	switch kind {
	case stageIdle:
		if n.load > 0 {
			return false
		}
	case stageOnce:
		free += min(n.prefetch, n.capacity)
	case stageDeep:
		free += n.prefetch
	}
	return free >= p.width && p.classFits(n)
}

// classFits reports whether a node has room for a task of the candidate set beside others of the class.
func (p *candidates) classFits(n *node) bool {
	if !n.limited {
		return true
	}
	i := n.limit(p.class)
	return i < 0 || n.limits[i].capacity-n.limits[i].load >= p.width
}

// excluded reports whether the present request excludes a node.
func (c *Cluster) excluded(n *node) bool { return n.mark == c.excluding }
