package dispatcher_test

import (
	"fmt"
	"testing"

	"github.com/skalds-go/skalds/pkg/task"
)

// A queue that can run is found within one listing, however many others wait and whatever their names. No more queues
// are known than the limit.
func TestMoreQueuesThanCanBeKnownHideNothing(t *testing.T) {
	t.Parallel()
	const known = 50
	b := setup(t, node("n1", 8, "a", "zz"))
	b.d.SetMaxQueues(known)
	for i := range 7 * known {
		b.submit(t, fmt.Sprintf("missing%03d", i), 1)
	}
	for _, class := range []string{"a", "zz"} { // before and behind all others
		for range 3 {
			id := b.submit(t, class, 1)[0]
			if placed := b.rounds(t, true); placed != 1 || b.get(t, id).LifecycleStatus != task.Assigning {
				t.Fatalf("%d placed, %s is %s", placed, id, b.get(t, id).LifecycleStatus)
			}
			if n := b.d.Status().Queues; n > known {
				t.Fatalf("%d queues are known", n)
			}
			b.end(t, id)
			if ok, err := b.store.Purge(t.Context(), id); err != nil || !ok {
				t.Fatal(ok, err)
			}
		}
	}
}

// If all known queues can run, those beyond the limit follow when there is room for them.
func TestQueuesBeyondThoseThatCanBeKnownComeInTheirTurn(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 4, "a"))
	b.d.SetMaxQueues(10)
	const queues = 40
	for i := range queues {
		b.submit(t, "a", 1, namespace(fmt.Sprintf("%02d", i)), named(fmt.Sprintf("%02d", i)))
	}
	placed := 0
	for range 2 * queues {
		placed += b.rounds(t, true)
		for _, id := range b.running(t) {
			b.end(t, id)
		}
	}
	if placed != queues {
		t.Errorf("%d of %d placed", placed, queues)
	}
}

// A listing of several rounds has already passed the name of a new queue. Another listing follows by itself.
func TestAQueueThatComesBehindAListingsBackIsListed(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 8, "a"))
	for i := range 10_500 {
		b.submit(t, fmt.Sprintf("missing%05d", i), 1)
	}
	if out := b.round(t); !out.More {
		t.Fatalf("%+v, want a listing of several rounds", out)
	}
	id := b.submit(t, "a", 1)[0]
	if placed := b.rounds(t, true); placed != 1 {
		t.Errorf("%d placed, it is %s", placed, b.get(t, id).LifecycleStatus)
	}
}

// Between rounds a dispatcher knows queues, not tasks.
func TestNoTaskIsHeldBetweenRounds(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 2, "a"))
	b.submit(t, "a", 100)
	b.submit(t, "b", 100)
	b.round(t)
	if n := b.d.Holds(); n != 0 {
		t.Errorf("%d tasks", n)
	}
}
