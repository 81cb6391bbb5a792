package placement

import "fmt"

var roundRobin = definition{
	name: RoundRobin,
	choose: func(s *stage) chooser {
		highest := int64(0) // count that was seen
		return &ranking{stage: s, rank: func(n *node) (float64, int64) {
			highest = max(highest, n.served)
			n.served = max(n.served, highest-int64(n.capacity)) // what it is owed at most
			return float64(n.served), n.last
		}}
	},
	score: func(*scan) func(n *node) (float64, int64, string) {
		return func(n *node) (float64, int64, string) {
			return float64(n.served), n.last, fmt.Sprintf("%d tasks given to it so far", n.served)
		}
	},
}
