package placement_test

import (
	"testing"

	"github.com/skalds-go/skalds/controller/placement"
)

func TestAChangeOfANodeIsSeen(t *testing.T) {
	t.Parallel()
	wide := placement.Request{Class: "d", Slots: 6}
	cases := []struct {
		name   string
		q      placement.Request
		change func(*placement.Node)
	}{
		{"more capacity", wide, func(n *placement.Node) { n.Capacity = 8 }},
		{"another class", placement.Request{Class: "b"}, func(n *placement.Node) { n.Classes = []string{"b"} }},
		{"another label", placement.Request{Class: "a", Selector: selector(t, "zone=y")}, func(n *placement.Node) { n.Labels = map[string]string{"zone": "y"} }},
		{"more of the class", placement.Request{Class: "a", Slots: 3}, func(n *placement.Node) { n.ByClass = map[string]int{"a": 4} }},
		{"no limit of the class", placement.Request{Class: "a", Slots: 3}, func(n *placement.Node) { n.ByClass = nil }},
		{"less load", placement.Request{Class: "d", Slots: 4}, func(n *placement.Node) { n.Load = 0 }},
		{"less load of the class", placement.Request{Class: "a", Slots: 2}, func(n *placement.Node) { n.LoadByClass = nil }},
	}
	for _, c := range cases {
		for _, s := range every() {
			t.Run(c.name+" "+string(s), func(t *testing.T) {
				t.Parallel()
				cluster := placement.NewCluster(1)
				n := placement.Node{ID: "n", Classes: []string{"a", "d"}, Labels: map[string]string{"zone": "x"}, Capacity: 4, Load: 1,
					ByClass: map[string]int{"a": 2}, LoadByClass: map[string]int{"a": 1}}
				cluster.Set(n)
				q := c.q
				q.Strategy, q.StickyKey = s, "k"
				if d := cluster.Place(&q); d.Node != "" {
					t.Fatal("it was placed before the change")
				}
				before := n
				c.change(&n)
				cluster.Set(n)
				if slots, _ := cluster.Free(); slots != n.Capacity-n.Load {
					t.Errorf("room for %d, want %d", slots, n.Capacity-n.Load)
				}
				if d := cluster.Place(&q); d.Node != "n" {
					t.Errorf("after the change: %s", d.Reason)
				}
				cluster.Begin()
				cluster.Set(before)
				if d := cluster.Place(&q); d.Node != "" {
					t.Error("it was placed after the change was undone")
				}
			})
		}
	}
}

func TestSpreadSeesThatANodeHasMoved(t *testing.T) {
	t.Parallel()
	node := func(id, zone string, load int) placement.Node {
		return placement.Node{ID: id, Classes: []string{"a"}, Labels: map[string]string{"zone": zone}, Capacity: 100, Load: load}
	}
	c := placement.NewCluster(1)
	c.Set(node("n0", "a", 10))
	c.Set(node("n1", "a", 40))
	c.Set(node("n2", "b", 20))
	q := placement.Request{Class: "a", Strategy: placement.Spread}
	if d := c.Place(&q); d.Node != "n2" {
		t.Errorf("it went to %s, want zone b", d.Node)
	}
	c.Set(node("n1", "c", 40)) // a has 10 now, b 21 and c 40
	if d := c.Place(&q); d.Node != "n0" {
		t.Errorf("it went to %s, want zone a", d.Node)
	}
	c.Set(node("n0", "c", 1)) // b has 21, c 41
	if d := c.Place(&q); d.Node != "n2" {
		t.Errorf("it went to %s, want zone b", d.Node)
	}
}

func TestLeastLoadSeesNewReadings(t *testing.T) {
	t.Parallel()
	list := some(2, 10)
	list[0].CPU, list[1].CPU = 0.3, 0.5
	c := placement.NewCluster(1)
	c.Set(list[0])
	c.Set(list[1])
	q := placement.Request{Class: "a", Strategy: placement.LeastLoad}
	if d := c.Place(&q); d.Node != "n00" {
		t.Errorf("it went to %s", d.Node)
	}
	list[1].CPU = 0.1
	c.Set(list[1])
	if d := c.Place(&q); d.Node != "n01" {
		t.Errorf("it went to %s, want the node whose machine is calm by now", d.Node)
	}
}
