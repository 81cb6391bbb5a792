package placement

import (
	"fmt"
	"testing"

	"github.com/skalds-go/skalds/pkg/task"
)

// labelled makes a cluster of so many nodes, each with a zone, a rack and a host of its own.
func labelled(n int) *Cluster {
	c := NewCluster(1)
	for i := range n {
		c.Set(Node{ID: fmt.Sprint("n", i), Classes: []string{"a", "b"}, Capacity: 1000, Prefetch: 10, CPU: -1, Memory: -1,
			Labels: map[string]string{"zone": fmt.Sprint(i % 3), "rack": fmt.Sprint(i % 20), "host": fmt.Sprint(i)}})
	}
	return c
}

func parsed(t testing.TB, text string) task.Selector {
	t.Helper()
	s, err := task.ParseSelector(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCandidateSetsAreBoundedWhateverTasksAskFor(t *testing.T) {
	t.Parallel()
	const limit = 20_000
	c := labelled(200)
	c.candidates.limit = limit
	for i := range 3000 {
		q := Request{Class: "a", Selector: parsed(t, fmt.Sprintf("never%d!=x", i)), Strategy: Strategies()[i%len(Strategies())], StickyKey: fmt.Sprint(i)}
		if d := c.Place(&q); d.Node == "" {
			t.Fatal(d.Reason)
		}
		if w := c.candidates.weight; w > limit {
			t.Fatalf("the candidate sets weigh %d, %d at most", w, limit)
		}
	}
	if n := len(c.candidates.byKey); n > limit/200 {
		t.Errorf("%d candidate sets of 200 nodes each are held", n)
	}
	listeners := 0
	for _, p := range c.candidates.byKey {
		if p.log == every {
			listeners++
		}
	}
	if c.listeners != listeners {
		t.Errorf("%d candidate sets are said to read all changes, and %d do", c.listeners, listeners)
	}
}

func TestWhatNoNodeHasMakesNoCandidateSet(t *testing.T) {
	t.Parallel()
	c := labelled(20)
	for i := range 1000 {
		for _, q := range []Request{{Class: fmt.Sprint(i)}, {Class: "a", Selector: parsed(t, fmt.Sprintf("zone=never%d", i))}} {
			if _, ok := c.Feasible(&q); ok {
				t.Fatal("it can be placed")
			}
		}
	}
	if n := len(c.candidates.byKey); n != 0 {
		t.Errorf("%d candidate sets", n)
	}
}

func TestStickyKeysAreBounded(t *testing.T) {
	t.Parallel()
	c := labelled(20)
	for i := range 50_000 {
		if d := c.Place(&Request{Class: "a", Strategy: Sticky, StickyKey: fmt.Sprint(i), Prefetch: PrefetchDeep}); d.Node == "" && i < 20*1000 {
			t.Fatal(d.Reason)
		}
	}
	if n := len(c.favourites); n != favouriteSets {
		t.Errorf("%d sets of keys, want %d", n, favouriteSets)
	}
}

func TestNodesThatComeAndGoLeaveNothing(t *testing.T) {
	t.Parallel()
	c := NewCluster(1)
	for i := range 2000 {
		id := fmt.Sprint("n", i)
		c.Set(Node{ID: id, Classes: []string{"a", fmt.Sprint("class", i)}, Labels: map[string]string{"host": id}, Capacity: 2, Load: 1, RateLimited: i%5 == 0})
		if i%2 == 0 {
			c.Place(&Request{Class: "a", Alone: true}) // it is kept free
		}
		if i%3 == 0 {
			c.Place(&Request{Class: "a", Strategy: Strategies()[i%len(Strategies())]})
		}
		c.Remove(id)
	}
	if len(c.nodes) != 1 || len(c.index) != 0 || len(c.ids) != 0 || len(c.joiners) != 0 || len(c.kept) != 0 {
		t.Errorf("%d places, %d features, %d ids, %d joiners, %d kept", len(c.nodes), len(c.index), len(c.ids), len(c.joiners), len(c.kept))
	}
	if slots, queue := c.Free(); slots != 0 || queue != 0 || c.rateLimited != 0 {
		t.Errorf("room for %d and %d, %d rate limited", slots, queue, c.rateLimited)
	}
}

func TestWhatACandidateSetHoldsIsBounded(t *testing.T) {
	t.Parallel()
	for _, s := range Strategies() {
		c := labelled(10)
		q := Request{Class: "a", Strategy: s, StickyKey: "k"}
		for i := range 5000 {
			c.Place(&q)
			// A node is full when it would be picked, and then is not.
			c.Set(Node{ID: fmt.Sprint("n", i%10), Classes: []string{"a"}, Capacity: 2, Load: 2 - i/10%2*2, Labels: map[string]string{"zone": "0"}})
			if n := held(c.candidates.latest().stages[stageSlots].chooser); n > 2*10+emptyWeight+1 {
				t.Fatalf("%s: after %d rounds 10 nodes are held %d times", s, i, n)
			}
		}
	}
}

func TestACandidateSetThatIsFarBehindSeesAll(t *testing.T) {
	t.Parallel()
	const nodes = 5000
	c := NewCluster(1)
	set := func(i, load int) {
		c.Set(Node{ID: fmt.Sprint("n", i), Classes: []string{"a"}, Capacity: 10, Load: load})
	}
	for i := range nodes {
		set(i, 5)
	}
	q := Request{Class: "a"}
	c.Place(&q)
	set(77, 1) // what a candidate set would miss that reads on from where the log has wrapped
	for i := range logSize {
		set(100+i%4000, 6)
		set(100+i%4000, 5)
	}
	if d := c.Place(&q); d.Node != "n77" {
		t.Errorf("it went to %s, want the node with the least", d.Node)
	}
}

func TestOnlyTheLatestPlacementsCanBeTakenBack(t *testing.T) {
	t.Parallel()
	c := NewCluster(1)
	c.Set(Node{ID: "n", Classes: []string{"a"}, Capacity: task.MaxSlots})
	q := Request{Class: "a"}
	first, second := c.Place(&q), c.Place(&q)
	for range remembered - 1 {
		c.Place(&q)
	}
	if c.Unplace(first) {
		t.Error("one that is too old was taken back")
	}
	if !c.Unplace(second) || c.Unplace(second) {
		t.Error("the oldest that is remembered is taken back once")
	}
	if slots, _ := c.Free(); slots != task.MaxSlots-remembered {
		t.Errorf("%d slots free, want %d", slots, task.MaxSlots-remembered)
	}
	if again := c.Place(&q); again.ticket%remembered != second.ticket%remembered || !c.Unplace(again) {
		t.Error("one that is remembered where another was taken back cannot be taken back")
	}
}

func TestFeasibleChangesNothing(t *testing.T) {
	t.Parallel()
	for _, s := range Strategies() {
		a, b := labelled(20), labelled(20)
		q := Request{Class: "a", Strategy: s, Selector: parsed(t, "zone in (0,1)"), StickyKey: "k", Anti: []string{"n4"}}
		for range 200 {
			for range 3 {
				b.Feasible(&q)
				b.Feasible(&Request{Class: "a", Alone: true})
			}
			b.Explain(&q)
			if x, y := a.Place(&q), b.Place(&q); x.Node != y.Node {
				t.Fatalf("%s: %s, and %s after it was asked", s, x.Node, y.Node)
			}
		}
	}
}

func TestDecisionsDoNotAllocate(t *testing.T) { //nolint:paralleltest // other tests' allocations would count
	requests := func(s Strategy) map[string]Request {
		selected := parsed(t, "zone in (0,1),!spot")
		return map[string]Request{
			"plain":    {Class: "a", Selector: selected, Strategy: s, StickyKey: "k"},
			"idle":     {Class: "a", Selector: selected, Strategy: "IDLE|" + s, StickyKey: "k"},
			"excluded": {Class: "b", Selector: selected, Strategy: s, StickyKey: "k", Anti: []string{"n0", "n1"}, Avoid: []string{"n3"}},
			"full":     {Class: "a", Selector: parsed(t, "host=5"), Strategy: s, StickyKey: "k", Slots: 999},
		}
	}
	for _, s := range Strategies() {
		c := labelled(300)
		for name, q := range requests(s) {
			node := Node{ID: "n7", Classes: []string{"a", "b"}, Capacity: 1000, Labels: map[string]string{"zone": "0", "rack": "7", "host": "7"}}
			once := func() {
				d := c.Place(&q)
				c.Feasible(&q)
				if name != "full" {
					c.Unplace(d)
				}
				node.Load, node.CPU = (node.Load+1)%5, node.CPU+0.001
				c.Set(node)
			}
			for range 5000 { // until the heaps are as large as they get
				once()
			}
			if n := testing.AllocsPerRun(500, once); n != 0 {
				t.Errorf("%s, %s: %v allocations a decision", s, name, n)
			}
		}
	}
}

func TestTheLogIsBounded(t *testing.T) {
	t.Parallel()
	c := NewCluster(1)
	for i := range 3 * logSize {
		c.Set(Node{ID: fmt.Sprint("n", i%10), Classes: []string{"a"}, Capacity: 4, Load: i % 3})
	}
	if len(c.logs[better].ring) != logSize {
		t.Errorf("the log keeps %d, want %d", len(c.logs[better].ring), logSize)
	}
	if d := c.Place(&Request{Class: "a"}); d.Node == "" {
		t.Errorf("nothing placed: %v", d.Reason)
	}
}
