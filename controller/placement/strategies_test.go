package placement_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/skalds-go/skalds/controller/placement"
)

func TestStrategyNames(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		want placement.Strategy // empty = there is none
	}{
		{"LEAST_TASKS", placement.LeastTasks},
		{"least_tasks", placement.LeastTasks},
		{"least_loaded", placement.LeastTasks},
		{"round-robin", placement.RoundRobin},
		{" Round_Robin ", placement.RoundRobin},
		{"random", placement.Random},
		{"power_of_two", placement.PowerOfTwo},
		{"least_load", placement.LeastLoad},
		{"binpack", placement.Binpack},
		{"sticky", placement.Sticky},
		{"spread", placement.Spread},
		{"Spread:zone", placement.Spread},
		{"spread:Rack", "SPREAD:Rack"},
		{"spread:example.com/rack", "SPREAD:example.com/rack"},
		{"idle|least_loaded", "IDLE|LEAST_TASKS"},
		{"Idle| spread:rack", "IDLE|SPREAD:rack"},
		{"", ""},
		{"idle", ""},
		{"idle|", ""},
		{"idle|idle|random", ""},
		{"fastest", ""},
		{"random:zone", ""},
		{"spread:", ""},
		{"spread:a=b", ""},
		{"spread:!a", ""},
		{"spread:a,b", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, ok := placement.ParseStrategy(c.name)
			if ok != (c.want != "") || ok && got != c.want {
				t.Errorf("got %q %v, want %q", got, ok, c.want)
			}
			if again, ok := placement.ParseStrategy(string(got)); ok != (c.want != "") && c.want != "" || ok && again != got {
				t.Errorf("%q is read as %q", got, again)
			}
		})
	}
}

func FuzzParseStrategy(f *testing.F) {
	for _, s := range []string{"LEAST_TASKS", "idle|spread:rack", "SPREAD:", "|", ":", "IDLE||"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		s, ok := placement.ParseStrategy(name)
		if !ok {
			return
		}
		if again, ok := placement.ParseStrategy(string(s)); !ok || again != s {
			t.Errorf("%q gives %q, and that %q %v", name, s, again, ok)
		}
	})
}

func TestPowerOfTwoIsFairerThanRandom(t *testing.T) {
	t.Parallel()
	most := func(s placement.Strategy) int {
		largest := 0
		for _, n := range place(fill(3, 100, 1000), placement.Request{Class: "a", Strategy: s}, 3000) {
			largest = max(largest, n)
		}
		return largest
	}
	if random, two := most(placement.Random), most(placement.PowerOfTwo); two > 33 || random < 40 {
		t.Errorf("of 3,000 tasks on 100 nodes the fullest has %d, and by RANDOM %d; want 30 to 33, and far more", two, random)
	}
}

func TestLeastLoadBelievesFreshReadings(t *testing.T) {
	t.Parallel()
	q := placement.Request{Class: "a", Strategy: placement.LeastLoad}
	busy := placement.Node{ID: "busy", Classes: []string{"a"}, Capacity: 10, Load: 0, CPU: 0.9, Memory: 0.1}
	calm := placement.Node{ID: "calm", Classes: []string{"a"}, Capacity: 10, Load: 5, CPU: 0.1, Memory: 0.2}
	cases := []struct {
		name   string
		change func(busy, calm *placement.Node)
		want   string
	}{
		{"fresh readings", func(*placement.Node, *placement.Node) {}, "calm"},
		{"old readings", func(b, c *placement.Node) { b.Age, c.Age = time.Minute, time.Minute }, "busy"},
		{"no readings", func(b, c *placement.Node) { b.CPU, b.Memory, c.CPU, c.Memory = -1, -1, -1, -1 }, "busy"},
		{"much was sent since", func(_, c *placement.Node) { c.Fresh, c.Load = 8, 9 }, "busy"},
		{"memory counts", func(_, c *placement.Node) { c.Memory = 0.95 }, "busy"},
		{"more than all", func(b, c *placement.Node) { b.CPU, c.CPU = 7, 1 }, "busy"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cluster := placement.NewCluster(1)
			b, k := busy, calm
			c.change(&b, &k)
			cluster.Set(b)
			cluster.Set(k)
			if got := cluster.Place(&q).Node; got != c.want {
				t.Errorf("got %s, want %s: %v", got, c.want, cluster.Explain(&q).Best)
			}
		})
	}
	t.Run("what is sent counts", func(t *testing.T) {
		t.Parallel()
		c := placement.NewCluster(1)
		c.Set(busy)
		c.Set(calm)
		if got := place(c, q, 10); got["busy"] == 0 || got["calm"] < 5 {
			t.Errorf("10 tasks: %v, want both, and calm its 5 at first", got)
		}
	})
}

func TestBinpackFillsNodeByNode(t *testing.T) {
	t.Parallel()
	c := fill(1, 4, 10)
	q := placement.Request{Class: "a", Strategy: placement.Binpack}
	if got := place(c, q, 25); got["n00"] != 10 || got["n01"] != 10 || got["n02"] != 5 {
		t.Errorf("25 tasks: %v, want 10, 10 and 5", got)
	}
	list := some(4, 10)
	list[3].Load = 1 // the others end what they have
	for _, n := range list {
		c.Set(n)
	}
	if got := c.Place(&q).Node; got != "n03" {
		t.Errorf("got %s, want the only one that has something", got)
	}
}

func TestStickyKeysStay(t *testing.T) {
	t.Parallel()
	c := fill(1, 20, 1000)
	where := make(map[string]string)
	keys := make([]string, 400)
	ask := func(key string) string {
		return c.Place(&placement.Request{Class: "a", Strategy: placement.Sticky, StickyKey: key}).Node
	}
	for i := range keys {
		keys[i] = fmt.Sprint("key-", i)
		where[keys[i]] = ask(keys[i])
	}
	per := make(map[string]int)
	for _, key := range keys {
		per[where[key]]++
		if again := ask(key); again != where[key] {
			t.Fatalf("%s went to %s and then to %s", key, where[key], again)
		}
	}
	if len(per) != 20 {
		t.Errorf("the keys use %d of 20 nodes", len(per))
	}
	c.Remove("n07")
	moved := 0
	for _, key := range keys {
		now := ask(key)
		if now != where[key] && where[key] != "n07" || now == "n07" {
			t.Errorf("%s moved from %s to %s", key, where[key], now)
		}
		if now != where[key] {
			moved++
		}
	}
	if moved != per["n07"] {
		t.Errorf("%d keys moved, want the %d of the node that is gone", moved, per["n07"])
	}
	c.Set(some(20, 1000)[7])
	for _, key := range keys {
		if now := ask(key); now != where[key] {
			t.Errorf("%s is at %s after its node %s is back", key, now, where[key])
		}
	}
}

func TestStickyFallsOverToTheNextInTheKeysOrder(t *testing.T) {
	t.Parallel()
	const nodes, capacity = 30, 2
	q := placement.Request{Class: "a", Strategy: placement.Sticky, StickyKey: "k"}
	c := fill(1, nodes, capacity)
	var order []string
	for range nodes * capacity {
		order = append(order, c.Place(&q).Node)
	}
	if d := c.Place(&q); d.Reason != placement.NodesFull {
		t.Errorf("after all were full: %+v", d)
	}
	for i := 0; i < len(order); i += capacity {
		if order[i] != order[i+1] || slices.Contains(order[:i], order[i]) {
			t.Fatalf("the order was %v, want each node until it is full", order)
		}
	}
	again := fill(2, nodes, capacity) // another leader has the same order
	for _, want := range order {
		if got := again.Place(&q).Node; got != want {
			t.Fatalf("another cluster gives %s, want %s", got, want)
		}
	}
}

func TestSpreadIsByValueFirst(t *testing.T) {
	t.Parallel()
	c := placement.NewCluster(1)
	for i := range 7 { // one node in a, two in b, three in c, one nowhere
		n := placement.Node{ID: fmt.Sprint("n", i), Classes: []string{"a"}, Capacity: 100, Labels: map[string]string{"rack": fmt.Sprint(i % 2)}}
		if i < 6 {
			n.Labels["zone"] = string("abbccc"[i])
		}
		c.Set(n)
	}
	got := place(c, placement.Request{Class: "a", Strategy: placement.Spread}, 48)
	want := map[string]int{"n0": 12, "n1": 6, "n2": 6, "n3": 4, "n4": 4, "n5": 4, "n6": 12}
	for id, n := range want {
		if got[id] != n {
			t.Errorf("%s got %d, want %d of 12 for each zone and those without one: %v", id, got[id], n, got)
		}
	}
	racks := [2]int{28, 20} // n0, n2, n4, n6; n1, n3, n5
	for id, n := range place(c, placement.Request{Class: "a", Strategy: "SPREAD:rack"}, 8) {
		racks[(id[1]-'0')%2] += n
	}
	if racks[0] != racks[1] && racks != [2]int{28, 28} {
		t.Errorf("the racks have %v, want as much on both", racks)
	}
}

func TestAlone(t *testing.T) {
	t.Parallel()
	alone := placement.Request{Class: "a", Alone: true, Prefetch: placement.PrefetchDeep}
	for _, s := range every() {
		t.Run(string(s), func(t *testing.T) {
			t.Parallel()
			list := some(3, 4)
			list[0].Load, list[2].Load = 2, 1
			c := placement.NewCluster(1)
			for _, n := range list {
				c.Set(n)
			}
			q := alone
			q.Strategy = s
			d := c.Place(&q)
			if d.Node != "n01" {
				t.Fatalf("it went to %+v, want the empty node", d)
			}
			more := placement.Request{Class: "a", Strategy: s, Prefetch: placement.PrefetchDeep}
			if got := place(c, more, 20); got["n01"] != 0 || got["n00"] != 2 || got["n02"] != 3 {
				t.Errorf("%v beside it, want none there and the others full", got)
			}
			if !c.Unplace(d) || c.Place(&more).Node != "n01" {
				t.Error("its node takes nothing after it was taken back")
			}
		})
	}
}

func TestANodeIsKeptFreeForATaskThatMustBeAlone(t *testing.T) {
	t.Parallel()
	list := some(2, 4)
	list[0].Load, list[1].Load = 3, 1
	c := placement.NewCluster(1)
	c.Set(list[0])
	c.Set(list[1])
	c.Begin()
	alone := placement.Request{Class: "a", Alone: true}
	if d := c.Place(&alone); d.Reason != placement.NodesFull {
		t.Errorf("it went to %+v beside others", d)
	}
	if slots, _ := c.Free(); slots != 1 {
		t.Errorf("room for %d, want 1", slots)
	}
	if got := place(c, placement.Request{Class: "a"}, 5); got["n00"] != 1 || got["n01"] != 0 {
		t.Errorf("%v placed, want nothing on the node that is nearly empty", got)
	}
	c.Begin()
	if d := c.Place(&placement.Request{Class: "a"}); d.Node != "n01" || !c.Unplace(d) {
		t.Errorf("it went to %+v, want the node that is kept free no longer", d)
	}
	list[1].Load = 0 // it is empty by now
	c.Set(list[1])
	if d := c.Place(&alone); d.Node != "n01" {
		t.Errorf("it went to %+v", d)
	}
	c.Begin()
	if d := c.Place(&placement.Request{Class: "a"}); d.Node != "" {
		t.Errorf("%s took something beside it", d.Node)
	}
}

func TestC79_NodesThatATaskHasCrashedAreAvoided(t *testing.T) {
	t.Parallel()
	for _, s := range every() {
		list := some(3, 4)
		list[2].Load = 3
		c := placement.NewCluster(1)
		for _, n := range list {
			c.Set(n)
		}
		avoid := placement.Request{Class: "a", Strategy: s, StickyKey: "k", Avoid: []string{"n00", "n01", "n00"}}
		if d := c.Place(&avoid); d.Node != "n02" {
			t.Errorf("%s: it went to %+v, want the node that it has not crashed", s, d)
		}
		if d := c.Place(&avoid); d.Reason != placement.NodesAvoided {
			t.Errorf("%s: it went to %+v, want it to wait for that node", s, d)
		}
		avoid.Avoid = append(avoid.Avoid, "n02")
		if d := c.Place(&avoid); d.Node == "" {
			t.Errorf("%s: it waits for ever: %+v", s, d)
		}
	}
}

func TestPrefetchIsForShortRunsOnceNoSlotIsFree(t *testing.T) {
	t.Parallel()
	list := some(2, 2)
	list[0].Prefetch, list[1].Prefetch, list[0].Load = 5, 5, 2
	c := placement.NewCluster(1)
	c.Set(list[0])
	c.Set(list[1])
	short := placement.Request{Class: "a", Prefetch: placement.PrefetchOnce}
	if got := place(c, short, 2); got["n01"] != 2 {
		t.Errorf("short tasks went to %v, want the two free slots first", got)
	}
	if slots, queue := c.Free(); slots != 0 || queue != 10 {
		t.Errorf("room for %d and %d, want 0 and 10", slots, queue)
	}
	if d := c.Place(&placement.Request{Class: "a"}); d.Reason != placement.NodesFull {
		t.Errorf("a long task was queued: %+v", d)
	}
	if got := place(c, short, 50); got["n00"] != 2 || got["n01"] != 2 {
		t.Errorf("placed %v more, want as many as the capacity on each", got)
	}
	short.Prefetch = placement.PrefetchDeep
	if got := place(c, short, 50); got["n00"] != 3 || got["n01"] != 3 {
		t.Errorf("placed %v more, want the rest of what each may queue", got)
	}
}

func TestTheSameCallsGiveTheSameDecisions(t *testing.T) {
	t.Parallel()
	for _, s := range every() {
		run := func() (got []string) {
			c := fill(5, 20, 6)
			q := placement.Request{Class: "a", Strategy: s, StickyKey: "k"}
			for i := range 100 {
				got = append(got, c.Place(&q).Node)
				if i%7 == 0 {
					c.Set(some(20, 6)[i%20])
				}
			}
			return got
		}
		if a, b := run(), run(); !slices.Equal(a, b) {
			t.Errorf("%s: %v and %v", s, a, b)
		}
	}
}
