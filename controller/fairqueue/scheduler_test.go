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

// backlog is a queue with tasks that were created one a millisecond.
type backlog struct {
	fairqueue.Item
	left int
}

// serve serves up to n heads in one round of all queues, and returns how many each queue got.
func serve(s *fairqueue.Scheduler, now int64, n int, queues []*backlog) []int {
	got := make([]int, len(queues))
	s.Begin(now)
	for _, l := range queues {
		if l.left > 0 {
			s.Push(&l.Item)
		}
	}
	for range n {
		it := s.Next()
		if it == nil {
			break
		}
		i := slices.IndexFunc(queues, func(l *backlog) bool { return &l.Item == it })
		got[i]++
		s.Served(it)
		queues[i].left--
		queues[i].Created++
		if queues[i].left > 0 {
			s.Push(it)
		}
	}
	return got
}

func queue(priority int, namespace string, created int64, left int) *backlog {
	return &backlog{Item: fairqueue.Item{Priority: priority, Namespace: namespace, Created: created, ID: fmt.Sprint(namespace, priority)}, left: left}
}

func TestOneNamespaceIsServedByPriorityThenCreationThenID(t *testing.T) {
	t.Parallel()
	s := fairqueue.New(fairqueue.Config{Mode: fairqueue.Strict})
	s.Begin(1000)
	want := []fairqueue.Item{
		{Priority: 10, Created: 9, ID: "a"}, {Priority: 5, Created: 1, ID: "z"}, {Priority: 5, Created: 2, ID: "a"}, {Priority: 5, Created: 2, ID: "b"},
		{Priority: 0, Created: 0, ID: "a"},
	}
	for _, i := range []int{3, 0, 4, 2, 1} {
		s.Push(&want[i])
	}
	for i := range want {
		if got := s.Next(); got != &want[i] {
			t.Fatalf("%d: %+v, want %+v", i, got, want[i])
		}
	}
	if s.Next() != nil {
		t.Error("there is more than was pushed")
	}
}

func TestC70_StrictDrainsTheHighestFirst(t *testing.T) {
	t.Parallel()
	s := fairqueue.New(fairqueue.Config{Mode: fairqueue.Strict})
	queues := []*backlog{queue(5, "", 100, 50), queue(2, "", 0, 50), queue(0, "", 0, 50)}
	if got := serve(s, 1000, 60, queues); !slices.Equal(got, []int{50, 10, 0}) {
		t.Errorf("%v, want the highest drained first", got)
	}
}

func TestC70_WeightedKeepsItsShares(t *testing.T) {
	t.Parallel()
	s := fairqueue.New(fairqueue.Config{Mode: fairqueue.Weighted})
	queues := []*backlog{queue(5, "", 100, 1e6), queue(2, "", 0, 1e6), queue(0, "", 0, 1e6)}
	total := make([]int, 3)
	for range 100 { // many small rounds, as in life
		for i, n := range serve(s, 1000, 7, queues) {
			total[i] += n
		}
	}
	if !slices.Equal(total, []int{420, 210, 70}) {
		t.Errorf("%v of 700, want 6:3:1 exactly", total)
	}
}

// A flood of high priority delays a task of low priority until that has aged to the top and is older than the flood.
func TestC69_AgeingLetsTheLowestRunInTime(t *testing.T) {
	t.Parallel()
	const step = 6 * time.Second
	s := fairqueue.New(fairqueue.Config{Mode: fairqueue.Strict, Aging: step})
	low := queue(0, "", 0, 1)
	for now := int64(0); ; now += 100 {
		if now > 60_000 {
			t.Fatal("it waits for more than ten steps")
		}
		// The flood: always something of priority 9 that has just come.
		got := serve(s, now, 1, []*backlog{low, queue(9, "", now, 1)})
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
	s := fairqueue.New(fairqueue.Config{Mode: fairqueue.Strict})
	if got := serve(s, 1<<40, 1, []*backlog{queue(0, "", 0, 1), queue(1, "", 1<<40, 1)}); got[1] != 1 {
		t.Errorf("%v", got)
	}
}

func TestNamespacesTakeTurns(t *testing.T) {
	t.Parallel()
	for _, perRound := range []int{1, 2, 5, 64} {
		s := fairqueue.New(fairqueue.Config{Mode: fairqueue.Strict})
		queues := []*backlog{queue(5, "big", 0, 1e6), queue(5, "big2", 0, 1e6), queue(5, "small", 1e6, 1e6), queue(4, "low", 0, 1e6)}
		total := make([]int, 4)
		for range 30 {
			for i, n := range serve(s, 1e6, perRound*3, queues) {
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
	s := fairqueue.New(fairqueue.Config{Mode: fairqueue.Strict})
	wide, narrow := queue(5, "wide", 0, 1e6), queue(5, "narrow", 0, 1e6)
	wide.Slots = 10
	total := make([]int, 2)
	for range 100 {
		for i, n := range serve(s, 0, 11, []*backlog{wide, narrow}) {
			total[i] += n
		}
	}
	if slots := []int{10 * total[0], total[1]}; max(slots[0], slots[1])-min(slots[0], slots[1]) > 20 {
		t.Errorf("slots %v, want them equal to within two turns", slots)
	}
}

// A queue that cannot run costs its namespace nothing.
func TestNextAloneCostsNothing(t *testing.T) {
	t.Parallel()
	s := fairqueue.New(fairqueue.Config{Mode: fairqueue.Weighted})
	total := map[string]int{}
	for range 100 {
		s.Begin(0)
		for _, ns := range []string{"blocked", "a", "b"} {
			s.Push(&fairqueue.Item{Priority: 3, Namespace: ns})
		}
		for it := s.Next(); it != nil; it = s.Next() {
			if it.Namespace != "blocked" {
				s.Served(it)
				total[it.Namespace]++
				break
			}
		}
	}
	if total["a"] != 50 || total["b"] != 50 {
		t.Errorf("%v, want 50 each", total)
	}
}

// A round that goes on keeps its queues. It ends before a level can be far off.
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
			s := fairqueue.New(fairqueue.Config{Mode: fairqueue.Strict, Aging: c.aging})
			if s.Continue(5000) {
				t.Fatal("it goes on before it has begun")
			}
			s.Begin(5000)
			first, second := queue(5, "", 5000, 1), queue(0, "", 5000, 1)
			s.Push(&first.Item)
			s.Push(&second.Item)
			if s.Next() != &first.Item {
				t.Fatal("the first is not first")
			}
			if c.most > 0 && !s.Continue(5000+c.most-1) || s.Continue(5000+c.most) || s.Continue(4999) {
				t.Errorf("it does not go on for %d ms", c.most)
			}
			higher := queue(7, "", 5000, 1)
			s.Push(&higher.Item)
			if s.Next() != &higher.Item || s.Next() != &second.Item {
				t.Error("what was in the round has not stayed in it")
			}
		})
	}
}

// Scripts may write any time and any priority.
func TestAnyTimeOfCreationAndPriorityHasALevel(t *testing.T) {
	t.Parallel()
	s := fairqueue.New(fairqueue.Config{Mode: fairqueue.Strict, Aging: time.Minute})
	s.Begin(1_700_000_000_000)
	for _, tt := range []struct {
		created  int64
		priority int
		want     int
	}{
		{math.MinInt64, 0, task.MaxPriority}, {0, 0, task.MaxPriority}, {math.MaxInt64, 3, 3},
		{1_700_000_000_000 - 60_000, 3, 4}, {math.MaxInt64, math.MaxInt, task.MaxPriority}, {math.MaxInt64, math.MinInt, task.MinPriority},
	} {
		it := &fairqueue.Item{Created: tt.created, Priority: tt.priority}
		if got := s.Level(it); got != tt.want {
			t.Errorf("level %d for created %d, priority %d, want %d", got, tt.created, tt.priority, tt.want)
		}
		s.Push(it)
		if s.Next() != it {
			t.Errorf("created %d: it is not in the round", tt.created)
		}
	}
}

// TestOrderProperties checks that, whatever comes and goes, a round returns each queue once for each push; that Strict
// never serves a lower level before a higher one; that namespaces which always have a queue in one level differ by no
// more than three turns; and that no pushed queue is lost.
func TestOrderProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom([]fairqueue.Mode{fairqueue.Strict, fairqueue.Weighted}).Draw(t, "mode")
		aging := time.Duration(rapid.SampledFrom([]int{0, 1, 1000}).Draw(t, "aging")) * time.Millisecond
		s := fairqueue.New(fairqueue.Config{Mode: mode, Aging: aging})
		slots := map[string]int{}
		widest := 1
		for round := range rapid.IntRange(1, 20).Draw(t, "rounds") {
			now := int64(round * 100)
			s.Begin(now)
			queues := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) *fairqueue.Item {
				return &fairqueue.Item{Priority: rapid.IntRange(-2, 12).Draw(t, "p"), Namespace: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "ns"),
					Slots: rapid.IntRange(0, 4).Draw(t, "slots"), Created: rapid.Int64Range(0, 2000).Draw(t, "created"), ID: fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "id"))}
			}), 0, 12).Draw(t, "queues")
			for _, l := range queues {
				s.Push(l)
			}
			last := 99
			seen := map[*fairqueue.Item]bool{}
			for it := s.Next(); it != nil; it = s.Next() {
				if seen[it] {
					t.Fatal("a queue was given twice")
				}
				seen[it] = true
				if mode == fairqueue.Strict && s.Level(it) > last {
					t.Fatalf("level %d after %d", s.Level(it), last)
				}
				last = s.Level(it)
				if rapid.Bool().Draw(t, "served") {
					s.Served(it)
				}
			}
			if len(seen) != len(queues) {
				t.Fatalf("%d of %d were given", len(seen), len(queues))
			}
		}
		// Two namespaces that always have something.
		for range 50 {
			s.Begin(0)
			for _, ns := range []string{"x", "y"} {
				l := &fairqueue.Item{Priority: 3, Namespace: ns, Slots: rapid.IntRange(1, 4).Draw(t, "slots")}
				widest = max(widest, l.Slots)
				s.Push(l)
			}
			it := s.Next()
			s.Served(it)
			slots[it.Namespace] += it.Slots
		}
		if d := slots["x"] - slots["y"]; max(d, -d) > 3*widest {
			t.Fatalf("slots %v differ by more than three turns", slots)
		}
	})
}

// BenchmarkNext measures what a round does for each task, with 1,000 queues in ten namespaces.
func BenchmarkNext(b *testing.B) {
	s, queues := crowd(1000)
	s.Begin(1e6)
	for _, l := range queues {
		s.Push(l)
	}
	b.ReportAllocs()
	for b.Loop() {
		it := s.Next()
		s.Served(it)
		it.Created++
		s.Push(it)
	}
}

func TestARoundAllocatesNothing(t *testing.T) {
	s, queues := crowd(100)
	round := func() {
		s.Begin(1e6)
		for _, l := range queues {
			s.Push(l)
		}
		for it := s.Next(); it != nil; it = s.Next() {
			s.Served(it)
		}
	}
	round()
	if n := testing.AllocsPerRun(20, round); n != 0 {
		t.Errorf("%v allocations in a round; want 0", n)
	}
}

func crowd(n int) (*fairqueue.Scheduler, []*fairqueue.Item) {
	queues := make([]*fairqueue.Item, n)
	for i := range queues {
		queues[i] = &fairqueue.Item{Priority: i % 11, Namespace: fmt.Sprint("ns", i%10), Created: int64(i), ID: fmt.Sprint(i)}
	}
	return fairqueue.New(fairqueue.Config{Mode: fairqueue.Strict, Aging: time.Minute}), queues
}
