package placement

import (
	"cmp"
	"math"
	"slices"
)

// model is a cluster that looks at all nodes for each decision.
type model struct {
	nodes map[string]*seen
	clock int64
	sent  []sent // what was placed
}

type seen struct {
	Node
	last   int64
	kept   bool
	joined int
	set    int
}

type sent struct {
	d           Decision
	node        *seen
	joined, set int
	load, width int
	class       string
	back        bool
}

func (n *seen) most(class string) int {
	if limit, ok := n.ByClass[class]; ok {
		return min(limit, n.Capacity)
	}
	return n.Capacity
}

func (n *seen) room(q *Request, kind int) bool {
	free := n.Capacity - n.Load
	switch kind {
	case stageOnce:
		free += min(n.Prefetch, n.Capacity)
	case stageDeep:
		free += n.Prefetch
	}
	if kind == stageIdle && n.Load > 0 {
		return false
	}
	if limit, ok := n.ByClass[q.Class]; ok && limit-n.LoadByClass[q.Class] < q.width() {
		return false
	}
	return free >= q.width()
}

// able returns the nodes that could hold the task when they are empty, or the reason why there are none.
func (m *model) able(q *Request) ([]*seen, Reason) {
	class, labels := false, false
	var list []*seen
	for _, n := range m.nodes {
		if !slices.Contains(n.Classes, q.Class) {
			continue
		}
		class = true
		if !q.Selector.Matches(n.Labels) {
			continue
		}
		labels = true
		if n.most(q.Class) >= q.width() {
			list = append(list, n)
		}
	}
	slices.SortFunc(list, func(a, b *seen) int { return cmp.Compare(a.ID, b.ID) })
	switch {
	case len(list) > 0:
		return list, ""
	case len(m.nodes) == 0:
		return nil, NoEligibleNode
	case !class:
		return nil, NoNodeForClass
	case !labels:
		return nil, NoNodeForLabels
	}
	return nil, SlotsOverCapacity
}

// excluded says which nodes a request excludes.
func (m *model) excluded(q *Request, able []*seen) func(*seen) bool {
	others := slices.ContainsFunc(able, func(n *seen) bool { return !slices.Contains(q.Avoid, n.ID) })
	return func(n *seen) bool {
		return slices.Contains(q.Anti, n.ID) || others && slices.Contains(q.Avoid, n.ID)
	}
}

// candidates returns the nodes among which the strategy picks, or the reason why there are none.
func (m *model) candidates(q *Request, idle bool) (fit []*seen, kind int, reason Reason) {
	able, reason := m.able(q)
	if reason != "" {
		return nil, 0, reason
	}
	excluded := m.excluded(q, able)
	kinds := []int{stageSlots}
	if idle {
		kinds = []int{stageIdle, stageSlots}
	}
	if q.Prefetch >= PrefetchOnce {
		kinds = append(kinds, stageOnce)
	}
	if q.Prefetch == PrefetchDeep {
		kinds = append(kinds, stageDeep)
	}
	if q.Alone {
		kinds = []int{stageIdle}
	}
	for _, kind := range kinds {
		for _, n := range able {
			if !excluded(n) && !n.RateLimited && !n.kept && n.room(q, kind) {
				fit = append(fit, n)
			}
		}
		if len(fit) > 0 {
			return fit, kind, ""
		}
	}
	kind = kinds[len(kinds)-1]
	held := func(ids []string) bool {
		return slices.ContainsFunc(able, func(n *seen) bool {
			return excluded(n) && slices.Contains(ids, n.ID) && !n.RateLimited && !n.kept && n.room(q, kind)
		})
	}
	switch {
	case held(q.Anti):
		return nil, kind, AntiAffinity
	case held(q.Avoid):
		return nil, kind, NodesAvoided
	case slices.ContainsFunc(able, func(n *seen) bool { return n.RateLimited && n.room(q, kind) }):
		return nil, kind, NodesRateLimited
	}
	return nil, kind, NodesFull
}

// best returns the nodes that the strategy may pick.
func (m *model) best(p *candidates, placed map[string]int64, q *Request, name Strategy, fit []*seen, kind int) []*seen {
	ratio := func(a, b *seen) int { return cmp.Compare(a.Load*b.Capacity, b.Load*a.Capacity) }
	ours := func(n *seen) int64 { return placed[n.ID] }
	turn := func(a, b *seen) int {
		return cmp.Or(cmp.Compare(ours(a), ours(b)), cmp.Compare(a.last, b.last), cmp.Compare(a.ID, b.ID))
	}
	least := func(a, b *seen) int { return cmp.Or(ratio(a, b), turn(a, b)) }
	if q.Alone {
		return []*seen{slices.MinFunc(fit, func(a, b *seen) int { return cmp.Or(cmp.Compare(a.last, b.last), cmp.Compare(a.ID, b.ID)) })}
	}
	switch name {
	case Random:
		return fit
	case LeastTasks:
		return []*seen{slices.MinFunc(fit, least)}
	case RoundRobin:
		highest := p.stages[kind].chooser.(*rotating).highest
		count := func(n *seen) int64 { return max(n.Served, highest-int64(n.Capacity)) }
		return []*seen{slices.MinFunc(fit, func(a, b *seen) int { return cmp.Or(cmp.Compare(count(a), count(b)), turn(a, b)) })}
	case PowerOfTwo:
		if len(fit) > 2 {
			return fit
		}
		lighter := func(a, b *seen) int { return cmp.Or(ratio(a, b), cmp.Compare(a.last, b.last)) }
		first := slices.MinFunc(fit, lighter)
		return slices.DeleteFunc(slices.Clone(fit), func(n *seen) bool { return lighter(first, n) < 0 })
	case LeastLoad:
		press := func(n *seen) float64 {
			load := float64(n.Load) / float64(n.Capacity)
			read := max(min(n.CPU, 1), min(n.Memory, 1))
			if read < 0 {
				return load
			}
			w := math.Exp2(-n.Age.Seconds() / 10)
			return w*(read+float64(n.Fresh)/float64(n.Capacity)) + (1-w)*load
		}
		lowest := press(slices.MinFunc(fit, func(a, b *seen) int { return cmp.Compare(press(a), press(b)) }))
		return slices.DeleteFunc(slices.Clone(fit), func(n *seen) bool { return press(n) > lowest+1e-9 })
	case Binpack:
		return []*seen{slices.MinFunc(fit, func(a, b *seen) int { return cmp.Or(ratio(b, a), cmp.Compare(a.ID, b.ID)) })}
	case Sticky:
		if q.StickyKey == "" {
			return []*seen{slices.MinFunc(fit, least)}
		}
		return []*seen{slices.MaxFunc(fit, func(a, b *seen) int {
			return cmp.Compare(mix(hash(q.StickyKey)^hash(a.ID)), mix(hash(q.StickyKey)^hash(b.ID)))
		})}
	case Spread, Spread + ":rack":
		label := "zone"
		if name != Spread {
			label = "rack"
		}
		able, _ := m.able(q)
		loads := make(map[string]int)
		for _, n := range able {
			loads[n.Labels[label]] += n.Load
		}
		byValue := make(map[string][]*seen)
		for _, n := range fit {
			byValue[n.Labels[label]] = append(byValue[n.Labels[label]], n)
		}
		lowest := math.MaxInt
		for value := range byValue {
			lowest = min(lowest, loads[value])
		}
		var list []*seen
		for value, of := range byValue {
			if loads[value] == lowest {
				list = append(list, slices.MinFunc(of, least))
			}
		}
		return list
	}
	panic("no such strategy: " + name)
}
