package placement_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/task"
)

// fill makes a cluster of n nodes n00, n01, ... with class a.
func fill(seed uint64, n, capacity int) *placement.Cluster {
	c := placement.NewCluster(seed)
	for _, node := range some(n, capacity) {
		c.Set(node)
	}
	return c
}

func some(n, capacity int) []placement.Node {
	list := make([]placement.Node, n)
	for i := range list {
		list[i] = placement.Node{ID: fmt.Sprintf("n%02d", i), Classes: []string{"a"}, Capacity: capacity, CPU: -1, Memory: -1}
	}
	return list
}

// place places a request so many times and counts what each node got; "" counts what was not placed.
func place(c *placement.Cluster, q placement.Request, times int) map[string]int {
	got := make(map[string]int)
	for range times {
		got[c.Place(&q).Node]++
	}
	return got
}

// within says whether so many nodes got something, and numbers that differ by at most so much.
func within(got map[string]int, nodes, by int) bool {
	list := slices.Collect(maps.Values(got))
	return len(list) == nodes && slices.Max(list)-slices.Min(list) <= by
}

func selector(t testing.TB, text string) task.Selector {
	t.Helper()
	s, err := task.ParseSelector(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// every gives all strategies, and each behind IDLE.
func every() []placement.Strategy {
	list := placement.Strategies()
	for _, s := range placement.Strategies() {
		list = append(list, "IDLE|"+s)
	}
	return list
}

func TestC64_ABurstIsSpreadWithoutHeartbeats(t *testing.T) {
	t.Parallel()
	for _, s := range []placement.Strategy{placement.LeastTasks, placement.RoundRobin, "IDLE|LEAST_TASKS", "IDLE|ROUND_ROBIN"} {
		got := place(fill(1, 7, 1000), placement.Request{Class: "a", Strategy: s}, 3000)
		if !within(got, 7, 1) {
			t.Errorf("%s: 3,000 tasks over 7 nodes: %v, want them within 1", s, got)
		}
	}
}

func TestS5_RoundRobinIsExact(t *testing.T) {
	t.Parallel()
	c := fill(1, 3, 1<<19)
	got := place(c, placement.Request{Class: "a", Strategy: placement.RoundRobin}, 3000)
	if !within(got, 3, 0) {
		t.Errorf("3,000 tasks over 3 nodes: %v, want exactly 1,000 each", got)
	}
}

func TestS5_RoundRobinStaysExactWhenNodesComeAndGo(t *testing.T) {
	t.Parallel()
	q := placement.Request{Class: "a", Strategy: placement.RoundRobin}
	all := some(4, 1<<19)
	c := placement.NewCluster(1)
	c.Set(all[0])
	c.Set(all[1])
	place(c, q, 1001)
	c.Set(all[2]) // it does not get a burst to make up for the time before it
	if got := place(c, q, 300); !within(got, 3, 1) {
		t.Errorf("after a join: %v, want them within 1", got)
	}
	c.Remove(all[1].ID)
	c.Set(all[3])
	if got := place(c, q, 300); !within(got, 3, 1) {
		t.Errorf("after one left and one joined: %v, want them within 1", got)
	}
}

func TestC63_RoundRobinGoesOnOverAChangeOfLeader(t *testing.T) {
	t.Parallel()
	q := placement.Request{Class: "a", Strategy: placement.RoundRobin}
	list := some(3, 1<<19)
	total := make(map[string]int)
	for _, tasks := range []int{1000, 1000, 1000} { // none of them is a multiple of 3
		c := placement.NewCluster(1)
		slices.Reverse(list) // the order in which a leader finds them does not matter
		for i := range list {
			list[i].Served = int64(total[list[i].ID])
			c.Set(list[i])
		}
		for id, n := range place(c, q, tasks) {
			total[id] += n
		}
	}
	if !within(total, 3, 0) {
		t.Errorf("3,000 tasks under three leaders: %v, want exactly 1,000 each", total)
	}
}

func TestRoundRobinOwesANodeThatWasFullItsCapacity(t *testing.T) {
	t.Parallel()
	q := placement.Request{Class: "a", Strategy: placement.RoundRobin}
	list := some(2, 10)
	list[0].Load, list[1].Capacity = 10, 1<<19
	c := placement.NewCluster(1)
	c.Set(list[0])
	c.Set(list[1])
	place(c, q, 1000)
	got := make(map[string]int)
	for range 30 {
		list[0].Load = 0 // what it gets ends at once
		c.Set(list[0])
		got[c.Place(&q).Node]++
	}
	if got["n00"] != 20 { // what it is owed, and then each second one
		t.Errorf("the node that was full got %d of 30, want 20", got["n00"])
	}
}

func TestS6_OnlyNodesWithTheClass(t *testing.T) {
	t.Parallel()
	for _, s := range every() {
		c := fill(1, 3, 100)
		c.Set(placement.Node{ID: "n01", Classes: []string{"a", "b"}, Capacity: 100})
		if got := place(c, placement.Request{Class: "b", Strategy: s, StickyKey: "k"}, 50); got["n01"] != 50 {
			t.Errorf("%s: class b went to %v, want n01", s, got)
		}
	}
}

func TestS7_NeverOverCapacity(t *testing.T) {
	t.Parallel()
	for _, s := range every() {
		t.Run(string(s), func(t *testing.T) {
			t.Parallel()
			list := some(3, 5)
			list[1].ByClass = map[string]int{"a": 2}
			list[2].Prefetch = 2
			c := placement.NewCluster(1)
			for _, n := range list {
				c.Set(n)
			}
			q := placement.Request{Class: "a", Strategy: s, StickyKey: "k"}
			got := place(c, q, 20)
			want := map[string]int{"n00": 5, "n01": 2, "n02": 5, "": 8}
			if !maps.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			q.Short = true
			if got := place(c, q, 3); got["n02"] != 2 || got[""] != 1 {
				t.Errorf("short ones: got %v, want 2 queued at n02", got)
			}
		})
	}
}

func TestC65_ANodeThatIsGoneGetsNothing(t *testing.T) {
	t.Parallel()
	for _, s := range every() {
		c := fill(1, 3, 1000)
		q := placement.Request{Class: "a", Strategy: s, StickyKey: "k"}
		place(c, q, 10)
		c.Remove("n01")
		if got := place(c, q, 300); got["n01"] != 0 || got[""] != 0 {
			t.Errorf("%s: after n01 was gone: %v", s, got)
		}
	}
}

func TestC68_ClassesAreTakenEvenly(t *testing.T) {
	t.Parallel()
	classes := []string{"a", "b", "c"}
	for _, s := range []placement.Strategy{placement.LeastTasks, placement.RoundRobin, "IDLE|LEAST_TASKS", placement.Spread} {
		t.Run(string(s), func(t *testing.T) {
			t.Parallel()
			list := some(7, 1000)
			c := placement.NewCluster(1)
			for i := range list {
				list[i].Classes = classes
				c.Set(list[i])
			}
			c.Remove(list[6].ID) // what it had goes to the 6 others: tasks of the classes come one after the other
			got := map[string]map[string]int{"": {}}
			for range 120 {
				for _, class := range classes {
					if got[class] == nil {
						got[class] = make(map[string]int)
					}
					node := c.Place(&placement.Request{Class: class, Strategy: s}).Node
					got[class][node]++
					got[""][node]++
				}
			}
			for class, per := range got {
				if by := 2 * min(len(class), 1); !within(per, 6, by) {
					t.Errorf("class %q: %v, want them within %d", class, per, by)
				}
			}
		})
	}
}

func TestC77_IdleNodesFirst(t *testing.T) {
	t.Parallel()
	list := some(4, 100)
	list[0].Load, list[2].Load = 1, 1
	list[1].Served, list[3].Served = 900, 900 // round robin alone would not take them
	list[0].Served, list[2].Served = 800, 801
	c := placement.NewCluster(1)
	for _, n := range list {
		c.Set(n)
	}
	q := placement.Request{Class: "a", Strategy: "IDLE|ROUND_ROBIN"}
	e := c.Explain(&q)
	if want := []placement.Stage{{Name: "idle", Nodes: 2}, {Name: "slots", Nodes: 4}}; !slices.Equal(e.Stages, want) {
		t.Errorf("the explanation shows %v, want %v", e.Stages, want)
	}
	var got []string
	for range 6 {
		got = append(got, c.Place(&q).Node)
	}
	if want := []string{"n01", "n03", "n00", "n02", "n00", "n02"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v: what is idle, then round robin", got, want)
	}
}

func TestLeastTasksIsRelativeToTheCapacity(t *testing.T) {
	t.Parallel()
	list := some(2, 10)
	list[1].Capacity = 30
	c := placement.NewCluster(1)
	c.Set(list[0])
	c.Set(list[1])
	if got := place(c, placement.Request{Class: "a", Strategy: placement.LeastTasks}, 20); got["n00"] != 5 || got["n01"] != 15 {
		t.Errorf("20 tasks over capacities 10 and 30: %v, want 5 and 15", got)
	}
}

func TestEqualNodesComeInTurn(t *testing.T) {
	t.Parallel()
	c := fill(1, 3, 10)
	got := make(map[string]int)
	for range 30 {
		got[c.Place(&placement.Request{Class: "a", Strategy: placement.LeastTasks}).Node]++
		for _, n := range some(3, 10) { // the tasks end at once
			c.Set(n)
		}
	}
	if !within(got, 3, 0) {
		t.Errorf("single tasks on idle nodes: %v, want 10 each", got)
	}
}

func TestRandomReachesEachNodeAboutEqually(t *testing.T) {
	t.Parallel()
	q := placement.Request{Class: "a", Strategy: placement.Random}
	got := place(fill(7, 4, 1<<19), q, 4000)
	for id, n := range got {
		if n < 850 || n > 1150 { // 1,000 with a standard deviation of 27
			t.Errorf("%s got %d of 4,000, want about 1,000", id, n)
		}
	}
	if again := place(fill(7, 4, 1<<19), q, 4000); !maps.Equal(got, again) {
		t.Errorf("the same seed gave %v and %v", got, again)
	}
}

func TestPlacementIsUndoneOnce(t *testing.T) {
	t.Parallel()
	list := some(2, 4)
	list[0].ByClass = map[string]int{"a": 3}
	c := placement.NewCluster(1)
	c.Set(list[0])
	c.Set(list[1])
	q := placement.Request{Class: "a", Slots: 2}
	first, second := c.Place(&q), c.Place(&q)
	if slots, _ := c.Room(); slots != 4 {
		t.Fatalf("%d slots free after two tasks of 2, want 4", slots)
	}
	if !c.Unplace(first) || c.Unplace(first) {
		t.Error("a placement is taken back once")
	}
	if slots, _ := c.Room(); slots != 6 {
		t.Errorf("%d slots free after one was taken back, want 6", slots)
	}
	c.Set(list[1])
	c.Set(list[0]) // they say their loads themselves
	c.Unplace(second)
	if slots, _ := c.Room(); slots != 8 {
		t.Errorf("%d slots free, want what the nodes said: 8", slots)
	}
	third := c.Place(&q)
	c.Remove(third.Node)
	if c.Unplace(third) || c.Unplace(placement.Decision{}) {
		t.Error("what is gone, or was never placed, was taken back")
	}
}

func TestRoundRobinDoesNotCountWhatWasTakenBack(t *testing.T) {
	t.Parallel()
	list := some(2, 100)
	list[0].Classes = []string{"a", "b"}
	c := placement.NewCluster(1)
	c.Set(list[0])
	c.Set(list[1])
	for range 10 {
		c.Unplace(c.Place(&placement.Request{Class: "b", Strategy: placement.RoundRobin}))
	}
	if got := place(c, placement.Request{Class: "a", Strategy: placement.RoundRobin}, 20); !within(got, 2, 0) {
		t.Errorf("after ten that never came to n00: %v, want 10 each", got)
	}
}

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
				if slots, _ := cluster.Room(); slots != n.Capacity-n.Load {
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

func TestAnExplanationNamesThreeNodes(t *testing.T) {
	t.Parallel()
	list := some(10, 10)
	for i := range list {
		list[i].Load = 9 - i
	}
	c := placement.NewCluster(1)
	for _, n := range list {
		c.Set(n)
	}
	want := []placement.Score{{Node: "n09", Score: "0 of 10 slots in use"}, {Node: "n08", Score: "1 of 10 slots in use"}, {Node: "n07", Score: "2 of 10 slots in use"}}
	if e := c.Explain(&placement.Request{Class: "a"}); !slices.Equal(e.Best, want) {
		t.Errorf("got %v, want %v", e.Best, want)
	}
}

func TestWhatIsSaidOfThrottledNodesIsNotOutOfDate(t *testing.T) {
	t.Parallel()
	list := some(2, 4)
	list[1].Load = 4
	c := placement.NewCluster(1)
	c.Set(list[1])
	q := placement.Request{Class: "a"}
	for _, step := range []struct {
		throttled bool
		load      int
		want      placement.Reason
	}{
		{true, 0, placement.NodesThrottled},
		{true, 4, placement.NodesFull},
		{true, 3, placement.NodesThrottled},
		{false, 4, placement.NodesFull},
		{false, 3, ""},
	} {
		list[0].Throttled, list[0].Load = step.throttled, step.load
		c.Set(list[0])
		if reason, _ := c.Feasible(&q); reason != step.want {
			t.Errorf("throttled %v and with load %d: %q, want %q", step.throttled, step.load, reason, step.want)
		}
	}
}
