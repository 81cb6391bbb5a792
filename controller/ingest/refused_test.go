package ingest_test

import (
	"strings"
	"testing"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestAResultThatNoStoreHoldsFailsItsTaskAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tasks := b.assigned(t, 2)
	bad, good := report(&tasks[0], task.ReportFinished), report(&tasks[1], task.ReportFinished)
	bad.Result = []byte(`{"a\u0000b":1}`)
	never := 1
	set := task.Change{ID: bad.ID, From: task.Set(task.Assigning), Attempt: 1, ClaimID: bad.ClaimID, To: task.Assigning, Counts: &task.Counts{Failures: never}}
	if n, err := b.store.Store.Apply(t.Context(), []task.Change{set}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if err := b.ingest.Round(t.Context(), []kafka.Record{record(t, events.Status{Reports: []task.Report{bad, good}})}); err != nil {
		t.Fatal(err)
	}
	if x, y := b.status(t, tasks[0].ID), b.status(t, tasks[1].ID); x != task.Failed || y != task.Finished {
		t.Errorf("%s and %s, want Failed and Finished", x, y)
	}
}

func TestAReportThatTheStoreRefusesKeepsNoOtherFromBeingWritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tasks := b.assigned(t, 3)
	var reports []task.Report
	for i := range tasks {
		r := report(&tasks[i], task.ReportFinished)
		r.Result = []byte("1")
		reports = append(reports, r)
	}
	b.store.refuses = tasks[1].ID
	if err := b.ingest.Round(t.Context(), []kafka.Record{record(t, events.Status{Reports: reports})}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []task.Status{task.Finished, task.Failed, task.Finished} {
		if got := b.status(t, tasks[i].ID); got != want {
			t.Errorf("task %d is %s, want %s", i, got, want)
		}
	}
	if acks := b.ingest.DrainAcknowledged(); len(acks) != 1 || len(acks[0].Claims) != 3 {
		t.Errorf("acknowledged %+v", acks)
	}
}

func TestWhatTheStoreRefusesAltogetherIsNotSettled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tasks := b.assigned(t, 1)
	b.store.deaf = true // such as a user that may not write
	records := []kafka.Record{record(t, events.Status{Reports: []task.Report{report(&tasks[0], task.ReportFinished)}})}
	if err := b.ingest.Round(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	if acks := b.ingest.DrainAcknowledged(); len(acks) != 0 {
		t.Fatalf("acknowledged %+v: the report would be lost", acks)
	}
	b.store.deaf = false
	if err := b.ingest.Round(t.Context(), records); err != nil || b.status(t, tasks[0].ID) != task.Finished {
		t.Fatal(err, b.status(t, tasks[0].ID))
	}
}

// A call of the store has a few seconds. With as many large results as reports fit into a page it would never be done,
// and tried for ever.
func TestOneCallOfTheStoreCarriesFewBytes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tasks := b.assigned(t, 100)
	large := []byte(`"` + strings.Repeat("x", 256<<10-2) + `"`)
	var records []kafka.Record
	for i := range tasks {
		r := report(&tasks[i], task.ReportFinished)
		r.Result = large
		records = append(records, record(t, events.Status{Reports: []task.Report{r}}))
	}
	if err := b.ingest.Round(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	counts, _ := b.store.Counts(t.Context())
	if counts[task.Finished] != 100 || b.store.largest > 4<<20 {
		t.Errorf("%d finished, %d bytes in one call", counts[task.Finished], b.store.largest)
	}
}
