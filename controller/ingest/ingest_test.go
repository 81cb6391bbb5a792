package ingest_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestStartAndEndFoldIntoOneUpdate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tasks := b.assigned(t, 1)
	started, finished := report(&tasks[0], task.ReportStarted), report(&tasks[0], task.ReportFinished)
	err := b.ingest.Round(t.Context(), []kafka.Record{
		record(t, events.Status{Reports: []task.Report{started}}), record(t, events.Status{Reports: []task.Report{finished}}),
	})
	if err != nil {
		t.Fatal(err)
	}
	list, _ := b.store.Get(t.Context(), []string{tasks[0].ID})
	if got := list[0]; got.LifecycleStatus != task.Finished || got.StartDateTime != 10 || got.FinishDateTime != 20 {
		t.Fatalf("task %+v", got)
	}
	if _, claims := b.fleet.Size(); claims != 0 || b.hooks["capacity"] != 1 {
		t.Errorf("%d claims held, acks of room %d times", claims, b.hooks["capacity"])
	}
	acks := b.ingest.DrainAcknowledged()
	if len(acks) != 1 || acks[0].To.Key != n1 || !slices.Equal(acks[0].Claims, []string{tasks[0].ClaimID}) {
		t.Errorf("acknowledged %+v", acks)
	}
	if again := b.ingest.DrainAcknowledged(); len(again) != 0 {
		t.Errorf("acknowledged twice: %+v", again)
	}
}

func TestAStaleReportChangesNothingAndIsSettled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tasks := b.assigned(t, 1)
	stale := report(&tasks[0], task.ReportFinished)
	stale.ClaimID = "older"
	if err := b.ingest.Round(t.Context(), []kafka.Record{record(t, events.Status{Reports: []task.Report{stale}})}); err != nil {
		t.Fatal(err)
	}
	if got := b.status(t, tasks[0].ID); got != task.Assigning {
		t.Errorf("a stale report made the task %s", got)
	}
	if acks := b.ingest.DrainAcknowledged(); len(acks) != 1 || acks[0].Claims[0] != "older" {
		t.Errorf("acknowledged %+v: its node would report it for ever", acks)
	}
}

func TestNothingIsSettledBeforeTheStoreHasIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tasks := b.assigned(t, 1)
	records := []kafka.Record{record(t, events.Status{Reports: []task.Report{report(&tasks[0], task.ReportFinished)}})}
	b.store.fails = 1
	if err := b.ingest.Round(t.Context(), records); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("error %v", err)
	}
	if acks := b.ingest.DrainAcknowledged(); len(acks) != 0 {
		t.Fatalf("acknowledged %+v though the store does not have it", acks)
	}
	if err := b.ingest.Round(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	if acks := b.ingest.DrainAcknowledged(); len(acks) != 1 || b.status(t, tasks[0].ID) != task.Finished {
		t.Fatalf("acknowledged %+v, task %s", acks, b.status(t, tasks[0].ID))
	}
}

func TestRejectedAndReleasedWaitAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tasks := b.assigned(t, 2)
	err := b.ingest.Round(t.Context(), []kafka.Record{record(t, events.Status{Reports: []task.Report{
		report(&tasks[0], task.ReportRejected), report(&tasks[1], task.ReportReleased),
	}})})
	if err != nil {
		t.Fatal(err)
	}
	for i := range tasks {
		list, _ := b.store.Get(t.Context(), []string{tasks[i].ID})
		if got := list[0]; got.LifecycleStatus != task.Created || got.Executor != "" || got.Attempt != 1 {
			t.Errorf("task %+v, want it to wait again with its fence", got)
		}
	}
}

func TestC80_OneBadEventAmongAThousandIsQuarantined(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tasks := b.assigned(t, 999)
	var records []kafka.Record
	for i := range tasks {
		r := record(t, events.Status{Reports: []task.Report{report(&tasks[i], task.ReportFinished)}})
		r.Offset = int64(len(records))
		records = append(records, r)
		if i == 500 {
			records = append(records, kafka.Record{Offset: int64(len(records)), Value: []byte(`{"version":1,"reports":[{"id":`)})
		}
	}
	if err := b.ingest.Round(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	counts, _ := b.store.Counts(t.Context())
	if counts[task.Finished] != 999 || !slices.Equal(b.shelf.offsets, []int64{501}) {
		t.Fatalf("%d finished, quarantined %v", counts[task.Finished], b.shelf.offsets)
	}
}

// A round is made again for as long as the store is down: what does not decode is put aside once, not each time.
func TestABadEventIsQuarantinedOnceThoughTheStoreIsDown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tasks := b.assigned(t, 1)
	records := []kafka.Record{{Offset: 7, Value: []byte("{")}, record(t, events.Status{Reports: []task.Report{report(&tasks[0], task.ReportFinished)}})}
	b.store.fails = 10
	for range b.store.fails {
		if err := b.ingest.Round(t.Context(), records); !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("error %v", err)
		}
	}
	if err := b.ingest.Round(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(b.shelf.offsets, []int64{7}) || b.status(t, tasks[0].ID) != task.Finished {
		t.Errorf("quarantined %v, task %s", b.shelf.offsets, b.status(t, tasks[0].ID))
	}
}

func TestAFailureIsTriedAgainUntilItsAttemptsAreUsedUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tasks := b.assigned(t, 2)
	again, never := report(&tasks[0], task.ReportFailed), report(&tasks[1], task.ReportFailed)
	again.Error, never.Permanent = "boom", true
	began := time.Now().UnixMilli()
	if err := b.ingest.Round(t.Context(), []kafka.Record{record(t, events.Status{Reports: []task.Report{again, never}})}); err != nil {
		t.Fatal(err)
	}
	list, _ := b.store.Get(t.Context(), []string{tasks[0].ID})
	if got := list[0]; got.LifecycleStatus != task.Created || got.Failures != 1 || got.NotBefore < began+500 || got.Executor != "" || got.Error != "boom" ||
		len(got.Attempts) != 1 || got.Attempts[0].Executor != "n1" {
		t.Errorf("%+v", got)
	}
	if got := b.status(t, tasks[1].ID); got != task.Failed {
		t.Errorf("one that says not to retry is %s", got)
	}
	if b.hooks["due"] != 1 {
		t.Errorf("told of times %d times", b.hooks["due"])
	}
	if acks := b.ingest.DrainAcknowledged(); len(acks) != 1 || len(acks[0].Claims) != 2 {
		t.Errorf("acknowledged %+v", acks)
	}
	// A copy of the report changes nothing.
	if err := b.ingest.Round(t.Context(), []kafka.Record{record(t, events.Status{Reports: []task.Report{again}})}); err != nil {
		t.Fatal(err)
	}
	if list, _ := b.store.Get(t.Context(), []string{tasks[0].ID}); list[0].Failures != 1 {
		t.Errorf("counted twice: %+v", list[0])
	}
}

func TestNotices(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, n := range []events.Notice{events.NoticeJoined, events.NoticeLeft, events.NoticeSubmitted, "of a later version"} {
		if err := b.ingest.Round(t.Context(), []kafka.Record{record(t, events.Status{Notice: n})}); err != nil {
			t.Fatal(err)
		}
	}
	if b.hooks["membership"] != 2 || b.hooks["submitted"] != 1 || b.hooks["capacity"] != 0 {
		t.Errorf("hooks %v", b.hooks)
	}
	if nodes, _ := b.fleet.View(0); len(nodes) != 0 {
		t.Error("a node that left takes work")
	}
}
