package placement

var binpack = definition{
	name:   Binpack,
	every:  true, // placing makes a node the better pick
	steady: true,
	choose: ranked(byFullness),
	score:  func(*scan) (rank, func(n *node) string) { return byFullness, (*node).describeSlots },
}

func byFullness(n *node) float64 { return -n.ratio() }
