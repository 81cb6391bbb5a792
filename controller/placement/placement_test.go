package placement_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/skalds-go/skalds/controller/placement"
)

func nodes(n, capacity int) []placement.Node {
	list := make([]placement.Node, n)
	for i := range list {
		list[i] = placement.Node{ID: fmt.Sprintf("n%02d", i), Classes: []string{"a"}, Capacity: capacity}
	}
	return list
}

func requests(n int, class string) []placement.Request {
	return slices.Repeat([]placement.Request{{Class: class}}, n)
}

func count(list []placement.Node, decisions []placement.Choice) []int {
	per := make([]int, len(list))
	for _, d := range decisions {
		if d.Node >= 0 {
			per[d.Node]++
		}
	}
	return per
}

func spread(per []int) int { return slices.Max(per) - slices.Min(per) }

func TestC64_LeastTasksSpreadsABurstWithoutHeartbeats(t *testing.T) {
	t.Parallel()
	list := nodes(7, 1000)
	per := count(list, placement.New(1).Place(placement.LeastTasks, list, requests(3000, "a")))
	if spread(per) > 1 {
		t.Fatalf("3,000 tasks over 7 nodes: %v, want them within 1", per)
	}
}

func TestS5_PlacerRoundRobinIsExact(t *testing.T) {
	t.Parallel()
	p := placement.New(1)
	total := make(map[string]int)
	list := nodes(3, 1<<20)
	for range 300 { // many small rounds, as in life
		for i, n := range count(list, p.Place(placement.RoundRobin, list, requests(10, "a"))) {
			total[list[i].ID] += n
		}
		slices.Reverse(list) // the order of the nodes does not matter
	}
	for id, n := range total {
		if n != 1000 {
			t.Errorf("node %s got %d of 3,000, want exactly 1,000", id, n)
		}
	}
}

func TestS5_PlacerStaysExactWhenNodesComeAndGo(t *testing.T) {
	t.Parallel()
	p := placement.New(1)
	all := nodes(4, 1<<20)
	p.Place(placement.RoundRobin, all[:2], requests(1001, "a"))
	// A node that joins does not get a burst to make up for the time before it.
	three := all[:3]
	per := count(three, p.Place(placement.RoundRobin, three, requests(300, "a")))
	if spread(per) > 1 {
		t.Errorf("after a join: %v, want them within 1", per)
	}
	rest := []placement.Node{all[0], all[2], all[3]}
	per = count(rest, p.Place(placement.RoundRobin, rest, requests(300, "a")))
	if spread(per) > 1 {
		t.Errorf("after one left and one joined: %v, want them within 1", per)
	}
}

func TestRoundRobinOwesAFullNodeAtMostItsCapacity(t *testing.T) {
	t.Parallel()
	p := placement.New(1)
	list := nodes(2, 10)
	list[0].Load, list[1].Capacity = 10, 1<<20
	p.Place(placement.RoundRobin, list, requests(1000, "a"))
	list[0].Load, list[1].Load = 0, 0
	list[0].Capacity = 1 << 20
	p.Place(placement.RoundRobin, list[:1], nil)
	list[0].Capacity = 10
	per := count(list, p.Place(placement.RoundRobin, list, requests(30, "a")))
	if per[0] != 10 {
		t.Fatalf("the node that was full got %d, want its capacity 10", per[0])
	}
}

func TestS6_PlacerOnlyNodesWithTheClass(t *testing.T) {
	t.Parallel()
	for _, s := range placement.Strategies() {
		list := nodes(3, 100)
		list[1].Classes = []string{"a", "b"}
		for _, d := range placement.New(1).Place(s, list, requests(50, "b")) {
			if d.Node != 1 {
				t.Errorf("%s: class b went to %v, want node 1", s, d)
			}
		}
	}
}

func TestLeastTasksIsRelativeToCapacity(t *testing.T) {
	t.Parallel()
	list := nodes(2, 10)
	list[1].Capacity = 30
	per := count(list, placement.New(1).Place(placement.LeastTasks, list, requests(20, "a")))
	if per[0] != 5 || per[1] != 15 {
		t.Fatalf("20 tasks over capacities 10 and 30: %v, want 5 and 15", per)
	}
}

func TestLeastTasksTakesEqualNodesInTurn(t *testing.T) {
	t.Parallel()
	p := placement.New(1)
	seen := make(map[int]int)
	for range 30 {
		list := nodes(3, 10) // each round begins with idle nodes: the tasks end at once
		seen[p.Place(placement.LeastTasks, list, requests(1, "a"))[0].Node]++
	}
	if len(seen) != 3 || seen[0] != 10 || seen[1] != 10 {
		t.Fatalf("single tasks on idle nodes: %v, want 10 each", seen)
	}
}

func TestRandomReachesEveryNodeAboutEqually(t *testing.T) {
	t.Parallel()
	list := nodes(4, 1<<20)
	for _, n := range count(list, placement.New(7).Place(placement.Random, list, requests(4000, "a"))) {
		if n < 850 || n > 1150 { // 1,000 with a standard deviation of 27
			t.Errorf("a node got %d of 4,000, want about 1,000", n)
		}
	}
	again := count(list, placement.New(7).Place(placement.Random, nodes(4, 1<<20), requests(4000, "a")))
	if !slices.Equal(again, count(list, placement.New(7).Place(placement.Random, nodes(4, 1<<20), requests(4000, "a")))) {
		t.Error("the same seed gave other decisions")
	}
}

func TestReasons(t *testing.T) {
	t.Parallel()
	full := nodes(1, 1)
	full[0].Load = 1
	cases := []struct {
		name  string
		nodes []placement.Node
		want  placement.Reason
	}{
		{"no node", nil, placement.NoEligibleNode},
		{"no node with the class", []placement.Node{{ID: "x", Classes: []string{"z"}, Capacity: 1}}, placement.NoNodeForClass},
		{"all full", full, placement.NodesFull},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := placement.New(1).Place(placement.LeastTasks, c.nodes, requests(1, "a"))[0]
			if got.Node != -1 || got.Reason != c.want {
				t.Errorf("got %+v, want reason %s", got, c.want)
			}
		})
	}
}

func TestPrefetchOnlyForShortRunsAndOnlyWhenNoSlotIsFree(t *testing.T) {
	t.Parallel()
	list := nodes(2, 2)
	list[0].Prefetch, list[1].Prefetch = 3, 3
	list[0].Load = 2
	p := placement.New(1)
	short := slices.Repeat([]placement.Request{{Class: "a", Short: true}}, 3)
	got := p.Place(placement.LeastTasks, list, short)
	if got[0].Node != 1 || got[1].Node != 1 || got[2].Node < 0 {
		t.Errorf("short tasks went to %v, want the two free slots of node 1 first", got)
	}
	long := p.Place(placement.LeastTasks, list, requests(1, "a"))[0]
	if long.Reason != placement.NodesFull {
		t.Errorf("a long task was queued: %+v", long)
	}
	rest := count(list, p.Place(placement.LeastTasks, list, slices.Repeat([]placement.Request{{Class: "a", Short: true}}, 50)))
	if rest[0]+rest[1] != 5 {
		t.Errorf("placed %v more, want the 5 places that were left", rest)
	}
}

func TestATaskThatMustBeAloneGetsAnEmptyNode(t *testing.T) {
	t.Parallel()
	alone := placement.Request{Class: "a", Alone: true, Short: true}
	for _, s := range placement.Strategies() {
		list := nodes(3, 4)
		list[0].Load, list[2].Load = 2, 1
		reqs := append([]placement.Request{alone}, requests(20, "a")...)
		got := placement.New(1).Place(s, list, reqs)
		if got[0].Node != 1 {
			t.Errorf("%s: it went to %+v, want the empty node", s, got[0])
		}
		per := count(list, got[1:])
		if per[1] != 0 || per[0] != 2 || per[2] != 3 {
			t.Errorf("%s: %v beside it, want none there and the others full", s, per)
		}
	}
}

func TestANodeIsClearedForATaskThatMustBeAlone(t *testing.T) {
	t.Parallel()
	list := nodes(2, 4)
	list[0].Load, list[1].Load = 3, 1
	got := placement.New(1).Place(placement.LeastTasks, list, append([]placement.Request{{Class: "a", Alone: true}}, requests(5, "a")...))
	if got[0].Node != -1 || got[0].Reason != placement.NodesFull {
		t.Errorf("it went to %+v beside others", got[0])
	}
	if per := count(list, got[1:]); per[0] != 1 || per[1] != 0 {
		t.Errorf("%v placed, want nothing on the node that is nearly empty", per)
	}
}

func TestC79_NodesThatATaskCrashedAreAvoided(t *testing.T) {
	t.Parallel()
	list := nodes(3, 4)
	list[2].Load = 3
	avoid := placement.Request{Class: "a", Avoid: []string{"n00", "n01"}}
	p := placement.New(1)
	if got := p.Place(placement.LeastTasks, list, []placement.Request{avoid})[0]; got.Node != 2 {
		t.Errorf("it went to %+v, want the node that it has not crashed", got)
	}
	if got := p.Place(placement.LeastTasks, list, []placement.Request{avoid})[0]; got.Reason != placement.NodesFull {
		t.Errorf("it went to %+v, want it to wait for that node", got)
	}
	avoid.Avoid = append(avoid.Avoid, "n02")
	if got := p.Place(placement.LeastTasks, nodes(3, 4), []placement.Request{avoid})[0]; got.Node < 0 {
		t.Errorf("it waits for ever: %+v", got)
	}
}

func TestPlacementProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		classes := []string{"a", "b", "c"}
		strategy := rapid.SampledFrom(placement.Strategies()).Draw(t, "strategy")
		p := placement.New(rapid.Uint64().Draw(t, "seed"))
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			list := make([]placement.Node, rapid.IntRange(0, 6).Draw(t, "nodes"))
			for i := range list {
				list[i] = placement.Node{
					ID:       fmt.Sprint(i),
					Classes:  rapid.SliceOfNDistinct(rapid.SampledFrom(classes), 0, 3, rapid.ID).Draw(t, "classes"),
					Capacity: rapid.IntRange(1, 5).Draw(t, "capacity"),
					Prefetch: rapid.IntRange(0, 3).Draw(t, "prefetch"),
					Load:     rapid.IntRange(0, 9).Draw(t, "load"),
				}
			}
			before := slices.Clone(list)
			reqs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) placement.Request {
				return placement.Request{Class: rapid.SampledFrom(classes).Draw(t, "class"), Short: rapid.Bool().Draw(t, "short")}
			}), 0, 40).Draw(t, "requests")
			placed := make([]int, len(list))
			for i, d := range p.Place(strategy, list, reqs) {
				if d.Node < 0 {
					if d.Reason == "" {
						t.Fatalf("request %d has neither node nor reason", i)
					}
					continue
				}
				if !slices.Contains(list[d.Node].Classes, reqs[i].Class) {
					t.Fatalf("class %s went to a node without it", reqs[i].Class)
				}
				placed[d.Node]++
				limit := before[d.Node].Capacity
				if reqs[i].Short {
					limit += before[d.Node].Prefetch
				}
				if before[d.Node].Load+placed[d.Node] > limit {
					t.Fatalf("node %d has %d, more than %d", d.Node, before[d.Node].Load+placed[d.Node], limit)
				}
			}
			for i := range list {
				if list[i].Load != before[i].Load+placed[i] {
					t.Fatalf("node %d: load %d, want %d + %d", i, list[i].Load, before[i].Load, placed[i])
				}
			}
		}
	})
}

func TestParseStrategy(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]placement.Strategy{
		"least_tasks": placement.LeastTasks, "LEAST_LOADED": placement.LeastTasks, "Round_Robin": placement.RoundRobin, " random ": placement.Random,
	} {
		if got, ok := placement.ParseStrategy(name); !ok || got != want {
			t.Errorf("%q: got %q %v, want %q", name, got, ok, want)
		}
	}
	if _, ok := placement.ParseStrategy("fastest"); ok {
		t.Error("an unknown strategy was taken")
	}
}

func ExamplePlacer_Place() {
	list := []placement.Node{
		{ID: "one", Classes: []string{"resize"}, Capacity: 2, Load: 1},
		{ID: "two", Classes: []string{"resize", "train"}, Capacity: 2},
	}
	p := placement.New(1)
	for _, d := range p.Place(placement.LeastTasks, list, []placement.Request{{Class: "resize"}, {Class: "train"}, {Class: "scan"}}) {
		if d.Node < 0 {
			fmt.Println("waits:", d.Reason)
			continue
		}
		fmt.Println(list[d.Node].ID)
	}
	// Output:
	// two
	// two
	// waits: NO_NODE_FOR_CLASS
}

func BenchmarkPlace(b *testing.B) {
	for _, n := range []int{2, 100} {
		for _, s := range placement.Strategies() {
			b.Run(fmt.Sprintf("%s/%d", s, n), func(b *testing.B) {
				p := placement.New(1)
				reqs := requests(100, "a")
				for b.Loop() {
					p.Place(s, nodes(n, 1000), reqs)
				}
			})
		}
	}
}
