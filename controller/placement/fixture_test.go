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

// within reports whether so many nodes got something, and numbers that differ by at most so much.
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

// every returns all strategies, and each behind IDLE.
func every() []placement.Strategy {
	list := placement.Strategies()
	for _, s := range placement.Strategies() {
		list = append(list, "IDLE|"+s)
	}
	return list
}
