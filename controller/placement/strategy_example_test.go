package placement

import (
	"fmt"
	"slices"
)

// MOST_FREE picks the node with the most free slots, however large it is. A new strategy takes no more than such a
// definition in a file of its own, and a line in the table.
var mostFree = definition{
	name:   "MOST_FREE",
	choose: ranked(byFree),
	score: func(*scan) (rank, func(n *node) string) {
		return byFree, func(n *node) string { return fmt.Sprint(n.capacity-n.load, " slots free") }
	},
}

// byFree is least for the node that is to be picked, and placing a task makes it larger.
func byFree(n *node) float64 { return float64(n.load - n.capacity) }

func Example_newStrategy() {
	c := NewCluster(1)
	c.table = append(slices.Clone(table), &mostFree) // the line in the table

	c.Set(Node{ID: "small", Classes: []string{"resize"}, Capacity: 4})
	c.Set(Node{ID: "large", Classes: []string{"resize"}, Capacity: 8, Load: 3})
	q := Request{Class: "resize", Strategy: "MOST_FREE"}
	for range 3 {
		e := c.Explain(&q)
		fmt.Println(c.Place(&q).Node, "had", e.Best[0].Score)
	}
	// Output:
	// large had 5 slots free
	// small had 4 slots free
	// large had 4 slots free
}
