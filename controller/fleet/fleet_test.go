package fleet_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

const (
	lostTimeout = 8800 * time.Millisecond
	stale       = 3 * time.Second
)

func newFleet() *fleet.Fleet {
	return fleet.New(fleet.Config{LostTimeout: lostTimeout, StaleAfter: stale, Protocol: 1})
}

func beat(id, incarnation string, counter int64) registry.Node {
	return registry.Node{ID: id, Incarnation: incarnation, Counter: counter, Mode: registry.ModeNode, State: registry.Online,
		Classes: []string{"a"}, Capacity: 4, Protocol: 1}
}

func snapshot(run string, nodes ...registry.Node) registry.Snapshot {
	return registry.Snapshot{RunID: run, Nodes: nodes}
}

// look observes at a time, the read taking 10 ms, and lets all nodes know of the leader at once.
func look(f *fleet.Fleet, at time.Duration, s registry.Snapshot) []fleet.Key {
	_, lost := f.Observe(s, at, at+10*time.Millisecond)
	tell(f, at+10*time.Millisecond)
	var keys []fleet.Key
	for _, l := range lost {
		keys = append(keys, l.Key)
	}
	return keys
}

func tell(f *fleet.Fleet, at time.Duration) {
	for _, to := range f.Unannounced() {
		f.Announced([]fleet.Key{to.Key}, at)
	}
}

func claim(k fleet.Key, n int) fleet.Claim {
	return fleet.Claim{Key: k, TaskID: fmt.Sprint("t", n), Attempt: 1, ID: fmt.Sprint("c", n), Class: "a"}
}

var n1 = fleet.Key{Node: "n1", Incarnation: "i1"}

func TestAStandingCounterIsLostAfterTheWholeWait(t *testing.T) {
	t.Parallel()
	f := newFleet()
	look(f, 0, snapshot("r", beat("n1", "i1", 1)))
	f.Reserve([]fleet.Claim{claim(n1, 1)}, 0)
	f.Sent([]string{"c1"}, 0)
	// The first read with this counter ended at 10 ms: the wait begins there, and the read that ends it must have begun
	// after it.
	if lost := look(f, lostTimeout+10*time.Millisecond, snapshot("r", beat("n1", "i1", 1))); len(lost) != 0 {
		t.Fatalf("reassigned on a read that began at the very end of the wait: %v", lost)
	}
	lost := look(f, lostTimeout+11*time.Millisecond, snapshot("r", beat("n1", "i1", 1)))
	if len(lost) != 1 || lost[0] != n1 {
		t.Fatalf("lost %v, want %v", lost, n1)
	}
	if claims := f.Reassign(n1, 0); len(claims) != 1 || claims[0].ID != "c1" {
		t.Fatalf("claims %v, want c1", claims)
	}
	if nodes, _ := f.View(lostTimeout); len(nodes) != 0 {
		t.Fatal("a node that was reassigned takes work")
	}
}

func TestWaitsStartAgain(t *testing.T) {
	t.Parallel()
	end := lostTimeout + time.Second
	half := lostTimeout / 2
	cases := []struct {
		name string
		then func(f *fleet.Fleet)
		lost bool
	}{
		{"nothing happens", func(*fleet.Fleet) {}, true},
		{"the counter moves", func(f *fleet.Fleet) { look(f, half, snapshot("r", beat("n1", "i1", 2))) }, false},
		{"redis restarts", func(f *fleet.Fleet) { look(f, half, snapshot("other", beat("n1", "i1", 1))) }, false},
		{"redis does not answer", func(f *fleet.Fleet) { f.RegistryFailed(); look(f, half, snapshot("r", beat("n1", "i1", 1))) }, false},
		{"the key goes missing", func(f *fleet.Fleet) { look(f, half, snapshot("r")) }, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFleet()
			look(f, 0, snapshot("r", beat("n1", "i1", 1)))
			f.Reserve([]fleet.Claim{claim(n1, 1)}, 0)
			f.Sent([]string{"c1"}, 0)
			c.then(f)
			last := snapshot("r", beat("n1", "i1", 1))
			switch c.name {
			case "the counter moves":
				last = snapshot("r", beat("n1", "i1", 2))
			case "redis restarts":
				last = snapshot("other", beat("n1", "i1", 1))
			case "the key goes missing":
				last = snapshot("r")
			}
			if got := len(look(f, end, last)) == 1; got != c.lost {
				t.Errorf("lost = %v, want %v", got, c.lost)
			}
			if got := len(look(f, end+half+lostTimeout, last)) == 1; !got {
				t.Error("not reassigned after a whole wait without any change")
			}
		})
	}
}

func TestAClaimOfANodeThatWasNeverSeenIsReassigned(t *testing.T) {
	t.Parallel()
	f := newFleet()
	f.BeginCompare()
	f.EndCompare([]fleet.Held{{Claim: claim(n1, 1), Started: true}})
	if lost := look(f, 0, snapshot("r")); len(lost) != 0 {
		t.Fatal("reassigned at the first look")
	}
	if lost := look(f, lostTimeout+time.Second, snapshot("r")); len(lost) != 1 {
		t.Fatal("never reassigned")
	}
}

func TestGoodbyeNeedsNoWait(t *testing.T) {
	t.Parallel()
	f := newFleet()
	look(f, 0, snapshot("r", beat("n1", "i1", 1)))
	f.Reserve([]fleet.Claim{claim(n1, 1)}, 0)
	f.Sent([]string{"c1"}, 0)
	f.Left(n1)
	if lost := look(f, time.Second, snapshot("r")); len(lost) != 1 {
		t.Fatalf("lost %v, want the node that left", lost)
	}
	f.Reassign(n1, 0)
	f.Drop([]string{"c1"})
	if lost := look(f, 2*time.Second, snapshot("r")); len(lost) != 0 {
		t.Fatalf("lost again: %v", lost)
	}
}

func TestWhichNodesTakeWork(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change func(*registry.Node)
		at     time.Duration
		want   bool
	}{
		"online":               {func(*registry.Node) {}, time.Second, true},
		"draining":             {func(n *registry.Node) { n.State = registry.Draining }, time.Second, false},
		"edge":                 {func(n *registry.Node) { n.Mode = registry.ModeEdge }, time.Second, false},
		"no capacity":          {func(n *registry.Node) { n.Capacity = 0 }, time.Second, false},
		"other protocol":       {func(n *registry.Node) { n.Protocol = 2 }, time.Second, false},
		"three beats were due": {func(*registry.Node) {}, stale + 11*time.Millisecond, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet()
			n := beat("n1", "i1", 1)
			c.change(&n)
			look(f, 0, snapshot("r", n))
			nodes, _ := f.View(c.at)
			if got := len(nodes) == 1; got != c.want {
				t.Errorf("takes work: %v, want %v", got, c.want)
			}
		})
	}
}

func TestANodeThatRefusesGetsNothingUntilItsNextHeartbeat(t *testing.T) {
	t.Parallel()
	for _, kind := range []task.Kind{task.ReportRejected, task.ReportReleased} {
		f := newFleet()
		look(f, 0, snapshot("r", beat("n1", "i1", 1)))
		f.Reserve([]fleet.Claim{claim(n1, 1)}, 0)
		f.Reported(n1, &task.Report{ID: "t1", ClaimID: "c1", Kind: kind})
		if nodes, _ := f.View(0); len(nodes) != 0 {
			t.Errorf("%s: it is asked again at once", kind)
		}
		look(f, time.Second, snapshot("r", beat("n1", "i1", 2)))
		if nodes, _ := f.View(time.Second); len(nodes) != 1 {
			t.Errorf("%s: it is not asked after its next heartbeat", kind)
		}
	}
}

// A node that releases what was recalled does not refuse other claims. The report frees exactly the slots of that
// claim, whatever the heartbeat counts.
func TestANodeThatReleasesWhatWasRecalledTakesOthersAtOnce(t *testing.T) {
	t.Parallel()
	for name, counted := range map[string]struct{ running, queued int }{
		"the heartbeat is older than the claims":    {0, 0},
		"the heartbeat counts what is asked back":   {2, 2},
		"the heartbeat is newer than the giving up": {2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet()
			look(f, 0, snapshot("r", beat("n1", "i1", 1)))
			f.Reserve([]fleet.Claim{claim(n1, 1), claim(n1, 2), claim(n1, 3), claim(n1, 4)}, 0)
			f.Sent([]string{"c1", "c2", "c3", "c4"}, 0)
			f.Recalled([]string{"c2", "c3", "c4", "unknown"})
			n := beat("n1", "i1", 2)
			n.Running, n.Queued = counted.running, counted.queued
			look(f, time.Second, snapshot("r", n))
			for i, kind := range []task.Kind{task.ReportStarted, task.ReportStarted, task.ReportReleased, task.ReportReleased} {
				f.Reported(n1, &task.Report{ID: fmt.Sprint("t", i+1), ClaimID: fmt.Sprint("c", i+1), Kind: kind})
			}
			if got := load(t, f, time.Second); got != 2 {
				t.Errorf("load %d, want the two that run", got)
			}
		})
	}
}

func TestDueAreOnlyUnreportedClaimsThatWereSent(t *testing.T) {
	t.Parallel()
	f := newFleet()
	look(f, 0, snapshot("r", beat("n1", "i1", 1)))
	f.Reserve([]fleet.Claim{claim(n1, 1), claim(n1, 2), claim(n1, 3)}, 0)
	f.Sent([]string{"c1", "c2"}, 0) // c3 is still in the dispatcher's hands
	f.Reported(n1, &task.Report{ID: "t2", ClaimID: "c2", Kind: task.ReportStarted})
	due := f.Due(2*time.Second, 2*time.Second, 10)
	if len(due) != 1 || due[0].ID != "c1" {
		t.Fatalf("due %v, want c1", due)
	}
	f.Sent([]string{"c1"}, 2*time.Second)
	if due := f.Due(3*time.Second, 2*time.Second, 10); len(due) != 0 {
		t.Fatalf("due %v right after it was sent again", due)
	}
}

func TestCompareTakesInAndDrops(t *testing.T) {
	t.Parallel()
	f := newFleet()
	look(f, 0, snapshot("r", beat("n1", "i1", 1)))
	f.Reserve([]fleet.Claim{claim(n1, 1), claim(n1, 2), claim(n1, 3)}, 0)
	f.Sent([]string{"c1", "c2"}, 0)
	f.BeginCompare()
	f.Reserve([]fleet.Claim{claim(n1, 4)}, 0)
	f.Sent([]string{"c4"}, 0)
	f.Reported(n1, &task.Report{ID: "t5", ClaimID: "c5", Kind: task.ReportFinished})
	// The store showed c1, c5 (before it ended) and c6; c2 it does not know; c3 is being published; c4 came later.
	f.EndCompare([]fleet.Held{{Claim: claim(n1, 1)}, {Claim: claim(n1, 5)}, {Claim: claim(n1, 6)}})
	if _, claims := f.Size(); claims != 4 {
		t.Fatalf("%d claims, want c1, c3, c4, c6", claims)
	}
	due := f.Due(0, 2*time.Second, 10)
	if len(due) != 1 || due[0].ID != "c6" {
		t.Fatalf("due %v, want c6, which only the store knew", due)
	}
}

func TestPrefetchDepthFollowsAMovingMean(t *testing.T) {
	t.Parallel()
	f := newFleet()
	run := func(ms int64) {
		f.Reserve([]fleet.Claim{claim(n1, 1)}, 0)
		f.Reported(n1, &task.Report{ID: "t1", ClaimID: "c1", Kind: task.ReportFinished, StartedAt: 1, FinishedAt: 1 + ms})
	}
	if f.PrefetchDepth("a") != placement.NoPrefetch || f.AnyShortClass() {
		t.Fatal("a class that has not run is short")
	}
	run(9)
	if f.PrefetchDepth("a") != placement.PrefetchDeep || !f.AnyShortClass() {
		t.Fatal("a run of 9 ms may not queue deep")
	}
	run(50)
	if f.PrefetchDepth("a") != placement.PrefetchOnce || !f.AnyShortClass() {
		t.Fatal("a class of 17 ms may queue deep, or not at all")
	}
	for range 20 {
		run(5000)
	}
	if f.PrefetchDepth("a") != placement.NoPrefetch {
		t.Fatal("a class of 5 s runs is short")
	}
}
