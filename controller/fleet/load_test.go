package fleet_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/pkg/task"
)

func load(t *testing.T, f *fleet.Fleet, now time.Duration) int {
	t.Helper()
	nodes, _ := f.View(now)
	if len(nodes) != 1 {
		t.Fatalf("%d nodes take work, want 1", len(nodes))
	}
	return nodes[0].Load
}

func TestLoadCountsWhatWasSentBeforeAHeartbeatShowsIt(t *testing.T) {
	t.Parallel()
	f := newFleet()
	look(f, 0, snapshot("r", beat("n1", "i1", 1)))
	f.Reserve([]fleet.Claim{claim(n1, 1), claim(n1, 2)}, 0)
	if got := load(t, f, 0); got != 2 {
		t.Fatalf("load %d after two claims, want 2", got)
	}
	f.Reported(n1, &task.Report{ID: "t1", ClaimID: "c1", Kind: task.ReportStarted})
	if got := load(t, f, 0); got != 2 {
		t.Fatalf("load %d after a start, want 2", got)
	}
	if !f.Reported(n1, &task.Report{ID: "t1", ClaimID: "c1", Kind: task.ReportFinished}) {
		t.Fatal("an end made no room")
	}
	if got := load(t, f, 0); got != 1 {
		t.Fatalf("load %d after an end, want 1", got)
	}
}

func TestLoadIsCorrectedUpwardsByTheHeartbeat(t *testing.T) {
	t.Parallel()
	f := newFleet()
	n := beat("n1", "i1", 1)
	n.Running = 3 // of an earlier leader
	look(f, 0, snapshot("r", n))
	if got := load(t, f, 0); got != 3 {
		t.Fatalf("load %d, want the 3 that the node says", got)
	}
	f.Reported(n1, &task.Report{ID: "x", ClaimID: "unknown", Kind: task.ReportFinished})
	if got := load(t, f, 0); got != 2 {
		t.Fatalf("load %d after an end that the heartbeat does not show yet, want 2", got)
	}
}

func TestNothingIsPlacedBesideATaskThatMustBeAlone(t *testing.T) {
	t.Parallel()
	f := newFleet()
	look(f, 0, snapshot("r", beat("n1", "i1", 1)))
	c := claim(n1, 1)
	c.Alone = true
	f.Reserve([]fleet.Claim{c}, 0)
	if got := load(t, f, 0); got != 4 {
		t.Errorf("load %d, want the capacity", got)
	}
	f.Reported(n1, &task.Report{ID: "t1", ClaimID: "c1", Kind: task.ReportFinished})
	if got := load(t, f, 0); got != 0 {
		t.Errorf("load %d after its end", got)
	}
}

// The load of a node is the claims made minus the ends, in whatever order they come. It is never negative, and
// no claims are left in the end.
func TestLoadOverRandomHistories(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := newFleet()
		_, _ = f.Observe(snapshot("r", beat("n1", "i1", 1)), 0, 0)
		held := make(map[string]fleet.Claim)
		next := 0
		pickHeld := func(t *rapid.T) (fleet.Claim, bool) {
			if len(held) == 0 {
				return fleet.Claim{}, false
			}
			ids := make([]string, 0, len(held))
			for i := range next {
				if id := fmt.Sprint("c", i); held[id].ID != "" {
					ids = append(ids, id)
				}
			}
			return held[rapid.SampledFrom(ids).Draw(t, "claim")], true
		}
		t.Repeat(map[string]func(*rapid.T){
			"reserve": func(*rapid.T) {
				c := claim(n1, next)
				next++
				held[c.ID] = c
				f.Reserve([]fleet.Claim{c}, 0)
			},
			"sent": func(t *rapid.T) {
				if c, ok := pickHeld(t); ok {
					f.Sent([]string{c.ID}, 0)
				}
			},
			"end": func(t *rapid.T) {
				if c, ok := pickHeld(t); ok {
					delete(held, c.ID)
					r := task.Report{ID: c.TaskID, ClaimID: c.ID, Kind: task.ReportFinished}
					f.Reported(n1, &r)
					f.Reported(n1, &r) // a repeated report does no harm
				}
			},
			"drop": func(t *rapid.T) {
				if c, ok := pickHeld(t); ok {
					delete(held, c.ID)
					f.Drop([]string{c.ID, c.ID})
				}
			},
			"compare": func(*rapid.T) {
				f.BeginCompare()
				var list []fleet.Held
				for _, c := range held {
					list = append(list, fleet.Held{Claim: c})
				}
				f.EndCompare(list)
			},
			"": func(t *rapid.T) {
				nodes, _ := f.View(0)
				if nodes[0].Load != len(held) {
					t.Fatalf("load %d, held %d", nodes[0].Load, len(held))
				}
			},
		})
	})
}
