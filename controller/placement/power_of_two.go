package placement

var powerOfTwo = definition{
	name:   PowerOfTwo,
	choose: func(s *stage) chooser { return &drawing{stage: s, of: 2} },
	score: func(*scan) (rank, func(n *node) string) {
		return (*node).ratio, func(n *node) string {
			return n.describeSlots() + "; the lighter of two that are drawn is taken"
		}
	},
}
