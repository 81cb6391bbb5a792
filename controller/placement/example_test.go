package placement_test

import (
	"fmt"

	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/task"
)

func ExampleCluster() {
	c := placement.NewCluster(1)
	c.Set(placement.Node{ID: "one", Classes: []string{"resize"}, Labels: map[string]string{"zone": "north"}, Capacity: 2, Load: 1})
	c.Set(placement.Node{ID: "two", Classes: []string{"resize", "train"}, Labels: map[string]string{"zone": "south"}, Capacity: 2})
	north, err := task.ParseSelector("zone=north")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, q := range []placement.Request{
		{Class: "resize", Strategy: placement.LeastTasks},
		{Class: "train", Strategy: placement.LeastTasks},
		{Class: "train", Strategy: placement.LeastTasks, Selector: north},
		{Class: "scan", Strategy: placement.LeastTasks},
	} {
		if d := c.Place(&q); d.Node != "" {
			fmt.Println(d.Node)
		} else {
			fmt.Println("waits:", d.Reason)
		}
	}
	// Output:
	// two
	// two
	// waits: NO_NODE_FOR_LABELS
	// waits: NO_NODE_FOR_CLASS
}

func ExampleCluster_Explain() {
	c := placement.NewCluster(1)
	c.Set(placement.Node{ID: "one", Classes: []string{"resize"}, Capacity: 4, Load: 1})
	c.Set(placement.Node{ID: "two", Classes: []string{"resize"}, Capacity: 4, Load: 4})
	q := placement.Request{Class: "resize", Strategy: "IDLE|ROUND_ROBIN"}
	e := c.Explain(&q)
	fmt.Println(e.Words())
	fmt.Println(e.Nodes, "nodes,", e.Full, "full", e.FullNodes, "stages", e.Stages)
	q.Slots = 4
	e = c.Explain(&q)
	fmt.Println(e.Words())
	// Output:
	// It goes to node one next (0 tasks given to it so far), by IDLE|ROUND_ROBIN.
	// 2 nodes, 1 full [two] stages [{idle 0} {slots 1}]
	// It takes 4 slots, and 2 nodes that match are full (one, two). The most that is free on one of them is 3. It starts when enough of their tasks end, or with another node.
}
