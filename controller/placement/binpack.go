package placement

var binpack = definition{
	name:   Binpack,
	every:  true, // placing makes a node the better pick
	choose: ranked(func(n *node) (float64, int64) { return -n.ratio(), 0 }),
	score: func(*scan) func(n *node) (float64, int64, string) {
		return func(n *node) (float64, int64, string) { return -n.ratio(), 0, n.slotsInWords() }
	},
}
