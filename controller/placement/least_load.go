package placement

import (
	"fmt"
	"time"
)

var leastLoad = definition{
	name:   LeastLoad,
	every:  true, // a reading can lower the rank
	choose: ranked((*node).pressure),
	score: func(*scan) (rank, func(n *node) string) {
		return (*node).pressure, func(n *node) string {
			return fmt.Sprintf("cpu %s, memory %s, read %v ago, %d slots sent since; %s",
				percent(n.cpu), percent(n.memory), n.age.Round(time.Millisecond), n.fresh, n.describeSlots())
		}
	},
}

// pressure returns the load of the node's machine: the last reading and the slots that were sent since. The older the
// reading is, the more the ratio counts instead.
func (n *node) pressure() float64 {
	read := max(n.cpu, n.memory)
	if read < 0 {
		return n.ratio()
	}
	read += float64(n.fresh) / float64(n.capacity)
	return n.decay*read + (1-n.decay)*n.ratio()
}

func percent(x float64) string {
	if x < 0 {
		return "unknown"
	}
	return fmt.Sprintf("%.0f %%", 100*x)
}
