package fleet_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

// mirror is the nodes that take work, as Changes has told of them.
type mirror map[string]placement.Node

var _ fleet.Placer = mirror(nil)

func (m mirror) Set(n placement.Node) {
	n.LoadByClass = maps.Clone(n.LoadByClass)
	m[n.ID] = n
}
func (m mirror) Remove(id string)      { delete(m, id) }
func (m mirror) Recount(string, int64) {}

// said formats a node without what Changes does not repeat: its count of tasks, and the growing age of its readings.
func said(n placement.Node) string {
	n.Age, n.Served = 0, 0
	return fmt.Sprintf("%+v", n)
}

// TestChangesAddUpToTheView: over random histories, what Changes has told one by one is what View says as a whole.
func TestChangesAddUpToTheView(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := fleet.New(fleet.Config{LostTimeout: lostTimeout, StaleAfter: stale, Protocol: 1, Term: 3})
		told := make(mirror)
		now := time.Hour
		counters := map[fleet.Key]int64{}
		var claims []fleet.Claim
		next := 0
		key := func(t *rapid.T) fleet.Key {
			return fleet.Key{Node: fmt.Sprint("n", rapid.IntRange(1, 3).Draw(t, "node")), Incarnation: fmt.Sprint("i", rapid.IntRange(1, 2).Draw(t, "incarnation"))}
		}
		node := func(t *rapid.T, k fleet.Key) registry.Node {
			if rapid.IntRange(0, 3).Draw(t, "beats") > 0 {
				counters[k]++
			}
			n := beat(k.Node, k.Incarnation, max(counters[k], 1))
			n.Running, n.Queued = rapid.IntRange(-1, 4).Draw(t, "running"), rapid.IntRange(0, 1).Draw(t, "queued")
			n.State = rapid.SampledFrom([]registry.State{registry.Online, registry.Online, registry.Online, registry.Draining}).Draw(t, "state")
			n.Capacity = rapid.SampledFrom([]int{4, 4, 4, 0, 8}).Draw(t, "capacity")
			n.Term, n.RoundRobinCount = rapid.SampledFrom([]int64{0, 3}).Draw(t, "term"), rapid.Int64Range(0, 9).Draw(t, "turn")
			n.CPU, n.CPUs = rapid.Float64Range(0, 2).Draw(t, "cpu"), 2
			return n
		}
		some := func(t *rapid.T) (fleet.Claim, bool) {
			if len(claims) == 0 {
				return fleet.Claim{}, false
			}
			return rapid.SampledFrom(claims).Draw(t, "claim"), true
		}
		t.Repeat(map[string]func(*rapid.T){
			"time": func(t *rapid.T) {
				now += time.Duration(rapid.SampledFrom([]int{1, 250, 1000, 3001, 20_000}).Draw(t, "ms")) * time.Millisecond
			},
			"observe": func(t *rapid.T) {
				var nodes []registry.Node
				for i := range 3 {
					if in := rapid.IntRange(0, 3).Draw(t, "present"); in > 0 { // the registry knows one incarnation of each
						n := node(t, fleet.Key{Node: fmt.Sprint("n", i+1), Incarnation: fmt.Sprint("i", 1+in/3)})
						if in == 3 && rapid.Bool().Draw(t, "replaces") {
							n.Replaces, n.Crashed = "i1", true
						}
						nodes = append(nodes, n)
					}
				}
				f.Observe(snapshot(rapid.SampledFrom([]string{"r", "r", "r", "s"}).Draw(t, "run"), nodes...), now, now)
			},
			"heard":    func(t *rapid.T) { n := node(t, key(t)); f.ObserveKafka(&n, now) },
			"announce": func(*rapid.T) { tell(f, now) },
			"left":     func(t *rapid.T) { f.Left(key(t)) },
			"give":     func(t *rapid.T) { f.Reassign(key(t), now) },
			"evict":    func(t *rapid.T) { f.Evicted(key(t)) },
			"cordon":   func(t *rapid.T) { f.Cordon(key(t), "unresponsive", now) },
			"reach":    func(t *rapid.T) { f.Reachable(key(t)) },
			"unreach":  func(t *rapid.T) { f.Unreachable(key(t), now) },
			"drain": func(t *rapid.T) {
				f.SetDraining(rapid.SampledFrom([][]string{nil, {"n1"}, {"n2", "n3"}}).Draw(t, "draining"))
			},
			"reserve": func(t *rapid.T) {
				c := claim(key(t), next)
				c.Slots, c.Alone = rapid.IntRange(0, 2).Draw(t, "slots"), rapid.IntRange(0, 5).Draw(t, "alone") == 0
				next++
				claims = append(claims, c)
				f.Reserve([]fleet.Claim{c}, now)
			},
			"ask back": func(t *rapid.T) {
				if c, ok := some(t); ok {
					f.Recalled([]string{c.ID})
				}
			},
			"drop": func(t *rapid.T) {
				if c, ok := some(t); ok {
					f.Drop([]string{c.ID})
				}
			},
			"report": func(t *rapid.T) {
				if c, ok := some(t); ok {
					kind := rapid.SampledFrom([]task.Kind{task.ReportStarted, task.ReportFinished, task.ReportRejected, task.ReportReleased}).Draw(t, "kind")
					f.Reported(c.Key, &task.Report{ID: c.TaskID, ClaimID: c.ID, Kind: kind})
				}
			},
			"compare": func(t *rapid.T) {
				f.BeginCompare()
				var held []fleet.Held
				for _, c := range claims {
					if rapid.Bool().Draw(t, "held") {
						held = append(held, fleet.Held{Claim: c, Started: rapid.Bool().Draw(t, "started")})
					}
				}
				f.EndCompare(held)
			},
			"": func(t *rapid.T) {
				f.Changes(now, told)
				view, _ := f.View(now)
				want := make(map[string][]string) // two incarnations of a node may take work at once, if one is heard over Kafka only
				for _, n := range view {
					want[n.ID] = append(want[n.ID], said(n))
				}
				for id, n := range told {
					if !slices.Contains(want[id], said(n)) {
						t.Fatalf("%s was told as %s, and is %v", id, said(n), want[id])
					}
				}
				for id := range want {
					if _, ok := told[id]; !ok {
						t.Fatalf("%s takes work, and was not told", id)
					}
					if to, ok := f.AssignTarget(id); !ok || to.Node != id {
						t.Fatalf("%s takes work, and its events go to %+v, %v", id, to, ok)
					}
				}
			},
		})
	})
}
