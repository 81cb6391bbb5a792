package placement_test

import (
	"testing"

	"github.com/skalds-go/skalds/controller/placement"
)

func TestReasonsAndTheirWords(t *testing.T) {
	t.Parallel()
	node := func(id string, load int, change ...func(*placement.Node)) placement.Node {
		n := placement.Node{ID: id, Classes: []string{"a"}, Labels: map[string]string{"zone": "x"}, Capacity: 4, Load: load, CPU: -1, Memory: -1}
		for _, f := range change {
			f(&n)
		}
		return n
	}
	throttled := func(n *placement.Node) { n.Throttled = true }
	limited := func(n *placement.Node) { n.ByClass, n.LoadByClass = map[string]int{"a": 1}, map[string]int{"a": 1} }
	request := placement.Request{Class: "a"}
	with := func(f func(*placement.Request)) placement.Request {
		q := request
		f(&q)
		return q
	}
	many := make([]placement.Node, 12)
	for i := range many {
		many[i] = node(string(rune('a'+i)), 4)
	}
	cases := []struct {
		name  string
		nodes []placement.Node
		q     placement.Request
		want  placement.Reason
		words string
	}{
		{"no node", nil, request, placement.NoEligibleNode,
			"No node takes work now. It starts when a node comes online, or is no longer draining."},
		{"no node with the class", []placement.Node{node("n1", 0)}, with(func(q *placement.Request) { q.Class = "b" }), placement.NoNodeForClass,
			`No node has the class "b": 1 node takes work, for other classes only. It needs a node that registers a handler for it.`},
		{"labels", []placement.Node{node("n1", 0), node("n2", 0)}, with(func(q *placement.Request) { q.Selector = selector(t, "zone=y") }), placement.NoNodeForLabels,
			`No node has labels that match "zone=y": 2 nodes have the class "a", with other labels. It needs a node with such labels, or another selector.`},
		{"no such label at all", []placement.Node{node("n1", 0)}, with(func(q *placement.Request) { q.Selector = selector(t, "!zone") }), placement.NoNodeForLabels,
			`No node has labels that match "!zone": 1 node has the class "a", with other labels. It needs a node with such labels, or another selector.`},
		{"too many slots", []placement.Node{node("n1", 0)}, with(func(q *placement.Request) { q.Slots = 5 }), placement.SlotsOverCapacity,
			`It takes 5 slots, and no node that matches can hold more than 4 of the class "a". It needs a larger node (NODE_CAPACITY, NODE_CAPACITY_BY_CLASS), or fewer slots.`},
		{"too many slots of the class", []placement.Node{node("n1", 0, limited)}, with(func(q *placement.Request) { q.Slots = 2 }), placement.SlotsOverCapacity,
			`It takes 2 slots, and no node that matches can hold more than 1 of the class "a". It needs a larger node (NODE_CAPACITY, NODE_CAPACITY_BY_CLASS), or fewer slots.`},
		{"full", []placement.Node{node("n1", 4), node("n2", 2)}, with(func(q *placement.Request) { q.Slots = 3 }), placement.NodesFull,
			"It takes 3 slots, and 2 nodes that match are full (n1, n2). The most that is free on one of them is 2. It starts when enough of their tasks end, or with another node."},
		{"full of the class", []placement.Node{node("n1", 1, limited)}, request, placement.NodesFull,
			"It takes 1 slot, and 1 node that matches is full (n1). The most that is free on one of them is 0. It starts when enough of their tasks end, or with another node."},
		{"many are full", many, request, placement.NodesFull,
			"It takes 1 slot, and 12 nodes that match are full (a, b, c, d, e, f, g, h, i, j and 2 more). The most that is free on one of them is 0. It starts when enough of their tasks end, or with another node."},
		{"anti-affinity", []placement.Node{node("n1", 0), node("n2", 4)}, with(func(q *placement.Request) { q.Anti = []string{"n1"} }), placement.AntiAffinity,
			"1 node that matches holds a task of the same anti-affinity key; 1 other is full (n2). It starts when one of those tasks ends."},
		{"avoided", []placement.Node{node("n1", 0), node("n2", 4)}, with(func(q *placement.Request) { q.Avoid = []string{"n1"} }), placement.NodesAvoided,
			"It has crashed 1 node that matches; 1 other is full (n2). It waits for one of those that it has not crashed."},
		{"throttled", []placement.Node{node("n1", 0, throttled), node("n2", 4)}, request, placement.NodesThrottled,
			"1 node that matches has no token of the rate limit now; 1 other is full (n2). It starts with the next token."},
		{"throttled and full", []placement.Node{node("n1", 4, throttled)}, request, placement.NodesFull,
			"It takes 1 slot, and 1 node that matches is full (n1). The most that is free on one of them is 0. It starts when enough of their tasks end, or with another node."},
		{"alone", []placement.Node{node("n1", 1)}, with(func(q *placement.Request) { q.Alone = true }), placement.NodesFull,
			"It must run alone on its node, since its node died twice while it ran, and none that matches is empty (n1). One of them takes nothing else until it is."},
		{"placed", []placement.Node{node("n1", 1), node("n2", 2)}, request, "",
			"It goes to node n1 next (1 of 4 slots in use), by LEAST_TASKS."},
		{"avoided by all, but there is no other", []placement.Node{node("n1", 0)}, with(func(q *placement.Request) { q.Avoid = []string{"n1"} }), "",
			"It goes to node n1 next (0 of 4 slots in use), by LEAST_TASKS."},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cluster := placement.NewCluster(1)
			for _, n := range c.nodes {
				cluster.Set(n)
			}
			q := c.q
			e := cluster.Explain(&q)
			if got := e.Words(); got != c.words || e.Reason != c.want {
				t.Errorf("%s:\n%s\nwant %s:\n%s", e.Reason, got, c.want, c.words)
			}
			if reason, ok := cluster.Feasible(&q); reason != c.want || ok != (c.want == "") {
				t.Errorf("feasible: %q %v", reason, ok)
			}
			if d := cluster.Place(&q); d.Reason != c.want || (d.Node == "") != (c.want != "") {
				t.Errorf("placed: %+v", d)
			}
		})
	}
}
