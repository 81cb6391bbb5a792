package config

// DefaultController returns the configuration of a controller whose environment
// sets nothing. It is valid.
func DefaultController() Controller {
	var c Controller
	setDefaults(&c)
	return c
}

// DefaultNode returns the configuration of a node whose environment sets
// nothing, but without an ID: with one it is valid.
func DefaultNode() Node {
	var n Node
	setDefaults(&n)
	return n
}

func setDefaults(spec any) {
	all := fields(spec)
	for _, f := range all {
		_ = f.process(noVariable) // the defaults are known to be good, a test reads them all
	}
	for _, from := range all {
		followAll(all, from)
	}
}

// followAll gives the fields that follow one their default.
func followAll(all []field, from field) {
	for _, f := range all {
		if f.follows != "" && f.follows == from.variable {
			f.follow(from.value)
		}
	}
}

// SetCapacity sets the capacity, and what follows it.
func (n *Node) SetCapacity(slots int) {
	n.Capacity = slots
	all := fields(n)
	for _, f := range all {
		if f.variable == "NODE_CAPACITY" {
			followAll(all, f)
		}
	}
}
