package placement_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/skalds-go/skalds/controller/placement"
)

func TestC64_ABurstIsSpreadWithoutHeartbeats(t *testing.T) {
	t.Parallel()
	for _, s := range []placement.Strategy{placement.LeastTasks, placement.RoundRobin, "IDLE|LEAST_TASKS", "IDLE|ROUND_ROBIN"} {
		got := place(fill(1, 7, 1000), placement.Request{Class: "a", Strategy: s}, 3000)
		if !within(got, 7, 1) {
			t.Errorf("%s: 3,000 tasks over 7 nodes: %v, want them within 1", s, got)
		}
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
			q.Prefetch = placement.PrefetchOnce
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
	if len(e.Best) != 2 || e.Best[0].Node != "n01" || e.Best[1].Node != "n03" {
		t.Errorf("the explanation shows %v, want the two idle nodes", e.Best)
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
	if slots, _ := c.Free(); slots != 4 {
		t.Fatalf("%d slots free after two tasks of 2, want 4", slots)
	}
	if !c.Unplace(first) || c.Unplace(first) {
		t.Error("a placement is taken back once")
	}
	if slots, _ := c.Free(); slots != 6 {
		t.Errorf("%d slots free after one was taken back, want 6", slots)
	}
	c.Set(list[1])
	c.Set(list[0]) // they say their loads themselves
	c.Unplace(second)
	if slots, _ := c.Free(); slots != 8 {
		t.Errorf("%d slots free, want what the nodes said: 8", slots)
	}
	third := c.Place(&q)
	c.Remove(third.Node)
	if c.Unplace(third) || c.Unplace(placement.Decision{}) {
		t.Error("what is gone, or was never placed, was taken back")
	}
}
