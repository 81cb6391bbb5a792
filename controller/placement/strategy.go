package placement

import (
	"strings"

	"github.com/skalds-go/skalds/pkg/task"
)

// Strategy names a way to pick among the nodes that can run a task: a name of Strategies; SPREAD may name another label
// than "zone", as SPREAD:rack; and IDLE| before any of them takes the idle nodes first, and then all.
type Strategy string

// The strategies.
const (
	// LeastTasks picks the node with the least load relative to its capacity; equal ones in turn.
	LeastTasks Strategy = "LEAST_TASKS"
	// RoundRobin returns every node the same number of tasks. A node that joins begins with the lowest number of the
	// others; a node that was full is owed what it missed, up to its capacity.
	RoundRobin Strategy = "ROUND_ROBIN"
	// Random picks any node with a free slot, each as likely as the others.
	Random Strategy = "RANDOM"
	// PowerOfTwo draws two nodes with a free slot and picks the one with the least load relative to its capacity.
	PowerOfTwo Strategy = "POWER_OF_TWO"
	// LeastLoad picks the node whose machine has the least to do, by its own readings of cpu and memory and what was
	// sent to it since. The older a reading is, the more the load relative to the capacity counts instead; a reading of
	// 10 s counts half.
	LeastLoad Strategy = "LEAST_LOAD"
	// Binpack picks the node with the most load relative to its capacity, so that others stay empty and can be taken
	// away.
	Binpack Strategy = "BINPACK"
	// Sticky picks the same node for the same sticky key as long as it has a free slot, and else the next one in the
	// key's order. Where a node goes, only its own keys move. A task without a key goes by LEAST_TASKS.
	Sticky Strategy = "STICKY"
	// Spread picks the value of a label (zone, or as SPREAD:rack says) whose nodes have the least load together, and of
	// them the one with the least load relative to its capacity. Nodes without the label are one value.
	Spread Strategy = "SPREAD"
)

// definition is how a strategy works. Each has a file of its own and a line in the table.
type definition struct {
	name  Strategy
	label string // the label that it goes by if its name does not say another; empty = it goes by none
	// every says that placing can make a node a better pick, or that its pick depends on more than the node: its
	// candidate sets hear of every change of a node, not only of those that make it a better one.
	every bool
	// steady says that of equal nodes the one with the least id is picked, and not each in its turn.
	steady bool
	// choose makes the chooser of one stage of a candidate set.
	choose func(s *stage) chooser
	// score returns a node's place in the order, least first, and says it in words. It is for explanations only.
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

// aliases are other spellings of names.
var aliases = map[string]Strategy{"LEAST_LOADED": LeastTasks}

// idleFirst is what the name of a strategy begins with that takes idle nodes first.
const idleFirst = "IDLE|"

// Strategies lists the names of the strategies.
func Strategies() []Strategy {
	names := make([]Strategy, len(table))
	for i, d := range table {
		names[i] = d.name
	}
	return names
}

// ParseStrategy reads a strategy's name without regard to case, with hyphens for underscores or without, and returns
// its one spelling; LEAST_LOADED is LEAST_TASKS. It reports false for one that there is not.
func ParseStrategy(name string) (Strategy, bool) {
	p, ok := parse(table, name)
	return p.name(), ok
}

// plan is a strategy's name taken apart.
type plan struct {
	*definition
	idle bool
	by   string // the label that it goes by
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

// name is the one spelling.
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

// isLabel reports whether a text is the key of a label: a selector that asks for just that.
func isLabel(key string) bool {
	s, err := task.ParseSelector(key)
	return err == nil && key != "" && s.String() == key && !strings.ContainsAny(key, "!=<>(), ")
}
