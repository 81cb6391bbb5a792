package placement

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strings"

	"github.com/skalds-go/skalds/pkg/task"
)

var spread = definition{
	name:  Spread,
	label: "zone",
	every: true, // the pick depends on the loads of all nodes with the same value
	choose: func(s *stage) chooser {
		return &spreading{stage: s, groups: make(map[string]*group), of: make(map[int32]part)}
	},
	score: func(x *scan) (rank, func(n *node) string) {
		groups := make(map[string]*group)
		for _, n := range x.members {
			value := n.labels[x.by]
			if groups[value] == nil {
				groups[value] = &group{value: value}
			}
			groups[value].load += n.load
			groups[value].last = max(groups[value].last, n.last)
		}
		order := make([]*group, 0, len(groups))
		for _, g := range groups {
			order = append(order, g)
		}
		slices.SortFunc(order, (*group).compare)
		for i, g := range order {
			g.at = i
		}
		rank := func(n *node) float64 { return float64(groups[n.labels[x.by]].at)*(2*task.MaxSlots) + n.ratio() }
		return rank, func(n *node) string {
			g := groups[n.labels[x.by]]
			where := x.by + " " + g.value
			if g.value == "" {
				where = "nodes without " + x.by
			}
			return fmt.Sprintf("%s: %d slots in use; %s", where, g.load, n.describeSlots())
		}
	},
}

// spreading is the chooser of SPREAD. It picks the value of a label whose nodes have the least load together, and of
// these nodes the one with the lowest ratio. Nodes without the label count as nodes with an empty value.
type spreading struct {
	*stage
	groups  map[string]*group
	of      map[int32]part // by node
	open    []*group       // a heap of the groups that may have nodes that fit
	skipped []*group       // groups whose nodes the present request excludes
}

// group is the nodes with one value of the label.
type group struct {
	value   string
	load    int   // slots in use on all of them
	last    int64 // the number of the last placement on one of them
	members int
	nodes   ranking
	at      int // index in open; -1 = not there
}

// part is the contribution of a node to its group.
type part struct {
	group *group
	load  int
	stamp uint32 // of the node when it was added to the group's ranking
}

func (g *group) compare(o *group) int {
	switch {
	case g.load != o.load:
		return cmp.Compare(g.load, o.load)
	case g.last != o.last:
		return cmp.Compare(g.last, o.last)
	}
	return strings.Compare(g.value, o.value)
}

func (s *spreading) add(i int32) {
	n := &s.c.nodes[i]
	p, known := s.of[i]
	if !known {
		p.group = s.group(n.labels[s.p.plan.by])
		p.group.members++
	}
	g := p.group
	g.load += n.load - p.load
	g.last = max(g.last, n.last)
	p.load = n.load
	if stamp := n.stamps[better]; !known || p.stamp != stamp {
		p.stamp = stamp
		g.nodes.add(i)
	}
	s.of[i] = p
	s.fix(g)
}

func (s *spreading) group(value string) *group {
	g, ok := s.groups[value]
	if !ok {
		g = &group{value: value, at: -1}
		g.nodes = ranking{stage: s.stage, rank: (*node).ratio, size: &g.members, log: better}
		s.groups[value] = g
	}
	return g
}

func (s *spreading) drop(i int32) {
	p, known := s.of[i]
	if !known {
		return
	}
	delete(s.of, i)
	g := p.group
	g.load -= p.load
	if g.members--; g.members > 0 {
		s.fix(g)
		return
	}
	if g.at >= 0 {
		heap.Remove(s, g.at)
	}
	delete(s.groups, g.value)
}

// fix restores the heap after a change of a group.
func (s *spreading) fix(g *group) {
	switch {
	case g.at >= 0:
		heap.Fix(s, g.at)
	case len(g.nodes.items) > 0:
		heap.Push(s, g)
	}
}

func (s *spreading) pick(q *Request) int32 {
	i := int32(-1)
	for i < 0 && len(s.open) > 0 {
		g := s.open[0]
		if i = g.nodes.pick(q); i >= 0 {
			break
		}
		heap.Pop(s)
		if len(g.nodes.items) > 0 {
			s.skipped = append(s.skipped, g)
		}
	}
	for _, g := range s.skipped {
		heap.Push(s, g)
	}
	s.skipped = s.skipped[:0]
	return i
}

func (s *spreading) any() bool { return s.pick(nil) >= 0 }

// Len, Less and Swap implement heap.Interface.
func (s *spreading) Len() int { return len(s.open) }

func (s *spreading) Less(i, j int) bool { return s.open[i].compare(s.open[j]) < 0 }

func (s *spreading) Swap(i, j int) {
	s.open[i], s.open[j] = s.open[j], s.open[i]
	s.open[i].at, s.open[j].at = i, j
}

// Push implements heap.Interface.
func (s *spreading) Push(x any) {
	g := x.(*group) //nolint:forcetypeassert // only groups are pushed
	g.at = len(s.open)
	s.open = append(s.open, g)
}

// Pop implements heap.Interface.
func (s *spreading) Pop() any {
	last := len(s.open) - 1
	g := s.open[last]
	s.open, g.at = s.open[:last], -1
	return g
}
