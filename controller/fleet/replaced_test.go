package fleet_test

import (
	"testing"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/pkg/task"
)

// An incarnation that its successor replaces is reassigned at once, whether or not its process crashed; it takes no
// work any more.
func TestAReplacedIncarnationNeedsNoWait(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		crashed bool
		want    task.Loss
	}{"crashed": {true, task.LossDied}, "ended": {false, task.LossLeft}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet()
			look(f, 0, snapshot("r", beat("n1", "i1", 1)))
			hold(f)
			next := beat("n1", "i2", 1)
			next.Replaces, next.Crashed = "i1", c.crashed
			_, lost := f.Observe(snapshot("r", next), time.Second, time.Second)
			if len(lost) != 1 || lost[0] != (fleet.Lost{Key: n1, Loss: c.want}) {
				t.Fatalf("lost %+v", lost)
			}
			if claims := f.Reassign(n1, 0); len(claims) != 1 {
				t.Fatalf("claims %v", claims)
			}
			if nodes, _ := f.View(time.Second); len(nodes) != 1 {
				t.Errorf("%d nodes take work, want the successor", len(nodes))
			}
			f.Drop([]string{"c1"})
			if _, lost := f.Observe(snapshot("r", next), 2*time.Second, 2*time.Second); len(lost) != 0 {
				t.Errorf("lost again: %v", lost)
			}
			// What a late comparison with the store shows of it is reassigned, too.
			f.BeginCompare()
			f.EndCompare([]fleet.Held{{Claim: claim(n1, 2)}})
			if _, lost := f.Observe(snapshot("r", next), 3*time.Second, 3*time.Second); len(lost) != 1 || lost[0].Key != n1 {
				t.Errorf("lost %v", lost)
			}
		})
	}
}

// A heartbeat that replaces an incarnation of another node, or one that does not exist, replaces nothing.
func TestOnlyTheSameNodeIsReplaced(t *testing.T) {
	t.Parallel()
	f := newFleet()
	look(f, 0, snapshot("r", beat("n1", "i1", 1)))
	hold(f)
	other := beat("n2", "i2", 1)
	other.Replaces, other.Crashed = "i1", true
	if _, lost := f.Observe(snapshot("r", beat("n1", "i1", 2), other), time.Second, time.Second); len(lost) != 0 {
		t.Errorf("lost %v", lost)
	}
}
