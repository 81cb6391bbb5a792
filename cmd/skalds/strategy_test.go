package main

import (
	"regexp"
	"testing"

	"github.com/skalds-go/skalds/pkg/task"
)

func TestStrategy(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--strategy", "round-robin")
	get := func() string { return want(t, 0, "strategy", "get", "-o", "name", "--server", d.server).out }
	if got := get(); got != "ROUND_ROBIN\n" {
		t.Errorf("it starts with %q", got)
	}
	for range 2 {
		for _, id := range []string{"node-1", "node-2"} { // the two take turns
			got := decode[task.Task](t, want(t, 0, "task", "submit", "demo.echo", "--wait", "-o", "json", "--server", d.server))
			if got.Executor == "" {
				t.Errorf("no executor where %s may be", id)
			}
		}
	}
	counts := map[string]int{}
	for _, got := range decode[[]task.Task](t, want(t, 0, "task", "list", "-o", "json", "--server", d.server)) {
		counts[got.Executor]++
	}
	if counts["node-1"] != 2 || counts["node-2"] != 2 {
		t.Errorf("the nodes did not take turns: %v", counts)
	}
	if a := want(t, 0, "strategy", "set", "random", "-o", "name", "--server", d.server); a.out != "RANDOM\n" {
		t.Errorf("set answers %q", a.out)
	}
	if got := get(); got != "RANDOM\n" {
		t.Errorf("it is %q then", got)
	}
	if a := want(t, 0, "strategy", "get", "--server", d.server); !regexp.MustCompile(`Strategy +RANDOM\n`).MatchString(a.out) ||
		!regexp.MustCompile(`Placed +4\n`).MatchString(a.out) {
		t.Errorf("the table is\n%s", a.out)
	}
}
