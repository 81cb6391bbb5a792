package dispatcher_test

import (
	"sync"
	"testing"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// Explanations and changes of settings run concurrently with rounds and changes of nodes. This test is for the race
// detector.
func TestRoundsGoOnWhilePeopleAskAndNodesChange(t *testing.T) {
	t.Parallel()
	n := node("n1", 3, "a")
	b := setup(t, n)
	b.submit(t, "a", 300)
	waits := b.submit(t, "b", 1)[0]
	tk := b.get(t, waits)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	ask := func(f func(i int64)) {
		wg.Go(func() {
			for i := int64(2); ; i++ {
				select {
				case <-stop:
					return
				default:
					f(i)
				}
			}
		})
	}
	ask(func(int64) { b.d.Explain(&tk) })
	ask(func(int64) { b.d.Status() })
	ask(func(i int64) {
		b.d.Use(store.Dispatcher{Paused: i%50 == 0, ClassRates: map[string]store.Rate{"a": {PerSecond: 1e6, Burst: 1e6}}})
	})
	ask(func(i int64) {
		n := n
		n.Counter, n.Capacity = i, 3+int(i%2)
		b.fleet.Observe(registry.Snapshot{RunID: "r", Nodes: []registry.Node{n}}, b.clock.Boot(), b.clock.Boot())
	})
	for unfinished := true; unfinished; {
		if _, err := b.d.Round(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		b.clock.Advance(time.Millisecond)
		b.finish(t, fleet.Key{Node: "n1", Incarnation: "n1-1"})
		counts, err := b.store.Counts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		unfinished = counts[task.Finished] < 300
	}
	close(stop)
	wg.Wait()
}
