package chaos_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skalds-go/skalds/events"
)

// fault is one thing that is broken for a while.
type fault struct {
	from, until time.Duration // since the begin of the plan
	what        what
	target      string        // a member, a service, or MEMBER/SERVICE and */SERVICE for the links of one or all
	delay       time.Duration // of what = delay
	topic       string        // of what = recreate: the topic that is deleted,
	again       bool          // and whether it is made anew at once, or left to the controllers
}

func (f *fault) String() string {
	text := fmt.Sprintf("%s..%s %s %s", f.from.Round(time.Millisecond), f.until.Round(time.Millisecond), f.what, f.target)
	if f.what == delay {
		text += " by " + f.delay.Round(time.Millisecond).String()
	}
	if f.what == recreate {
		text += fmt.Sprintf(" topic %s, at once %v", f.topic, f.again)
	}
	return text
}

// what is a kind of fault.
type what string

const (
	kill      what = "kill"
	freeze    what = "freeze"
	terminate what = "terminate"
	stop      what = "stop" // a service, as an operator would
	cut       what = "cut"
	stall     what = "stall"
	delay     what = "delay"
	recreate  what = "recreate" // a topic
)

const (
	// atOnce is how many things are broken at once at most.
	atOnce = 3
	// brokerRest is how long the broker is left alone after it was started again: it takes up to 10 s to serve.
	brokerRest = 12 * time.Second
)

// plan chooses faults by a seed, all of which have ended when the duration is over.
func plan(seed uint64, duration time.Duration) []fault {
	random := rand.New(rand.NewPCG(seed, 0))
	var all []fault
	for at := time.Duration(0); ; {
		at += time.Duration(random.ExpFloat64() * float64(900*time.Millisecond))
		f := choose(random)
		f.from, f.until = at, at+f.until
		if at >= duration {
			return all
		}
		if f.until <= duration && fits(all, &f) {
			all = append(all, f)
		}
	}
}

// choose gives a fault; its until is how long it lasts.
func choose(random *rand.Rand) fault {
	seconds := func(from, to float64) time.Duration {
		return time.Duration((from + (to-from)*random.Float64()) * float64(time.Second))
	}
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	aNode, aController := fmt.Sprintf("node-%d", 1+random.IntN(nodes)), fmt.Sprintf("controller-%d", 1+random.IntN(controllers))
	switch n := random.IntN(100); {
	case n < 14:
		return fault{what: kill, target: aNode, until: seconds(0, 4)}
	case n < 24: // short, long, and about as long as a node trusts itself
		return fault{what: freeze, target: aNode, until: seconds(0.2, 6)}
	case n < 32:
		return fault{what: terminate, target: aNode, until: seconds(0.5, 4)}
	case n < 40:
		return fault{what: kill, target: aController, until: seconds(0, 4)}
	case n < 46:
		return fault{what: freeze, target: aController, until: seconds(0.2, 5)}
	case n < 50:
		return fault{what: terminate, target: aController, until: seconds(0.5, 3)}
	case n < 54:
		return fault{what: pick2(random, kill, stop), target: toKafka, until: seconds(0, 2)}
	case n < 57:
		topic := pick(events.TopicAssign, events.TopicControl, events.TopicStatus)
		return fault{what: recreate, target: toKafka, topic: topic, again: random.IntN(2) == 0}
	case n < 62:
		return fault{what: pick2(random, kill, stop), target: toRedis, until: seconds(0, 4)}
	case n < 75:
		return linkFault(random, aNode, pick(toKafka, toRedis), seconds(0.3, 6))
	case n < 90:
		return linkFault(random, aController, pick(toKafka, toRedis, toStore), seconds(0.3, 6))
	default:
		return linkFault(random, "*", pick(toKafka, toRedis, toStore), seconds(0.2, 4))
	}
}

func pick2(random *rand.Rand, a, b what) what {
	if random.IntN(2) == 0 {
		return a
	}
	return b
}

func linkFault(random *rand.Rand, who, service string, lasts time.Duration) fault {
	f := fault{target: who + "/" + service, until: lasts}
	f.what = []what{cut, stall, delay}[random.IntN(3)]
	if f.what == delay {
		f.delay = time.Duration(20+random.IntN(480)) * time.Millisecond
	}
	return f
}

// fits says whether a fault may be added to those before: nothing is broken twice, and not too much at once.
func fits(all []fault, f *fault) bool {
	active := 0
	for i := range all {
		g := &all[i]
		over := g.until
		if g.target == toKafka {
			over += brokerRest
		}
		if over <= f.from {
			continue
		}
		if same(g.target, f.target) {
			return false
		}
		if g.until > f.from {
			active++
		}
	}
	return active < atOnce
}

// same says whether two targets have a link or a process in common.
func same(a, b string) bool {
	if a == b {
		return true
	}
	whoA, serviceA, linkA := strings.Cut(a, "/")
	whoB, serviceB, linkB := strings.Cut(b, "/")
	return linkA && linkB && serviceA == serviceB && (whoA == "*" || whoB == "*")
}

// step is the begin or the end of a fault.
type step struct {
	at    time.Duration
	fault *fault
	end   bool
}

// steps puts begins and ends in order.
func steps(faults []fault) []step {
	var all []step
	for i := range faults {
		f := &faults[i]
		all = append(all, step{f.from, f, false}, step{f.until, f, true})
	}
	slices.SortStableFunc(all, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	return all
}

func TestPlan(t *testing.T) {
	t.Parallel()
	const duration = 10 * time.Minute
	seen := map[what]bool{}
	for seed := range uint64(50) {
		faults := plan(seed, duration)
		if len(faults) < 100 {
			t.Errorf("seed %d: %d faults", seed, len(faults))
		}
		active := map[string]bool{}
		for _, s := range steps(faults) {
			seen[s.fault.what] = true
			switch {
			case s.at < 0 || s.at > duration:
				t.Fatalf("seed %d: %s is beyond the end", seed, s.fault)
			case s.end:
				delete(active, s.fault.target)
			case active[s.fault.target]:
				t.Fatalf("seed %d: %s is broken twice", seed, s.fault.target)
			default:
				active[s.fault.target] = true
			}
			if len(active) > atOnce {
				t.Fatalf("seed %d: broken at once: %v", seed, active)
			}
		}
		if len(active) > 0 {
			t.Errorf("seed %d: left broken: %v", seed, active)
		}
		for i, f := range plan(seed, duration) {
			if f != faults[i] {
				t.Fatalf("seed %d gave another plan", seed)
			}
		}
	}
	for _, w := range []what{kill, freeze, terminate, stop, cut, stall, delay, recreate} {
		if !seen[w] {
			t.Errorf("no plan has a %s", w)
		}
	}
}
