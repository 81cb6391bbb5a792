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
	why, _ := e.Describe()
	fmt.Println(why)
	fmt.Println(e.Nodes, "nodes,", e.Full, "full", e.FullNodes)
	q.Slots = 4
	e = c.Explain(&q)
	why, help := e.Describe()
	fmt.Println(why)
	fmt.Println(help)
	// Output:
	// Nothing keeps it waiting: it is placed when its turn comes. IDLE|ROUND_ROBIN would send it to one now (0 tasks given to it so far).
	// 2 nodes, 1 full [two]
	// It takes 4 slots for the class resize, and the most that is free on the 2 nodes that could run it is 3 (one, two).
	// Wait for a task to end, or start another node: skalds task list --status Running shows what runs.
}
