package dispatcher_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestC14_TasksForAMissingClassHideNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 8, "a"))
	b.submit(t, "missing", 12_000, func(t *task.Task) { t.Priority = 9 })
	id := b.submit(t, "a", 1)[0]
	for range 3 { // ten pages a round
		if _, err := b.d.Round(t.Context(), true); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.get(t, id); got.LifecycleStatus != task.Assigning {
		t.Fatalf("the one task that can run is %s behind 12,000 that cannot", got.LifecycleStatus)
	}
	if n := b.d.Status().Waiting[placement.NoNodeForClass]; n == 0 {
		t.Error("no reason for those that wait")
	}
}

func TestC13_WithoutNodesNothingIsWritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.submit(t, "a", 500)
	for range 50 {
		if _, err := b.d.Round(t.Context(), true); err != nil {
			t.Fatal(err)
		}
	}
	if b.store.applies != 0 {
		t.Errorf("%d writes, want none", b.store.applies)
	}
	if b.store.pages != 1 {
		t.Errorf("%d pages read in 50 rounds, want one, to know what the tasks ask for", b.store.pages)
	}
	if n := b.d.Status().Waiting[placement.NoEligibleNode]; n != 1 {
		t.Errorf("%d queues have the reason %s, want the one there is", n, placement.NoEligibleNode)
	}
}

func TestAFullFleetIsNotAskedFor(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 2, "a"))
	b.submit(t, "a", 10)
	if out, err := b.d.Round(t.Context(), true); err != nil || out.Placed != 2 || out.More {
		t.Fatalf("%+v %v", out, err)
	}
	pages := b.store.pages
	if _, err := b.d.Round(t.Context(), true); err != nil || b.store.pages != pages {
		t.Fatalf("read %d pages without room", b.store.pages-pages)
	}
	k := fleet.Key{Node: "n1", Incarnation: "n1-1"}
	first := b.get(t, "a-000000")
	b.fleet.Reported(k, &task.Report{ID: first.ID, ClaimID: first.ClaimID, Kind: task.ReportFinished})
	if out, err := b.d.Round(t.Context(), true); err != nil || out.Placed != 1 {
		t.Fatalf("%+v %v, want the slot that came free", out, err)
	}
}

func TestTasksThatMustNotRunEnd(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 10, "a"))
	big := b.submit(t, "a", 1, func(t *task.Task) {
		t.ID, t.Attachments = "big", json.RawMessage(`"`+strings.Repeat("x", 2000)+`"`)
	})
	_ = big
	b.submit(t, "a", 1, func(t *task.Task) { t.ID, t.Desired = "unwanted", task.DesiredCancelled })
	b.submit(t, "a", 1, func(t *task.Task) { t.ID, t.Desired = "held back", task.DesiredPaused })
	b.submit(t, "a", 1, func(t *task.Task) { t.ID, t.ClassName = "nameless", "" })
	if _, err := b.d.Round(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]task.Status{"big": task.Failed, "unwanted": task.Cancelled, "held back": task.Paused, "nameless": task.Failed} {
		if got := b.get(t, id); got.LifecycleStatus != want || want == task.Failed && got.Error == "" {
			t.Errorf("%s is %s (%q), want %s with a reason", id, got.LifecycleStatus, got.Error, want)
		}
	}
	if b.wire.total() != 0 {
		t.Error("one of them was published")
	}
}

func TestS6_AClassGoesOnlyWhereItRuns(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 100, "a"), node("n2", 100, "b"))
	b.submit(t, "a", 20)
	b.submit(t, "b", 20)
	if _, err := b.d.Round(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	for n, ids := range b.wire.sent {
		for _, id := range ids {
			if want := map[string]string{"n1": "a-", "n2": "b-"}[n]; !strings.HasPrefix(id, want) {
				t.Errorf("%s went to %s", id, n)
			}
		}
	}
	if b.wire.total() != 40 {
		t.Errorf("%d published, want 40", b.wire.total())
	}
}

func TestTheStrategyChangesWhileItRuns(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 10, "a"), node("n2", 90, "a"))
	b.submit(t, "a", 20)
	if _, err := b.d.Round(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if got := len(b.wire.sent["n1"]); got != 2 {
		t.Fatalf("LEAST_TASKS gave n1 %d of 20, want 2 (a tenth of the capacity)", got)
	}
	b.d.Use(store.Dispatcher{Strategy: "ROUND_ROBIN"})
	b.submit(t, "b", 0)
	b.submit(t, "a", 8, func(t *task.Task) { t.ID = "second-" + t.ID })
	if _, err := b.d.Round(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if got := len(b.wire.sent["n1"]); got != 10 {
		t.Fatalf("ROUND_ROBIN gave n1 %d of 8 more, want all: n2 was given 16 more before", got-2)
	}
	if s := b.d.Status(); s.Strategy != placement.RoundRobin || s.Placed != 28 || s.Rounds != 2 {
		t.Errorf("status %+v", s)
	}
}
