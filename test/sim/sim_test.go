package main

import (
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(gcPercent)
	os.Exit(m.Run())
}

// run simulates a seed and, if it fails, runs it again to print its timeline.
func run(t *testing.T, seed uint64, o options) outcome {
	t.Helper()
	out := simulate(t, seed, o)
	if len(out.violations) > 0 {
		o.keep = true
		again := simulate(t, seed, o)
		again.history.print(t.Output(), false)
		t.Errorf("seed %d: %s", seed, strings.Join(out.violations, "\n"))
		if again.history.sum != out.history.sum {
			t.Errorf("seed %d has another history when it is run again", seed)
		}
	}
	return out
}

// shortly is what a short run, such as that of the race detector, leaves of a number of seeds: actors run one at a
// time, so that there is little for it to find.
func shortly(seeds uint64) uint64 {
	if testing.Short() {
		return max(seeds/25, 2)
	}
	return seeds
}

// spread runs seeds in a few parallel parts.
func spread(t *testing.T, from, count uint64, o options) {
	t.Helper()
	count = shortly(count)
	const parts = 4
	for part := range uint64(parts) {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			for seed := from + part; seed < from+count; seed += parts {
				run(t, seed, o)
			}
		})
	}
}

func TestWithoutFaultsAllIsWell(t *testing.T) {
	t.Parallel()
	spread(t, 1, 20, options{calm: true})
}

func TestTheGuaranteesHoldUnderFaults(t *testing.T) {
	t.Parallel()
	spread(t, 1, 300, options{})
}

func TestADependencyThatIsAwayMovesNothing(t *testing.T) {
	t.Parallel()
	spread(t, 1, 60, options{only: []string{"outage", "stalls", "hand-over"}})
}

func TestTheGuaranteesHoldWithManyNodesAndTasks(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a long one")
	}
	cases := []options{{nodes: 50, tasks: 200}, {nodes: 3, tasks: 500}, {nodes: 50, tasks: 2000}}
	for _, o := range cases {
		t.Run(fmt.Sprintf("%d nodes, %d tasks", o.nodes, o.tasks), func(t *testing.T) {
			t.Parallel()
			run(t, 1, o)
		})
	}
}

// A fault that names a loop which does not exist would never hit.
func TestFaultsHitRealLoops(t *testing.T) {
	t.Parallel()
	threads := run(t, 1, options{calm: true}).threads
	for _, name := range slices.Concat(nodeLoops, controllerLoops) {
		if !threads[name] {
			t.Errorf("no loop is named %q; there are %v", name, slices.Sorted(maps.Keys(threads)))
		}
	}
}

func TestASeedAlwaysGivesTheSameHistory(t *testing.T) {
	t.Parallel()
	for seed := range shortly(50) {
		first, second := simulate(t, seed, options{}), simulate(t, seed, options{})
		if first.history.sum != second.history.sum || first.turns != second.turns {
			t.Errorf("seed %d: %d turns, then %d; two histories", seed, first.turns, second.turns)
		}
	}
}

// A checker that finds nothing proves nothing: with any guard taken out it must find a breach soon.
func TestTheCheckerFindsWhatEachGuardKeepsOut(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a long one")
	}
	cases := map[string]struct {
		only []string // the kinds of fault that the guard is there for
		says string   // what the checker says
		from uint64   // the first seed: one near the one that finds it
	}{
		"compare":   {[]string{"freeze-controller", "slow"}, " and became Assigning", 155},
		"term":      {[]string{"freeze-controller"}, "which came under term", 125},
		"resend":    {[]string{"lossy", "cut"}, "has not ended", 110},
		"sending":   {[]string{"hush"}, "and has been running at", 430},
		"drift":     {[]string{"hush"}, "and has been running at", 600},
		"read-back": {[]string{"freeze-controller", "slow"}, "the store has never had it", 45},
		"unclaim":   {[]string{"lossy", "cut"}, "and has been running at", 135},
		"adopt":     {[]string{"undoing", "freeze-node"}, "and has been running at", 440},
		"desired":   {[]string{"crash-node", "freeze-node", "stop-node"}, " should be ", 50},
		"repeat":    {[]string{"orders"}, " should be ", 195},
		"proof":     {[]string{"twin"}, " has not crashed", 0},
		"alone":     {[]string{"crash-node"}, "must run alone", 0},
		"replicas":  {[]string{"failover"}, "and has been running at", 0},
		"barrier":   {[]string{"stall", "crash-node"}, "was on the bus since", 0},
		"listen":    {[]string{"outage", "stalls"}, "a dependency moved all", 0},
		"pause":     {[]string{"down", "cut"}, "after one that failed", 0},
		"slowing":   {[]string{"crash-node"}, "after one that left as much", 0},
		"permit":    {[]string{"freeze-controller", "slow"}, "has the permit", 930},
	}
	if len(cases) != len(guardNames()) {
		t.Errorf("%d cases for the guards %v", len(cases), guardNames())
	}
	const most = 1000
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options{only: c.only, keys: name == "permit"}
			if name == "slowing" {
				o.pending = 2
			}
			guardSwitches[name](&o.guards)
			for seed := c.from; seed < c.from+most; seed++ {
				if out := simulate(t, seed, o); strings.Contains(strings.Join(out.violations, "\n"), c.says) {
					t.Logf("seed %d: %s", seed, out.violations[0])
					return
				}
			}
			t.Errorf("nothing found in %d seeds", most)
		})
	}
}
