package monitor_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// second lets a second pass and makes a round.
func (b *bundle) second(t *testing.T) {
	t.Helper()
	b.clock.Advance(time.Second)
	b.beat(t)
	b.round(t)
}

func (b *bundle) commanded(t *testing.T, want ...events.Command) {
	t.Helper()
	if !reflect.DeepEqual(b.wire.commands, want) {
		t.Fatalf("commands %+v, want %+v", b.wire.commands, want)
	}
	b.wire.commands = nil
}

func (b *bundle) report(t *testing.T, tk *task.Task, kind task.Kind) {
	t.Helper()
	r := task.Report{ID: tk.ID, Attempt: tk.Attempt, ClaimID: tk.ClaimID, Kind: kind, StartedAt: 1, FinishedAt: 2}
	if n, err := b.store.Apply(t.Context(), r.Changes(2)); n != 1 || err != nil {
		t.Fatal(n, err)
	}
}

func (b *bundle) request(t *testing.T, id string, change func(*task.Task, int64) (task.Change, bool)) {
	t.Helper()
	tk := b.get(t, id)
	c, ok := change(&tk, 1)
	if !ok {
		t.Fatalf("not possible: %+v", tk)
	}
	b.apply(t, c)
}

func TestRequestsAreForwardedUntilTheyAreCarriedOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tk := b.assigned(t, "t", true)
	b.report(t, &tk, task.ReportStarted)
	command := func(kind events.CommandKind) events.Command {
		return events.Command{Kind: kind, ID: "t", Attempt: 1, ClaimID: tk.ClaimID}
	}
	b.request(t, "t", task.Pause)
	b.round(t)
	b.commanded(t, command(events.CommandPause))
	b.round(t)
	b.commanded(t) // so soon it is not said again, however often somebody asks for something
	b.second(t)
	b.commanded(t, command(events.CommandPause))
	b.report(t, &tk, task.ReportPaused)
	b.second(t)
	b.commanded(t)
	b.request(t, "t", task.Resume)
	b.round(t)
	b.commanded(t, command(events.CommandResume))
	b.request(t, "t", task.Cancel)
	b.round(t)
	b.commanded(t, command(events.CommandCancel))
	b.second(t)
	b.commanded(t, command(events.CommandCancel))
	b.report(t, &tk, task.ReportCancelled)
	b.second(t)
	b.commanded(t)
}

func TestARequestThatCouldNotBeForwardedIsForwardedNext(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.assigned(t, "t", true)
	b.request(t, "t", task.Cancel)
	b.wire.err = errors.New("no broker")
	if _, err := b.m.Round(t.Context()); err == nil {
		t.Fatal("no error")
	}
	b.wire.commands, b.wire.err = nil, nil
	b.round(t)
	if len(b.wire.commands) != 1 {
		t.Errorf("commands %v", b.wire.commands)
	}
}

func TestARequestForATaskThatNoNodeHoldsIsCarriedOut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from    task.Status
		desired task.Desired
		want    task.Status
	}{
		{task.Created, task.DesiredCancelled, task.Cancelled},
		{task.Created, task.DesiredPaused, task.Paused},
		{task.Paused, task.DesiredRunning, task.Created},
	} {
		b := setup(t)
		// It was released, or failed and waits for its next attempt, after a person had asked for that.
		tk := task.Task{ID: "t", ClassName: "a", Mode: task.ModePassive, LifecycleStatus: c.from, Desired: c.desired, NotBefore: 1 << 60}
		if _, err := b.store.Create(t.Context(), []task.Task{tk}); err != nil {
			t.Fatal(err)
		}
		b.round(t)
		if got := b.get(t, "t"); got.LifecycleStatus != c.want || got.Desired != "" || got.NotBefore != tk.NotBefore {
			t.Errorf("%s, desired %s: %+v", c.from, c.desired, got)
		}
	}
}

func TestMoreRequestsThanAPageAreAllCarriedOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range store.MaxBatch + 50 {
		id := fmt.Sprintf("t%04d", i)
		b.assigned(t, id, true)
		b.request(t, id, task.Pause)
	}
	b.clock.Advance(6 * time.Second) // the next comparison
	b.beat(t)
	b.round(t)
	seen := map[string]bool{}
	for _, c := range b.wire.commands {
		seen[c.ID] = true
	}
	if len(seen) != store.MaxBatch+50 {
		t.Errorf("%d of them were forwarded", len(seen))
	}
}

// attached stores new attachments of a task.
func (b *bundle) attached(t *testing.T, id, text string) {
	t.Helper()
	b.request(t, id, func(tk *task.Task, now int64) (task.Change, bool) { return task.Attach(tk, json.RawMessage(text), now) })
}

func TestNewAttachmentsAreForwardedUntilTheNodeHasThem(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tk := b.assigned(t, "t", true)
	b.report(t, &tk, task.ReportStarted)
	update := func(version int64, text string) events.Command {
		return events.Command{Kind: events.CommandUpdate, ID: "t", Attempt: 1, ClaimID: tk.ClaimID, Attachments: json.RawMessage(text), AttachmentsVersion: version}
	}
	b.attached(t, "t", `1`)
	b.m.Updated([]string{"t", "of nobody"})
	b.round(t)
	b.commanded(t, update(1, `1`))
	b.round(t)
	b.commanded(t)
	b.attached(t, "t", `2`)
	b.m.Updated([]string{"t"})
	b.round(t)
	b.commanded(t, update(2, `2`))
	b.fleet.Reported(n1, &task.Report{ID: "t", Attempt: 1, ClaimID: tk.ClaimID, Kind: task.ReportProgress, Version: 1})
	b.clock.Advance(resend)
	b.beat(t)
	b.round(t)
	b.commanded(t, update(2, `2`))
	b.fleet.Reported(n1, &task.Report{ID: "t", Attempt: 1, ClaimID: tk.ClaimID, Kind: task.ReportProgress, Version: 2})
	for range 10 {
		b.second(t)
	}
	b.commanded(t)
}

func TestAComparisonFindsNewAttachmentsThatNobodyToldOf(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tk := b.assigned(t, "t", true)
	b.report(t, &tk, task.ReportStarted)
	b.attached(t, "t", `1`)
	b.clock.Advance(5 * time.Second)
	b.beat(t)
	b.round(t)
	if len(b.wire.commands) != 1 || b.wire.commands[0].AttachmentsVersion != 1 {
		t.Errorf("commands %+v", b.wire.commands)
	}
}

// A page of new attachments that cannot be forwarded, because one of its nodes is unreachable, does not hide others.
func TestNewAttachmentsThatCannotBeForwardedHideNoOthers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const tasks = 100 // more than a page
	ids := make([]string, tasks)
	for i := range ids {
		ids[i] = fmt.Sprintf("t%03d", i)
		tk := b.assigned(t, ids[i], true)
		b.report(t, &tk, task.ReportStarted)
		b.attached(t, ids[i], `1`)
	}
	b.wire.refuse = "t000"
	b.m.Updated(ids)
	sent := make(map[string]bool)
	for range 10 {
		b.clock.Advance(time.Second)
		b.beat(t)
		if _, err := b.m.Round(t.Context()); err != nil && !strings.Contains(err.Error(), "refused") {
			t.Fatal(err)
		}
		for _, c := range b.wire.commands {
			sent[c.ID] = true
		}
		b.wire.commands = nil
	}
	if len(sent) != tasks {
		t.Errorf("%d of %d were ever sent", len(sent), tasks)
	}
}
