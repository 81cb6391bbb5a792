package placement

// The stages of a candidate set. They are asked in order. The first stage that has a node decides.
const (
	stageIdle  = iota // nodes without tasks
	stageSlots        // nodes with free slots
	stageOnce         // nodes with free prefetch, up to their capacity
	stageDeep         // nodes with free prefetch
	stageCount
)

// uses reports whether a request may use a stage.
func (q *Request) uses(kind int) bool {
	switch kind {
	case stageOnce:
		return q.Prefetch >= PrefetchOnce
	case stageDeep:
		return q.Prefetch >= PrefetchDeep
	}
	return true
}

// chooser picks among the nodes of one stage by a strategy. It may hold nodes that do not fit any more. It drops them
// when it comes to them, and the candidate set adds them again when they may fit.
type chooser interface {
	// add adds a member that is new, has changed or may fit again.
	add(i int32)
	// drop removes a node that may not be a member any more.
	drop(i int32)
	// pick returns the best node that fits and is not excluded, or -1. It places nothing.
	pick(q *Request) int32
	// any reports whether pick would return a node. It uses no random numbers.
	any() bool
}

// stage is one stage of a candidate set.
type stage struct {
	c       *Cluster
	p       *candidates
	kind    int
	chooser chooser // nil until the stage is asked first
}

// ready returns the chooser. The first call creates it.
func (s *stage) ready() chooser {
	if s.chooser == nil {
		s.chooser = s.p.plan.choose(s)
		for i := range s.p.members.all {
			s.chooser.add(i)
		}
	}
	return s.chooser
}

// fits reports whether a member can take a task of the candidate set in this stage now.
func (s *stage) fits(n *node) bool { return s.p.fits(n, s.kind) }

// fits reports whether a member can take a task of the candidate set in a stage now.
func (p *candidates) fits(n *node, kind int) bool {
	return !n.rateLimited && !n.kept && p.hasSlots(n, kind)
}

// hasSlots reports whether a member has enough free slots for a task of the candidate set in a stage.
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

// classFits reports whether a node has enough free slots of the class for a task of the candidate set.
func (p *candidates) classFits(n *node) bool {
	if !n.limited {
		return true
	}
	i := n.limit(p.class)
	return i < 0 || n.limits[i].capacity-n.limits[i].load >= p.width
}

// excluded reports whether the present request excludes a node.
func (c *Cluster) excluded(n *node) bool { return n.mark == c.excluding }
