package main

import "testing"

// run simulates a seed and, if it fails, runs it again to print its timeline.
func run(t *testing.T, seed uint64, o options) outcome {
	t.Helper()
	out := simulate(t, seed, o)
	if len(out.violations) > 0 {
		o.keep = true
		again := simulate(t, seed, o)
		again.history.print(t.Output(), false)
		t.Errorf("seed %d: %v", seed, out.violations)
		if again.history.sum != out.history.sum {
			t.Errorf("seed %d gives another history when it is run again", seed)
		}
	}
	return out
}

func TestWithoutFaultsAllIsWell(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		run(t, seed, options{calm: true})
	}
}

func TestASeedAlwaysGivesTheSameHistory(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		first, second := simulate(t, seed, options{}), simulate(t, seed, options{})
		if first.history.sum != second.history.sum || first.turns != second.turns {
			t.Errorf("seed %d: %d turns, then %d; two histories", seed, first.turns, second.turns)
		}
	}
}
