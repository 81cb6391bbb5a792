package dispatcher_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/pkg/task"
)

// tooBig makes a task too big to ever run.
func tooBig(t *task.Task) { t.Attachments = []byte(`"` + strings.Repeat("x", 1024) + `"`) }

// rounds makes rounds until there is no more to look at, and returns how many tasks they placed.
func (b *bundle) rounds(t *testing.T, list bool) int {
	t.Helper()
	placed := 0
	for range 100 {
		out, err := b.d.Round(t.Context(), list)
		if err != nil {
			t.Fatal(err)
		}
		if placed += out.Placed; !out.More {
			return placed
		}
		list = false
	}
	t.Fatal("100 rounds, and still there is more")
	return 0
}

// One call of the store has at most store.MaxBatch changes. The rest follow in the next call.
func TestMoreTasksEndThanOneCallOfTheStoreCarries(t *testing.T) {
	t.Parallel()
	const queues, perQueue = 700, 3
	b := setup(t, node("n1", 8, "a"))
	for i := range queues {
		b.submit(t, "a", perQueue, tooBig, namespace(fmt.Sprint(i)), named(fmt.Sprint(i, "-")))
	}
	b.rounds(t, true)
	if counts, err := b.store.Counts(t.Context()); err != nil || counts[task.Failed] != queues*perQueue {
		t.Errorf("%v %v, want all of them failed", counts, err)
	}
}

// Tasks at the head of a queue that can never run, however many, do not hide one that can, not even for an interval.
func TestTasksThatCanNeverRunDoNotHideTheOneBehindThem(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 1, "a"))
	b.submit(t, "a", 3000, tooBig, named("a"))
	id := b.submit(t, "a", 1, func(t *task.Task) { t.CreateDateTime = 1_000_000 })[0]
	if placed := b.rounds(t, true); placed != 1 || b.get(t, id).LifecycleStatus != task.Assigning {
		t.Errorf("%d placed, it is %s", placed, b.get(t, id).LifecycleStatus)
	}
}

// A task is not sent after its deadline, not even if somebody retries it: the node could only end it.
func TestATaskIsNotPlacedAfterItsDeadline(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 8, "a"))
	now := b.clock.Now().UnixMilli()
	ids := b.submit(t, "a", 2, func(t *task.Task) {
		if t.DeadlineDateTime = now; t.CreateDateTime > 1000 {
			t.DeadlineDateTime++
		}
	})
	late, soon := ids[0], ids[1]
	if placed := b.rounds(t, true); placed != 1 || b.get(t, soon).LifecycleStatus != task.Assigning {
		t.Errorf("%d placed; the other one is %s", placed, b.get(t, soon).LifecycleStatus)
	}
	if got := b.get(t, late); got.LifecycleStatus != task.Failed || !strings.Contains(got.Error, "deadline") || got.Attempt != 0 {
		t.Errorf("%+v", got)
	}
}

// Only the publish after the claim shows that a task fits into no event. The task ends with that reason, and delays
// neither other tasks nor its node.
func TestATaskThatFitsIntoNoEventFails(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 8, "a"))
	ids := b.submit(t, "a", 3)
	b.wire.never = map[string]error{ids[1]: errors.New("900 bytes too long")}
	out, err := b.d.Round(t.Context(), true)
	if err != nil || out.Placed != 2 || out.Failed != 0 {
		t.Fatalf("%+v %v", out, err)
	}
	if got := b.get(t, ids[1]); got.LifecycleStatus != task.Failed || !strings.Contains(got.Error, "900 bytes too long") || got.Executor != "" {
		t.Errorf("%+v", got)
	}
	if b.claims() != 2 || b.wire.total() != 2 {
		t.Errorf("%d claims are held, %d tasks sent", b.claims(), b.wire.total())
	}
	b.submit(t, "a", 1, named("next"))
	if out, err := b.d.Round(t.Context(), true); err != nil || out.Placed != 1 {
		t.Errorf("%+v %v: its node is excluded", out, err)
	}
}
