package placement

import "fmt"

var leastTasks = definition{
	name:   LeastTasks,
	choose: ranked((*node).ratio),
	score:  func(*scan) (rank, func(n *node) string) { return (*node).ratio, (*node).describeSlots },
}

func (n *node) describeSlots() string {
	return fmt.Sprintf("%d of %d slots in use", n.load, n.capacity)
}
