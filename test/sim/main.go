// Command sim runs the whole system deterministically: the real rounds of controllers and nodes on stores, a bus and a
// registry in memory, under a scheduler in which a seed decides who goes next, what gets lost, who dies and who stands
// still. A checker looks at everything that happens. A seed that fails prints a timeline and can be run again.
//
//	go run ./test/sim -seeds 100000            # a long run, on all cores
//	go run ./test/sim -from 4711 -seeds 1 -show  # one seed, with its timeline
//	go run ./test/sim -without term -seeds 1000  # with a guard taken out: the checker should find it
//	go run ./test/sim -only outage,hand-over     # only dependencies go away, and controllers change: nothing may move
//
// What each file holds: world.go the scheduler, link.go the network; store.go, bus.go, registry.go and lockfile.go the
// services; controller.go, leadership.go and transport.go the controllers; node.go and handler.go the nodes; people.go
// and alterations.go who submits and asks for things, asks.go what tasks ask for and nodes offer; fate.go, faults.go
// and outages.go what goes wrong; check.go the checker, and runs.go, limits.go, shares.go, desired.go, drains.go,
// times.go, deaf.go, crashes.go, removals.go and moves.go more of its rules.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// command is the parsed command line.
type command struct {
	options
	from   uint64
	seeds  uint64
	show   bool
	detail bool
}

func parse(args []string) (command, error) {
	var c command
	without, only := "", ""
	f := flag.NewFlagSet("sim", flag.ContinueOnError)
	f.Uint64Var(&c.from, "from", 1, "first `seed`")
	f.Uint64Var(&c.seeds, "seeds", 1000, "how many")
	f.IntVar(&c.nodes, "nodes", 0, "nodes; 0 = as the seed says")
	f.IntVar(&c.tasks, "tasks", 0, "tasks; 0 = as the seed says")
	f.BoolVar(&c.calm, "calm", false, "no faults")
	f.BoolVar(&c.keys, "keys", false, "most tasks have a concurrency key")
	f.BoolVar(&c.show, "show", false, "print the timeline of every seed, not only of those that fail")
	f.BoolVar(&c.detail, "detail", false, "in timelines, print calls that failed, too")
	f.StringVar(&only, "only", "", "`kinds` of fault, separated by commas; empty = as the seed says: "+strings.Join(faultNames(), ", "))
	f.StringVar(&without, "without", "", "take a `guard` out: "+strings.Join(guardNames(), ", "))
	if err := f.Parse(args); err != nil {
		return command{}, err
	}
	if only != "" {
		c.only = strings.Split(only, ",")
		for _, name := range c.only {
			if !slices.Contains(faultNames(), name) || outageNamed(name) != outageNamed(c.only[0]) {
				return command{}, fmt.Errorf("-only %q: of %s; outages alone (%s)", name, strings.Join(faultNames(), ", "), names(outages))
			}
		}
	}
	if without != "" {
		set, ok := guardSwitches[without]
		if !ok {
			return command{}, fmt.Errorf("-without %q: one of %s", without, strings.Join(guardNames(), ", "))
		}
		set(&c.guards)
	}
	return c, nil
}

func names(kinds []kind) string {
	list := make([]string, len(kinds))
	for i, k := range kinds {
		list[i] = k.name
	}
	return strings.Join(list, ", ")
}

func faultNames() []string {
	var names []string
	for _, k := range slices.Concat(faults, outages) {
		if !slices.Contains(names, k.name) {
			names = append(names, k.name)
		}
	}
	return names
}

// gcPercent makes the garbage collector run less often: a simulation holds little memory, and discards much.
const gcPercent = 400

func main() {
	c, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "sim:", err)
		os.Exit(2)
	}
	debug.SetGCPercent(gcPercent)
	// Only package testing makes bubbles of fake time. It has flags of its own.
	os.Args = os.Args[:1]
	match := func(string, string) (bool, error) { return true, nil }
	testing.Main(match, []testing.InternalTest{{Name: "sim", F: c.run}}, nil, nil)
}

// maxFailures ends a long run.
const maxFailures = 10

// run simulates all seeds, on all cores, and prints how fast that went.
func (c command) run(t *testing.T) {
	var mu sync.Mutex
	next, done, turns, failed := c.from, uint64(0), 0, 0
	began, said := time.Now(), time.Now()
	take := func() (uint64, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next >= c.from+c.seeds || failed >= maxFailures {
			return 0, false
		}
		next++
		return next - 1, true
	}
	rate := func() string {
		return fmt.Sprintf("%d seeds, %.0f a second, %d turns, %d failed", done, float64(done)/time.Since(began).Seconds(), turns, failed)
	}
	t.Cleanup(func() { fmt.Println(rate()) })
	for i := range runtime.GOMAXPROCS(0) {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			for {
				seed, more := take()
				if !more {
					return
				}
				o := c.options
				o.keep = c.show
				out := simulate(t, seed, o)
				bad := len(out.violations) > 0
				if bad && !o.keep {
					o.keep = true
					out = simulate(t, seed, o)
				}
				mu.Lock()
				done, turns = done+1, turns+out.turns
				if bad || c.show {
					fmt.Printf("seed %d, %d turns, history %016x\n", seed, out.turns, out.history.sum)
					out.history.print(os.Stdout, c.detail)
				}
				if bad {
					failed++
					fmt.Printf("seed %d: %s\n\n", seed, strings.Join(out.violations, "\n"))
					t.Errorf("seed %d fails; again: go run ./test/sim -from %d -seeds 1", seed, seed)
				}
				if time.Since(said) > 10*time.Second {
					said = time.Now()
					fmt.Println(rate())
				}
				mu.Unlock()
			}
		})
	}
}
