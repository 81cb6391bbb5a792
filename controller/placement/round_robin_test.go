package placement_test

import (
	"slices"
	"testing"

	"github.com/skalds-go/skalds/controller/placement"
)

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
