package placement_test

import (
	"slices"
	"testing"

	"github.com/skalds-go/skalds/controller/placement"
)

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

func TestReasonOfRateLimitedNodesIsUpToDate(t *testing.T) {
	t.Parallel()
	list := some(2, 4)
	list[1].Load = 4
	c := placement.NewCluster(1)
	c.Set(list[1])
	q := placement.Request{Class: "a"}
	for _, step := range []struct {
		limited bool
		load    int
		want    placement.Reason
	}{
		{true, 0, placement.NodesRateLimited},
		{true, 4, placement.NodesFull},
		{true, 3, placement.NodesRateLimited},
		{false, 4, placement.NodesFull},
		{false, 3, ""},
	} {
		list[0].RateLimited, list[0].Load = step.limited, step.load
		c.Set(list[0])
		if reason, _ := c.Feasible(&q); reason != step.want {
			t.Errorf("rate limited %v and with load %d: %q, want %q", step.limited, step.load, reason, step.want)
		}
	}
}
