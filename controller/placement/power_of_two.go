package placement

var powerOfTwo = definition{
	name:   PowerOfTwo,
	choose: func(s *stage) chooser { return &drawing{stage: s, of: 2} },
	score: func(*scan) func(n *node) (float64, int64, string) {
		return func(n *node) (float64, int64, string) {
			return n.ratio(), n.last, n.slotsInWords() + "; the lighter one of two that are drawn is taken"
		}
	},
}
