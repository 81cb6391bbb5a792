package fleet_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

// TestPlacementIsToldOfNoInvalidHeartbeat: whatever a heartbeat says, placement is told of no node whose
// heartbeat is invalid, even if it was valid before. Figures of the others are in the ranges of placement.Node.
func TestPlacementIsToldOfNoInvalidHeartbeat(t *testing.T) {
	t.Parallel()
	number := rapid.OneOf(rapid.Int64Range(1, 8), rapid.SampledFrom([]int64{-1, 0, task.MaxSlots, task.MaxSlots + 1, 1 << 31, 1 << 60, 1<<60 + 1, math.MinInt64, math.MaxInt64}))
	fraction := rapid.SampledFrom([]float64{0, 0.5, 7, 1e6, -0.1, math.NaN(), math.Inf(1), math.Inf(-1)})
	classes := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b"}), rapid.IntRange(-1, task.MaxSlots+1), 0, 2)
	fields := []func(*rapid.T, *registry.Node){
		func(t *rapid.T, n *registry.Node) { n.Capacity = int(number.Draw(t, "capacity")) },
		func(t *rapid.T, n *registry.Node) { n.Prefetch = int(number.Draw(t, "prefetch")) },
		func(t *rapid.T, n *registry.Node) { n.Running = int(number.Draw(t, "running")) },
		func(t *rapid.T, n *registry.Node) { n.Queued = int(number.Draw(t, "queued")) },
		func(t *rapid.T, n *registry.Node) { n.SlotsRunning = int(number.Draw(t, "slots running")) },
		func(t *rapid.T, n *registry.Node) { n.SlotsQueued = int(number.Draw(t, "slots queued")) },
		func(t *rapid.T, n *registry.Node) { n.Term, n.RoundRobinCount = 3, number.Draw(t, "turn") },
		func(t *rapid.T, n *registry.Node) {
			n.CPU, n.CPUs = fraction.Draw(t, "cpu"), int(number.Draw(t, "cpus"))
		},
		func(t *rapid.T, n *registry.Node) {
			n.Memory, n.MemoryTotal = number.Draw(t, "memory"), number.Draw(t, "memory in all")
		},
		func(t *rapid.T, n *registry.Node) { n.CapacityByClass = classes.Draw(t, "capacity by class") },
		func(t *rapid.T, n *registry.Node) { n.RunningByClass = classes.Draw(t, "running by class") },
	}
	rapid.Check(t, func(t *rapid.T) {
		f := fleet.New(fleet.Config{LostTimeout: lostTimeout, StaleAfter: stale, Protocol: 1, Term: 3})
		told := make(mirror)
		now := time.Hour
		for i := range rapid.IntRange(1, 8).Draw(t, "heartbeats") {
			now += time.Duration(rapid.IntRange(0, 1500).Draw(t, "ms")) * time.Millisecond
			n := beat("n1", "i1", int64(i+1))
			for range rapid.IntRange(0, 3).Draw(t, "odd fields") {
				rapid.SampledFrom(fields).Draw(t, "field")(t, &n)
			}
			f.Observe(snapshot("r", n), now, now)
			f.Changes(now, told)
			valid := registry.Validate(&n, 0) == "" && n.Capacity > 0
			if _, takes := told["n1"]; takes != valid {
				t.Fatalf("told of it: %v, valid: %v (%q)", takes, valid, registry.Validate(&n, 0))
			}
			c := claim(n1, i)
			c.Slots = rapid.SampledFrom([]int{0, 1, 3, task.MaxSlots}).Draw(t, "slots")
			switch rapid.IntRange(0, 3).Draw(t, "claim") {
			case 0:
				f.Reserve([]fleet.Claim{c}, now)
			case 1:
				f.Reserve([]fleet.Claim{c}, now)
				f.Drop([]string{c.ID})
			case 2:
				f.Reserve([]fleet.Claim{c}, now)
				f.Reported(n1, &task.Report{ID: c.TaskID, ClaimID: c.ID, Kind: task.ReportFinished})
			}
			f.Changes(now, told)
			for _, n := range told {
				if what := outOfRange(n); what != "" {
					t.Fatalf("%s of %+v", what, n)
				}
			}
		}
	})
}

// outOfRange names a figure that placement does not take.
func outOfRange(n placement.Node) string {
	within := map[string]bool{
		"id":       n.ID != "",
		"capacity": n.Capacity >= 1 && n.Capacity <= task.MaxSlots,
		"prefetch": n.Prefetch >= 0 && n.Prefetch <= task.MaxSlots,
		"load":     n.Load >= 0, "fresh": n.Fresh >= 0, "served": n.Served >= 0, "age": n.Age >= 0,
		"cpu":    !math.IsNaN(n.CPU) && !math.IsInf(n.CPU, 0),
		"memory": !math.IsNaN(n.Memory) && !math.IsInf(n.Memory, 0),
		"labels": len(n.Labels) <= task.MaxLabels, "classes": len(n.Classes) <= registry.MaxClasses,
	}
	for class, capacity := range n.ByClass {
		within["class "+class] = capacity >= 0 && capacity <= task.MaxSlots && n.LoadByClass[class] >= 0
	}
	for what, ok := range within {
		if !ok {
			return what
		}
	}
	return ""
}
