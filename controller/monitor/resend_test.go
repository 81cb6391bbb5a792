package monitor_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestS3_AClaimThatWasNeverPublishedIsSent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tk := b.assigned(t, "t", false) // the leader died between the claim and the publish; this one does not know of it
	b.clock.Advance(5 * time.Second)
	b.beat(t)
	b.round(t)
	if !slices.Equal(b.wire.tasks, []string{tk.ClaimID}) {
		t.Fatalf("sent %v, want the same claim %s", b.wire.tasks, tk.ClaimID)
	}
	b.round(t)
	if len(b.wire.tasks) != 1 {
		t.Error("sent again at once")
	}
	b.clock.Advance(resend)
	b.beat(t)
	b.round(t)
	if len(b.wire.tasks) != 2 {
		t.Errorf("sent %d times after another %s without a word, want 2", len(b.wire.tasks), resend)
	}
	b.fleet.Reported(n1, &task.Report{ID: "t", ClaimID: tk.ClaimID, Kind: task.ReportStarted})
	b.clock.Advance(resend)
	b.beat(t)
	b.round(t)
	if len(b.wire.tasks) != 2 {
		t.Error("sent again though the node has reported it")
	}
}

func TestAClaimThatWasNeverWrittenIsForgotten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.store.Create(t.Context(), []task.Task{{ID: "t", ClassName: "a", Mode: task.ModePassive, LifecycleStatus: task.Created}}); err != nil {
		t.Fatal(err)
	}
	b.fleet.Reserve([]fleet.Claim{{Key: n1, TaskID: "t", Attempt: 1, ID: "lost"}}, b.clock.Boot())
	b.fleet.Sent([]string{"lost"}, b.clock.Boot())
	b.clock.Advance(resend)
	b.beat(t)
	b.round(t)
	if _, claims := b.fleet.Size(); claims != 0 || len(b.wire.tasks) != 0 || b.capacity == 0 {
		t.Fatalf("%d claims held, sent %v", claims, b.wire.tasks)
	}
}

// A claim that fits into no event cannot be sent again: that is neither a failure of the round nor the silence of its
// node.
func TestANodeIsNotUnresponsiveForWhatCannotBeSent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.assigned(t, "t", true)
	b.wire.never = errors.New("too large")
	for range 10 {
		b.clock.Advance(resend)
		b.beat(t)
		b.round(t)
	}
	if c := b.fleet.AllCordoned(b.clock.Boot()); len(c) > 0 || !b.takes() {
		t.Errorf("its node takes no work: %+v", c)
	}
	if b.get(t, "t").LifecycleStatus != task.Assigning {
		t.Error("it is taken from its node, which may have it")
	}
}

func TestClaimsAreResentOnlyWhenIngestHasCaughtUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.assigned(t, "t", true)
	b.clock.Advance(resend)
	b.beat(t)
	b.tide.reached = false
	b.round(t)
	if len(b.wire.tasks) != 0 {
		t.Fatal("sent again though a report may be under way")
	}
	b.tide.reached = true
	b.round(t)
	if len(b.wire.tasks) != 1 {
		t.Fatal("not sent again")
	}
}
