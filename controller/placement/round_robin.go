package placement

import "fmt"

var roundRobin = definition{
	name: RoundRobin,
	choose: func(s *stage) chooser {
		r := &rotating{}
		r.ranking = rankingOf(s, r.count)
		return r
	},
	score: func(*scan) (rank, func(n *node) string) {
		return func(n *node) float64 { return float64(n.served) },
			func(n *node) string { return fmt.Sprintf("%d tasks given to it so far", n.served) }
	},
}

// rotating is the chooser of ROUND_ROBIN.
type rotating struct {
	ranking
	highest int64 // count of a member that was seen
}

func (r *rotating) count(n *node) float64 {
	r.highest = max(r.highest, n.served)
	n.served = max(n.served, r.highest-int64(n.capacity)) // what it is owed at most
	return float64(n.served)
}
