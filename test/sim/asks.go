package main

import (
	"strconv"
	"strings"

	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/config"
	"github.com/skalds-go/skalds/pkg/task"
)

// The classes of tasks. Where tasks ask for more than a slot, not every node knows the second, and those that do give
// it only some slots.
const (
	class     = "work"
	sideClass = "side"
)

// shape is what a node offers.
type shape struct {
	classes []string
	labels  config.Labels
	slots   config.ClassCapacities
}

// fewestNodes is how many nodes there must be so that one can run whatever tasks ask for.
const fewestNodes = 3

// shapeOf is that of a node by its id, whichever process has it, and of one that was started anew under a longer id,
// too.
func (s *settings) shapeOf(id string) shape {
	n, err := strconv.Atoi(strings.Trim(id, "nx"))
	if err != nil {
		panic(err) // cluster.go made the id
	}
	if !s.asks {
		return shape{classes: []string{class}}
	}
	out := shape{classes: []string{class}, labels: config.Labels{"rank": strconv.Itoa(n), "zone": "a"}}
	if n%2 == 0 {
		out.labels["zone"] = "b"
	}
	if n%3 == 0 {
		out.labels["spot"] = ""
		return out
	}
	out.classes = append(out.classes, sideClass)
	out.slots = config.ClassCapacities{sideClass: s.sideSlots}
	return out
}

// selectors each select one of the first two nodes, at the least.
var selectors = []string{"zone=a", "zone in (b)", "zone in (a,b),!spot", "zone!=b", "rank>1", "!spot"}

// keyLimit is the limit of all tasks of the n-th concurrency key.
func keyLimit(n int) int { return n + 1 }

// pools are the pools as people mean them to be.
func pools() map[string]int { return map[string]int{"p1": 1, "p2": 3} }

// briefly is how long a task takes at most that others may have to wait for, in ms.
const briefly = 4000

// asking gives a task labels, keys and limits at random. It returns how long the task takes, in ms.
func (p *people) asking(t *task.Task, ms int) int {
	w := p.world
	pick := func(list ...string) string { return list[w.rng.IntN(len(list))] }
	t.Priority = w.rng.IntN(task.MaxPriority + 1)
	t.Namespace = pick("", "a", "b")
	most := p.cfg.capacity
	if w.chance(300) {
		t.ClassName, most = sideClass, p.cfg.sideSlots
	}
	if w.chance(p.cfg.keyed) {
		n := w.rng.IntN(3)
		t.ConcurrencyKey, t.ConcurrencyLimit = name("k", n), keyLimit(n)
	}
	if w.chance(300) {
		t.Pool = pick("p1", "p2")
	}
	if w.chance(300) {
		t.Slots = w.rng.IntN(most + 1)
	}
	if w.chance(300) {
		t.Selector = pick(selectors...)
	}
	if w.chance(200) {
		t.Strategy = string(placement.Strategies()[w.rng.IntN(len(placement.Strategies()))])
	}
	if w.chance(200) {
		t.StickyKey = pick("s1", "s2")
	}
	if w.chance(200) {
		t.AntiAffinityKey = pick("x1", "x2")
	}
	if t.ConcurrencyKey != "" || t.Pool != "" || t.Slots > 1 || t.AntiAffinityKey != "" {
		ms = min(ms, briefly)
	}
	return ms
}
