package task_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/skalds-go/skalds/pkg/task"
)

// TestReportOnEveryStatus: what each kind of report makes of each status, for the present claim; "" is "changes
// nothing".
func TestReportOnEveryStatus(t *testing.T) {
	t.Parallel()
	const no = task.Status("")
	rows := map[task.Kind][7]task.Status{
		//                     Created Assigning     Running         Paused          Finished, Failed, Cancelled
		task.ReportStarted:   {no, task.Running, task.Running, no, no, no, no},
		task.ReportProgress:  {no, task.Running, task.Running, no, no, no, no},
		task.ReportFinished:  {no, task.Finished, task.Finished, task.Finished, no, no, no},
		task.ReportFailed:    {no, task.Failed, task.Failed, task.Failed, no, no, no},
		task.ReportCancelled: {no, task.Cancelled, task.Cancelled, task.Cancelled, no, no, no},
		task.ReportRejected:  {no, task.Created, no, no, no, no, no},
		task.ReportReleased:  {no, task.Created, task.Created, task.Paused, no, no, no},
		task.ReportPaused:    {no, task.Paused, task.Paused, task.Paused, no, no, no},
		task.ReportResumed:   {no, task.Running, task.Running, task.Running, no, no, no},
		"levitated":          {},
	}
	for kind, row := range rows {
		for i, from := range task.All() {
			tk := with(running(), func(t *task.Task) { t.LifecycleStatus = from })
			r := task.Report{ID: "t1", Attempt: 3, ClaimID: "c3", Kind: kind, StartedAt: 7, FinishedAt: 9, Error: "e"}
			applied := 0
			for _, c := range r.Changes(now) {
				if c.Apply(&tk) {
					applied++
				}
			}
			want, times := row[i], 1
			if want == no {
				want, times = from, 0
			}
			if tk.LifecycleStatus != want || applied != times {
				t.Errorf("%s in %s: %s after %d changes; want %s after %d", kind, from, tk.LifecycleStatus, applied, want, times)
			}
		}
	}
}

func TestReportFields(t *testing.T) {
	t.Parallel()
	half := &task.Progress{Percent: 50, Message: "half"}
	cases := []struct {
		name string
		r    task.Report
		want func(*task.Task)
	}{
		{"started", task.Report{Kind: task.ReportStarted, StartedAt: 7}, func(t *task.Task) { t.StartDateTime = 7 }},
		{"progress", task.Report{Kind: task.ReportProgress, StartedAt: 7, Progress: half}, func(t *task.Task) { t.StartDateTime, t.Progress = 7, half }},
		{"finished", task.Report{Kind: task.ReportFinished, StartedAt: 7, FinishedAt: 9, Result: json.RawMessage(`{"a":1}`)}, func(t *task.Task) {
			t.LifecycleStatus, t.StartDateTime, t.FinishDateTime, t.Result = task.Finished, 7, 9, json.RawMessage(`{"a":1}`)
		}},
		{"failed", task.Report{Kind: task.ReportFailed, FinishedAt: 9, Error: "boom"}, func(t *task.Task) {
			t.LifecycleStatus, t.FinishDateTime, t.Error = task.Failed, 9, "boom"
		}},
		{"an end without a time ends now", task.Report{Kind: task.ReportFinished}, func(t *task.Task) {
			t.LifecycleStatus, t.FinishDateTime = task.Finished, now
		}},
		{"released forgets nothing but the node", task.Report{Kind: task.ReportReleased, StartedAt: 99, Progress: half}, func(t *task.Task) {
			t.LifecycleStatus, t.Executor, t.Incarnation = task.Created, "", ""
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tk := running()
			c.r.ID, c.r.Attempt, c.r.ClaimID, c.r.Node = "t1", 3, "c3", "n1"
			for _, change := range c.r.Changes(now) {
				change.Apply(&tk)
			}
			want := with(with(running(), func(t *task.Task) { t.UpdateDateTime = now }), c.want)
			if c.r.Kind.Final() {
				ended := c.r.FinishedAt
				if ended == 0 {
					ended = now
				}
				want.Attempts = []task.Run{{Attempt: 3, Executor: "n1", StartDateTime: c.r.StartedAt, FinishDateTime: ended,
					Outcome: string(c.r.Kind), Error: c.r.Error}}
			}
			if !reflect.DeepEqual(tk, want) {
				t.Errorf("got  %+v\nwant %+v", tk, want)
			}
		})
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	for k, final := range map[task.Kind]bool{
		task.ReportStarted: false, task.ReportProgress: false, task.ReportFinished: true, task.ReportFailed: true,
		task.ReportCancelled: true, task.ReportRejected: true, task.ReportReleased: true,
	} {
		if !k.Known() || k.Final() != final {
			t.Errorf("%s: known %t, final %t", k, k.Known(), k.Final())
		}
	}
	if k := task.Kind("levitated"); k.Known() || k.Final() {
		t.Error("an unknown kind is known or final")
	}
}

func TestFold(t *testing.T) {
	t.Parallel()
	r := func(id, claim string, k task.Kind) task.Report { return task.Report{ID: id, ClaimID: claim, Kind: k} }
	half := &task.Progress{Percent: 50}
	cases := []struct {
		name     string
		in, want []task.Report
	}{
		{"nothing", nil, nil},
		{"start and end become the end", []task.Report{r("a", "1", task.ReportStarted), r("a", "1", task.ReportFinished)},
			[]task.Report{r("a", "1", task.ReportFinished)}},
		{"nothing after a final one", []task.Report{r("a", "1", task.ReportFinished), r("a", "1", task.ReportProgress), r("a", "1", task.ReportFailed)},
			[]task.Report{r("a", "1", task.ReportFinished)}},
		{"claims of one task stay apart, in order", []task.Report{r("a", "1", task.ReportReleased), r("a", "2", task.ReportStarted), r("a", "2", task.ReportFinished)},
			[]task.Report{r("a", "1", task.ReportReleased), r("a", "2", task.ReportFinished)}},
		{"tasks stay in order of appearance", []task.Report{r("b", "1", task.ReportStarted), r("a", "1", task.ReportStarted), r("b", "1", task.ReportFinished)},
			[]task.Report{r("b", "1", task.ReportFinished), r("a", "1", task.ReportStarted)}},
		{"progress is kept", []task.Report{{ID: "a", Kind: task.ReportProgress, Progress: half}, {ID: "a", Kind: task.ReportFinished}},
			[]task.Report{{ID: "a", Kind: task.ReportFinished, Progress: half}}},
		{"an unknown kind hides none", []task.Report{r("a", "1", task.ReportStarted), r("a", "1", "levitated")},
			[]task.Report{r("a", "1", task.ReportStarted)}},
		{"an unknown kind gives way", []task.Report{r("a", "1", "levitated"), r("a", "1", task.ReportStarted)},
			[]task.Report{r("a", "1", task.ReportStarted)}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := task.Fold(c.in)
			if len(got) == 0 && len(c.want) == 0 {
				return
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}
