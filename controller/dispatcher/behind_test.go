package dispatcher_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/skalds-go/skalds/controller/dispatcher"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// An explanation does not flicker while a resource becomes free bit by bit. A task is never explained as ready if the
// next round does not place it.
func TestNoTaskIsSaidToBeReadyThatTheNextRoundLeavesWaiting(t *testing.T) {
	t.Parallel()
	class := store.Dispatcher{Version: 1, ClassRates: map[string]store.Rate{"a": {PerSecond: 20, Burst: 1}}}
	for name, tt := range map[string]struct {
		set    store.Dispatcher
		slots  int
		queues int
		want   dispatcher.Reason
		change func(*task.Task)
	}{
		"the rate of a class":              {class, 1000, 1, dispatcher.ClassRateLimited, nil},
		"the rate of a class, many queues": {class, 1000, 5, dispatcher.ClassRateLimited, nil},
		"the rate of all": {
			store.Dispatcher{Version: 1, Rate: &store.Rate{PerSecond: 20, Burst: 1}}, 1000, 3, dispatcher.RateLimited, nil,
		},
		"slots":             {store.Dispatcher{}, 1, 1, "NODES_FULL", nil},
		"slots, two queues": {store.Dispatcher{}, 1, 2, "NODES_FULL", nil},
		"a concurrency key": {store.Dispatcher{}, 1000, 1, dispatcher.KeyBusy, key("k", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, node("n1", tt.slots, "a"))
			b.d.Use(tt.set)
			waiting := map[string]bool{}
			for i := range tt.queues {
				for _, id := range b.submit(t, "a", 12, namespace(fmt.Sprint(i)), named(fmt.Sprint(i)), func(tk *task.Task) {
					if tt.change != nil {
						tt.change(tk)
					}
				}) {
					waiting[fmt.Sprint(i)+id] = true
				}
			}
			b.round(t)
			said := map[dispatcher.Reason]int{}
			for range 60 {
				held := b.running(t)
				for _, id := range held {
					delete(waiting, id)
				}
				if len(held) > 0 && (tt.slots == 1 || tt.change != nil) {
					b.end(t, held[0])
				}
				b.clock.Advance(17 * time.Millisecond)
				ready := map[string]bool{}
				for id := range waiting {
					tk := b.get(t, id)
					e := b.d.Explain(&tk)
					said[e.Reason]++
					ready[id] = e.Reason == dispatcher.Ready
				}
				list, err := b.d.Pending(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, g := range list {
					if g.Reason == dispatcher.Ready && g.Tasks > 1 {
						t.Errorf("%d tasks are said to be ready", g.Tasks)
					}
				}
				if _, err := b.d.Round(t.Context(), false); err != nil {
					t.Fatal(err)
				}
				for id := range waiting {
					if tk := b.get(t, id); ready[id] && tk.LifecycleStatus == task.Created {
						t.Fatalf("%s was said to be ready, and waits", id)
					}
				}
			}
			if said[tt.want] == 0 || len(said) > 2 {
				t.Errorf("the reasons were %v, want %s", said, tt.want)
			}
		})
	}
}
