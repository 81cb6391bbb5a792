package fairqueue_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/skalds-go/skalds/controller/fairqueue"
	"github.com/skalds-go/skalds/pkg/task"
)

// line is a queue with tasks that were created one a millisecond.
type line struct {
	fairqueue.Item
	left int
}

// serve places n heads, in one round, with all queues in it, and says how many each got.
func serve(o *fairqueue.Scheduler, now int64, n int, lines []*line) []int {
	got := make([]int, len(lines))
	o.Begin(now)
	for _, l := range lines {
		if l.left > 0 {
			o.Push(&l.Item)
		}
	}
	for range n {
		it := o.Next()
		if it == nil {
			break
		}
		i := slices.IndexFunc(lines, func(l *line) bool { return &l.Item == it })
		got[i]++
		o.Served(it)
		lines[i].left--
		lines[i].Created++
		if lines[i].left > 0 {
			o.Push(it)
		}
	}
	return got
}

func queue(priority int, namespace string, created int64, left int) *line {
	return &line{Item: fairqueue.Item{Priority: priority, Namespace: namespace, Created: created, ID: fmt.Sprint(namespace, priority)}, left: left}
}

func TestOneNamespaceIsServedByPriorityThenCreationThenID(t *testing.T) {
	t.Parallel()
	o := fairqueue.New(fairqueue.Config{Mode: fairqueue.Strict})
	o.Begin(1000)
	want := []fairqueue.Item{
		{Priority: 10, Created: 9, ID: "a"}, {Priority: 5, Created: 1, ID: "z"}, {Priority: 5, Created: 2, ID: "a"}, {Priority: 5, Created: 2, ID: "b"},
		{Priority: 0, Created: 0, ID: "a"},
	}
	for _, i := range []int{3, 0, 4, 2, 1} {
		o.Push(&want[i])
	}
	for i := range want {
		if got := o.Next(); got != &want[i] {
			t.Fatalf("%d: %+v, want %+v", i, got, want[i])
		}
	}
	if o.Next() != nil {
		t.Error("there is more than was pushed")
	}
}

func TestC70_StrictDrainsTheHighestFirst(t *testing.T) {
	t.Parallel()
	o := fairqueue.New(fairqueue.Config{Mode: fairqueue.Strict})
	lines := []*line{queue(5, "", 100, 50), queue(2, "", 0, 50), queue(0, "", 0, 50)}
	if got := serve(o, 1000, 60, lines); !slices.Equal(got, []int{50, 10, 0}) {
		t.Errorf("%v, want the highest drained first", got)
	}
}

func TestC70_WeightedKeepsItsShares(t *testing.T) {
	t.Parallel()
	o := fairqueue.New(fairqueue.Config{Mode: fairqueue.Weighted})
	lines := []*line{queue(5, "", 100, 1e6), queue(2, "", 0, 1e6), queue(0, "", 0, 1e6)}
	total := make([]int, 3)
	for range 100 { // many small rounds, as in life
		for i, n := range serve(o, 1000, 7, lines) {
			total[i] += n
		}
	}
	if !slices.Equal(total, []int{420, 210, 70}) {
		t.Errorf("%v of 700, want 6:3:1 exactly", total)
	}
}

// A flood of a high priority holds a low one up until that has aged to the top and is older than what comes.
func TestC69_AgeingLetsTheLowestRunInTime(t *testing.T) {
	t.Parallel()
	const step = 6 * time.Second
	o := fairqueue.New(fairqueue.Config{Mode: fairqueue.Strict, Aging: step})
	low := queue(0, "", 0, 1)
	for now := int64(0); ; now += 100 {
		if now > 60_000 {
			t.Fatal("it waits for more than ten steps")
		}
		// The flood: always something of priority 9 that has just come.
		got := serve(o, now, 1, []*line{low, queue(9, "", now, 1)})
		if got[0] == 1 {
			if now < 9*step.Milliseconds() {
				t.Errorf("it ran after %d ms, before it had aged to 9", now)
			}
			return
		}
	}
}

func TestWithoutAgeingNothingRises(t *testing.T) {
	t.Parallel()
	o := fairqueue.New(fairqueue.Config{Mode: fairqueue.Strict})
	if got := serve(o, 1<<40, 1, []*line{queue(0, "", 0, 1), queue(1, "", 1<<40, 1)}); got[1] != 1 {
		t.Errorf("%v", got)
	}
}

func TestNamespacesTakeTurns(t *testing.T) {
	t.Parallel()
	for _, perRound := range []int{1, 2, 5, 64} {
		o := fairqueue.New(fairqueue.Config{Mode: fairqueue.Strict})
		lines := []*line{queue(5, "big", 0, 1e6), queue(5, "big2", 0, 1e6), queue(5, "small", 1e6, 1e6), queue(4, "low", 0, 1e6)}
		total := make([]int, 4)
		for range 30 {
			for i, n := range serve(o, 1e6, perRound*3, lines) {
				total[i] += n
			}
		}
		if n := 30 * perRound; !slices.Equal(total, []int{n, n, n, 0}) {
			t.Errorf("%d at a time: %v, want %d each", perRound*3, total, 30*perRound)
		}
	}
}

func TestDeficitRoundRobinCountsSlots(t *testing.T) {
	t.Parallel()
	o := fairqueue.New(fairqueue.Config{Mode: fairqueue.Strict})
	wide, narrow := queue(5, "wide", 0, 1e6), queue(5, "narrow", 0, 1e6)
	wide.Slots = 10
	total := make([]int, 2)
	for range 100 {
		for i, n := range serve(o, 0, 11, []*line{wide, narrow}) {
			total[i] += n
		}
	}
	if slots := []int{10 * total[0], total[1]}; max(slots[0], slots[1])-min(slots[0], slots[1]) > 20 {
		t.Errorf("slots %v, want them equal to within two turns", slots)
	}
}

// A queue that turns out not to be able to run costs its namespace nothing.
func TestNextAloneCostsNothing(t *testing.T) {
	t.Parallel()
	o := fairqueue.New(fairqueue.Config{Mode: fairqueue.Weighted})
	total := map[string]int{}
	for range 100 {
		o.Begin(0)
		for _, ns := range []string{"blocked", "a", "b"} {
			o.Push(&fairqueue.Item{Priority: 3, Namespace: ns})
		}
		for it := o.Next(); it != nil; it = o.Next() {
			if it.Namespace != "blocked" {
				o.Served(it)
				total[it.Namespace]++
				break
			}
		}
	}
	if total["a"] != 50 || total["b"] != 50 {
		t.Errorf("%v, want 50 each", total)
	}
}

// A round that goes on keeps its queues, for so long as no level can be far off; then it begins anew.
func TestARoundGoesOnForAShortTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		aging time.Duration
		most  int64 // ms
	}{
		"without ageing": {0, 1000}, "slow ageing": {time.Minute, 1000}, "fast ageing": {time.Second, 100}, "ageing at once": {time.Millisecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := fairqueue.New(fairqueue.Config{Mode: fairqueue.Strict, Aging: c.aging})
			if o.Continue(5000) {
				t.Fatal("it goes on before it has begun")
			}
			o.Begin(5000)
			first, second := queue(5, "", 5000, 1), queue(0, "", 5000, 1)
			o.Push(&first.Item)
			o.Push(&second.Item)
			if o.Next() != &first.Item {
				t.Fatal("the first is not first")
			}
			if c.most > 0 && !o.Continue(5000+c.most-1) || o.Continue(5000+c.most) || o.Continue(4999) {
				t.Errorf("it does not go on for %d ms", c.most)
			}
			higher := queue(7, "", 5000, 1)
			o.Push(&higher.Item)
			if o.Next() != &higher.Item || o.Next() != &second.Item {
				t.Error("what was in the round has not stayed in it")
			}
		})
	}
}

// Scripts write what they like.
func TestAnyTimeOfCreationAndPriorityHasALevel(t *testing.T) {
	t.Parallel()
	o := fairqueue.New(fairqueue.Config{Mode: fairqueue.Strict, Aging: time.Minute})
	o.Begin(1_700_000_000_000)
	for _, tt := range []struct {
		created  int64
		priority int
		want     int
	}{
		{math.MinInt64, 0, task.MaxPriority}, {0, 0, task.MaxPriority}, {math.MaxInt64, 3, 3},
		{1_700_000_000_000 - 60_000, 3, 4}, {math.MaxInt64, math.MaxInt, task.MaxPriority}, {math.MaxInt64, math.MinInt, task.MinPriority},
	} {
		it := &fairqueue.Item{Created: tt.created, Priority: tt.priority}
		if got := o.Level(it); got != tt.want {
			t.Errorf("level %d for created %d, priority %d, want %d", got, tt.created, tt.priority, tt.want)
		}
		o.Push(it)
		if o.Next() != it {
			t.Errorf("created %d: it is not in the round", tt.created)
		}
	}
}

// TestOrderProperties: whatever comes and goes, a round gives each queue once for each push; strict never serves a lower level before a
// higher; namespaces that always have something of one level differ by no more than two turns; and all that is pushed is given.
func TestOrderProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom([]fairqueue.Mode{fairqueue.Strict, fairqueue.Weighted}).Draw(t, "mode")
		aging := time.Duration(rapid.SampledFrom([]int{0, 1, 1000}).Draw(t, "aging")) * time.Millisecond
		o := fairqueue.New(fairqueue.Config{Mode: mode, Aging: aging})
		slots := map[string]int{}
		widest := 1
		for round := range rapid.IntRange(1, 20).Draw(t, "rounds") {
			now := int64(round * 100)
			o.Begin(now)
			lines := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) *fairqueue.Item {
				return &fairqueue.Item{Priority: rapid.IntRange(-2, 12).Draw(t, "p"), Namespace: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "ns"),
					Slots: rapid.IntRange(0, 4).Draw(t, "slots"), Created: rapid.Int64Range(0, 2000).Draw(t, "created"), ID: fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "id"))}
			}), 0, 12).Draw(t, "lines")
			for _, l := range lines {
				o.Push(l)
			}
			last := 99
			seen := map[*fairqueue.Item]bool{}
			for it := o.Next(); it != nil; it = o.Next() {
				if seen[it] {
					t.Fatal("a queue was given twice")
				}
				seen[it] = true
				if mode == fairqueue.Strict && o.Level(it) > last {
					t.Fatalf("level %d after %d", o.Level(it), last)
				}
				last = o.Level(it)
				if rapid.Bool().Draw(t, "served") {
					o.Served(it)
				}
			}
			if len(seen) != len(lines) {
				t.Fatalf("%d of %d were given", len(seen), len(lines))
			}
		}
		// Two namespaces that always have something.
		for range 50 {
			o.Begin(0)
			for _, ns := range []string{"x", "y"} {
				l := &fairqueue.Item{Priority: 3, Namespace: ns, Slots: rapid.IntRange(1, 4).Draw(t, "slots")}
				widest = max(widest, l.Slots)
				o.Push(l)
			}
			it := o.Next()
			o.Served(it)
			slots[it.Namespace] += it.Slots
		}
		if d := slots["x"] - slots["y"]; max(d, -d) > 3*widest {
			t.Fatalf("slots %v differ by more than three turns", slots)
		}
	})
}

// BenchmarkNext is a round's work for each task, with 1,000 queues in ten namespaces. An allocation guard stands beside it.
func BenchmarkNext(b *testing.B) {
	o, lines := crowd(1000)
	o.Begin(1e6)
	for _, l := range lines {
		o.Push(l)
	}
	b.ReportAllocs()
	for b.Loop() {
		it := o.Next()
		o.Served(it)
		it.Created++
		o.Push(it)
	}
}

func TestARoundAllocatesNothing(t *testing.T) {
	o, lines := crowd(100)
	round := func() {
		o.Begin(1e6)
		for _, l := range lines {
			o.Push(l)
		}
		for it := o.Next(); it != nil; it = o.Next() {
			o.Served(it)
		}
	}
	round()
	if n := testing.AllocsPerRun(20, round); n != 0 {
		t.Errorf("%v allocations in a round; want 0", n)
	}
}

func crowd(n int) (*fairqueue.Scheduler, []*fairqueue.Item) {
	lines := make([]*fairqueue.Item, n)
	for i := range lines {
		lines[i] = &fairqueue.Item{Priority: i % 11, Namespace: fmt.Sprint("ns", i%10), Created: int64(i), ID: fmt.Sprint(i)}
	}
	return fairqueue.New(fairqueue.Config{Mode: fairqueue.Strict, Aging: time.Minute}), lines
}
