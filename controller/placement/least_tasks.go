package placement

import "fmt"

var leastTasks = definition{
	name:   LeastTasks,
	choose: ranked(byRatio),
	score:  func(*scan) (rank, func(n *node) string) { return byRatio, (*node).slotsInWords },
}

func byRatio(n *node) (float64, int64) { return n.ratio(), n.last }

func (n *node) slotsInWords() string { return fmt.Sprintf("%d of %d slots in use", n.load, n.capacity) }
