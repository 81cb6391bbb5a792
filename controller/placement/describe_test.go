package placement_test

import (
	"testing"

	"github.com/skalds-go/skalds/controller/placement"
)

func TestReasonsAreDescribed(t *testing.T) {
	t.Parallel()
	node := func(id string, load int, change ...func(*placement.Node)) placement.Node {
		n := placement.Node{ID: id, Classes: []string{"a"}, Labels: map[string]string{"zone": "x"}, Capacity: 4, Load: load, CPU: -1, Memory: -1}
		for _, f := range change {
			f(&n)
		}
		return n
	}
	rateLimited := func(n *placement.Node) { n.RateLimited = true }
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
			"No node takes work."},
		{"no node with the class", []placement.Node{node("n1", 0)}, with(func(q *placement.Request) { q.Class = "b" }), placement.NoNodeForClass,
			"No node has the class b: 1 node takes work, but has other classes."},
		{"labels", []placement.Node{node("n1", 0), node("n2", 0)}, with(func(q *placement.Request) { q.Selector = selector(t, "zone=y") }), placement.NoNodeForLabels,
			"No node matches the labels zone=y: 2 nodes have the class a, but other labels."},
		{"no such label at all", []placement.Node{node("n1", 0)}, with(func(q *placement.Request) { q.Selector = selector(t, "!zone") }), placement.NoNodeForLabels,
			"No node matches the labels !zone: 1 node has the class a, but other labels."},
		{"too many slots", []placement.Node{node("n1", 0)}, with(func(q *placement.Request) { q.Slots = 5 }), placement.SlotsOverCapacity,
			"It takes 5 slots, and no node that matches has more than 4 for the class a."},
		{"too many slots of the class", []placement.Node{node("n1", 0, limited)}, with(func(q *placement.Request) { q.Slots = 2 }), placement.SlotsOverCapacity,
			"It takes 2 slots, and no node that matches has more than 1 for the class a."},
		{"full", []placement.Node{node("n1", 4), node("n2", 2)}, with(func(q *placement.Request) { q.Slots = 3 }), placement.NodesFull,
			"It takes 3 slots for the class a, and the most that is free on the 2 nodes that could run it is 2 (n1, n2)."},
		{"full of the class", []placement.Node{node("n1", 1, limited)}, request, placement.NodesFull,
			"No slot for the class a is free on the only node that could run it (n1)."},
		{"many are full", many, request, placement.NodesFull,
			"No slot for the class a is free on the 12 nodes that could run it (a, b, c, d, e, f, g, h, i, j and 2 more)."},
		{"anti-affinity", []placement.Node{node("n1", 0), node("n2", 4)}, with(func(q *placement.Request) { q.Anti = []string{"n1"} }), placement.AntiAffinity,
			"Every node with free slots holds a task of the same anti-affinity key (1 node); 1 other is full (n2)."},
		{"avoided", []placement.Node{node("n1", 0), node("n2", 4)}, with(func(q *placement.Request) { q.Avoid = []string{"n1"} }), placement.NodesAvoided,
			"It has crashed every node that has free slots (1 node); 1 other is full (n2)."},
		{"rate limited", []placement.Node{node("n1", 0, rateLimited), node("n2", 4)}, request, placement.NodesRateLimited,
			"Every node with free slots has used up its rate (1 node); 1 other is full (n2)."},
		{"rate limited and full", []placement.Node{node("n1", 4, rateLimited)}, request, placement.NodesFull,
			"No slot for the class a is free on the only node that could run it (n1)."},
		{"alone", []placement.Node{node("n1", 1)}, with(func(q *placement.Request) { q.Alone = true }), placement.NodesFull,
			"It needs an empty node, since its node died twice while it ran, and the only node that could run it is not empty (n1). One takes nothing else until it is."},
		{"placed", []placement.Node{node("n1", 1), node("n2", 2)}, request, "",
			"Nothing keeps it waiting: it is placed when its turn comes. LEAST_TASKS would send it to n1 now (1 of 4 slots in use)."},
		{"avoided by all, but there is no other", []placement.Node{node("n1", 0)}, with(func(q *placement.Request) { q.Avoid = []string{"n1"} }), "",
			"Nothing keeps it waiting: it is placed when its turn comes. LEAST_TASKS would send it to n1 now (0 of 4 slots in use)."},
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
			if got, help := e.Describe(); got != c.words || e.Reason != c.want || (help == "") != (c.want == "") {
				t.Errorf("%s:\n%s\n%s\nwant %s:\n%s", e.Reason, got, help, c.want, c.words)
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
