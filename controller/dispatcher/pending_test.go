package dispatcher_test

import (
	"fmt"
	"testing"

	"github.com/skalds-go/skalds/controller/dispatcher"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/store"
)

// A queue that the leader has not looked at is not explained as ready.
func TestQueuesThatTheLeaderHasNotLookedAtAreNotSaidToBeReady(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 1, "a"))
	b.submit(t, "missing", 2)
	check := func(want dispatcher.Reason) {
		t.Helper()
		list, err := b.d.Pending(t.Context())
		if err != nil || len(list) != 1 || list[0].Reason != want || list[0].Tasks != 2 || list[0].Text == "" {
			t.Errorf("%+v %v, want %s", list, err, want)
		}
	}
	check(dispatcher.NotLookedAt)
	b.d.Use(store.Dispatcher{Version: 1, Paused: true})
	check(dispatcher.DispatcherPaused)
	b.d.Use(store.Dispatcher{Version: 2})
	b.round(t)
	check(placement.NoNodeForClass)
}

// A round reads from a limited number of new queues. The others are listed, but not looked at.
func TestTheStatusCountsQueuesThatAreNotLookedAt(t *testing.T) {
	t.Parallel()
	const queues, heads = 1003, 1000
	b := setup(t, node("n1", 1, "a"))
	for i := range queues {
		b.submit(t, "missing", 1, namespace(fmt.Sprint(i)), named(fmt.Sprint(i)))
	}
	b.round(t)
	got := b.d.Status().Waiting
	if got[dispatcher.NotLookedAt] != queues-heads || got[placement.NoNodeForClass] != heads {
		t.Errorf("%v", got)
	}
}
