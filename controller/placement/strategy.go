package placement

import (
	"strings"

	"github.com/skalds-go/skalds/pkg/task"
)

// Strategy names a way to pick among the nodes that can run a task. It is one of Strategies. SPREAD may name another
// label than "zone", as in SPREAD:rack. The prefix IDLE| picks among the idle nodes first.
type Strategy string

// The strategies.
const (
	// LeastTasks picks the node with the least load relative to its capacity. Equal nodes take turns.
	LeastTasks Strategy = "LEAST_TASKS"
	// RoundRobin gives every node the same number of tasks. A node that joins begins with the lowest count of the
	// others. A node that was full is owed the tasks that it missed, up to its capacity.
	RoundRobin Strategy = "ROUND_ROBIN"
	// Random picks any node with a free slot, all with the same probability.
	Random Strategy = "RANDOM"
	// PowerOfTwo draws two nodes with a free slot and picks the one with the least load relative to its capacity.
	PowerOfTwo Strategy = "POWER_OF_TWO"
	// LeastLoad picks the node whose machine is the least loaded, by its own readings of CPU and memory and by the
	// slots that were sent to it since. The older a reading is, the more the load relative to the capacity counts
	// instead. A reading that is 10 s old counts half.
	LeastLoad Strategy = "LEAST_LOAD"
	// Binpack picks the node with the most load relative to its capacity, so that other nodes stay empty and can be
	// shut down.
	Binpack Strategy = "BINPACK"
	// Sticky picks the same node for the same sticky key as long as that has a free slot, and otherwise the next one in
	// the key's order. When a node leaves, only its own keys move. A task without a key is placed as by LEAST_TASKS.
	Sticky Strategy = "STICKY"
	// Spread picks the value of a label (zone, or rack for SPREAD:rack) whose nodes have the least load together. Of
	// these nodes it picks the one with the least load relative to its capacity. Nodes without the label form one
	// group.
	Spread Strategy = "SPREAD"
)

// definition defines a strategy. Each strategy has a file of its own and a line in the table.
type definition struct {
	name  Strategy
	label string // the default label; empty = the strategy uses no label
	// every means that candidate sets read the log of all changes. A strategy needs it if placing a task can make a
	// node a better pick, or if a pick depends on other nodes.
	every bool
	// steady means that of equal nodes the one with the lowest id is picked. Otherwise they take turns.
	steady bool
	// choose returns a new chooser for a stage of a candidate set.
	choose func(s *stage) chooser
	// score returns the rank of the nodes and a description of a node for people. It is for explanations only.
	score func(x *scan) (rank, func(n *node) string)
}

// table lists the strategies.
var table = []*definition{
	&leastTasks,
	&roundRobin,
	&random,
	&powerOfTwo,
	&leastLoad,
	&binpack,
	&sticky,
	&spread,
}

// aliases are other names of strategies.
var aliases = map[string]Strategy{"LEAST_LOADED": LeastTasks}

// idleFirst is the prefix of strategies that pick among the idle nodes first.
const idleFirst = "IDLE|"

// Strategies returns the names of the strategies.
func Strategies() []Strategy {
	names := make([]Strategy, len(table))
	for i, d := range table {
		names[i] = d.name
	}
	return names
}

// ParseStrategy returns the canonical name of a strategy. It ignores case, accepts hyphens for underscores, and accepts
// LEAST_LOADED for LEAST_TASKS. It reports false for an unknown strategy.
func ParseStrategy(name string) (Strategy, bool) {
	p, ok := parse(table, name)
	return p.name(), ok
}

// plan is the parsed name of a strategy.
type plan struct {
	*definition
	idle bool
	by   string // the label that it uses
}

func parse(table []*definition, name string) (plan, bool) {
	p := plan{definition: table[0]}
	name = strings.TrimSpace(name)
	if len(name) > len(idleFirst) && strings.EqualFold(name[:len(idleFirst)], idleFirst) {
		p.idle, name = true, strings.TrimSpace(name[len(idleFirst):])
	}
	name, label, named := strings.Cut(name, ":")
	wanted := Strategy(strings.ToUpper(strings.ReplaceAll(name, "-", "_")))
	if s, ok := aliases[string(wanted)]; ok {
		wanted = s
	}
	for _, d := range table {
		if d.name != wanted {
			continue
		}
		if named && (d.label == "" || !isLabel(label)) {
			return p, false
		}
		p.definition, p.by = d, d.label
		if named {
			p.by = label
		}
		return p, true
	}
	return p, false
}

// name returns the canonical name.
func (p plan) name() Strategy {
	name := p.definition.name
	if p.by != p.label {
		name += Strategy(":" + p.by)
	}
	if p.idle {
		name = idleFirst + name
	}
	return name
}

// isLabel reports whether a text is the key of a label: a selector that requires just this key.
func isLabel(key string) bool {
	s, err := task.ParseSelector(key)
	return err == nil && key != "" && s.String() == key && !strings.ContainsAny(key, "!=<>(), ")
}
