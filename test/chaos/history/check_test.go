package history_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skalds-go/skalds/pkg/task"
	"github.com/skalds-go/skalds/test/chaos/history"
)

var rules = history.Rules{LostAfter: 2 * time.Second, StopMargin: 250 * time.Millisecond, Instant: time.Second}

// ran is the lines of one run, in milliseconds; an end of 0 is none.
func ran(pid int, attempt int64, start, end int, how history.Event) []history.Line {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	lines := []history.Line{{Event: history.Started, Task: "t", Attempt: attempt, PID: pid, Boot: ms(start)}}
	if end > 0 {
		lines = append(lines, history.Line{Event: how, Task: "t", Attempt: attempt, PID: pid, Boot: ms(end)})
	}
	return lines
}

func finished(attempt int64, result string) task.Task {
	return task.Task{ID: "t", LifecycleStatus: task.Finished, Attempt: attempt, Result: []byte(result)}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	frozen := func(from, until time.Duration) []history.Freeze {
		return []history.Freeze{{PID: 1, From: from * time.Millisecond, Until: until * time.Millisecond}}
	}
	cases := map[string]struct {
		lines   [][]history.Line
		freezes []history.Freeze
		gone    map[int]time.Duration
		task    task.Task
		may     history.May
		want    string // part of the one thing that is wrong; empty = all is well
	}{
		"one run": {
			lines: [][]history.Line{ran(1, 1, 100, 200, history.Finished)}, task: finished(1, `{"attempt":1,"pid":1}`),
		},
		"a process was killed, and the task ran again": {
			lines: [][]history.Line{ran(1, 1, 100, 0, ""), ran(2, 2, 3000, 3100, history.Finished)},
			gone:  map[int]time.Duration{1: 900 * time.Millisecond}, task: finished(2, `{"attempt":2,"pid":2}`),
		},
		"a process was frozen past its trust and stopped after the thaw": {
			lines:   [][]history.Line{ran(1, 1, 100, 15_100, history.Stopped), ran(2, 2, 2900, 3100, history.Finished)},
			freezes: frozen(500, 15_000), task: finished(2, `{"attempt":2,"pid":2}`),
		},
		"a process is frozen for ever": {
			lines:   [][]history.Line{ran(1, 1, 100, 0, ""), ran(2, 2, 2900, 3100, history.Finished)},
			freezes: []history.Freeze{{PID: 1, From: 500 * time.Millisecond, Until: history.Forever}}, task: finished(2, `{"attempt":2,"pid":2}`),
		},
		"cancelled": {
			lines: [][]history.Line{ran(1, 1, 100, 200, history.Stopped)},
			task:  task.Task{ID: "t", LifecycleStatus: task.Cancelled, Attempt: 1}, may: history.May{Cancel: true},
		},
		"lost":      {task: task.Task{ID: "other"}, want: "is lost"},
		"not ended": {task: task.Task{ID: "t", LifecycleStatus: task.Running, Attempt: 1}, want: "is Running"},
		"failed":    {task: task.Task{ID: "t", LifecycleStatus: task.Failed, Error: "x"}, want: "is Failed"},
		"failed as it may": {
			lines: [][]history.Line{ran(1, 1, 100, 200, history.Stopped)},
			task:  task.Task{ID: "t", LifecycleStatus: task.Failed, Attempt: 1, Error: "the deadline has passed"}, may: history.May{Fail: "deadline"},
		},
		"failed otherwise": {
			task: task.Task{ID: "t", LifecycleStatus: task.Failed, Error: "boom"}, may: history.May{Fail: "deadline"}, want: "is Failed",
		},
		"a handler that does not stop": {
			lines: [][]history.Line{ran(1, 1, 100, 3000, history.Finished), ran(2, 2, 2000, 2500, history.Finished)},
			task:  finished(2, `{"attempt":2,"pid":2}`), may: history.May{Overlap: true},
		},
		"the old result of a handler that does not stop": {
			lines: [][]history.Line{ran(1, 1, 100, 3000, history.Finished), ran(2, 2, 2000, 2500, history.Finished)},
			task:  finished(2, `{"attempt":1,"pid":1}`), may: history.May{Overlap: true}, want: "the result of attempt 1 was accepted",
		},
		"cancelled by nobody":    {task: task.Task{ID: "t", LifecycleStatus: task.Cancelled}, want: "is Cancelled"},
		"finished without a run": {task: finished(1, `{"attempt":1,"pid":1}`), want: "no run finished"},
		"the result of an old attempt": {
			lines: [][]history.Line{ran(1, 1, 100, 200, history.Finished), ran(2, 2, 300, 0, "")},
			task:  finished(2, `{"attempt":1,"pid":1}`), want: "the result of attempt 1 was accepted",
		},
		"an attempt that the store does not know": {
			lines: [][]history.Line{ran(1, 1, 100, 200, history.Finished), ran(2, 2, 300, 400, history.Finished)},
			task:  finished(1, `{"attempt":1,"pid":1}`), want: "the store has only come to 1",
		},
		"two attempts at once": {
			lines: [][]history.Line{ran(1, 1, 100, 3000, history.Finished), ran(2, 2, 2000, 2500, history.Finished)},
			task:  finished(2, `{"attempt":2,"pid":2}`), want: "attempt 1 ran on for 1s",
		},
		"two attempts at once, and nobody knows an end": {
			lines: [][]history.Line{ran(1, 1, 100, 0, ""), ran(2, 2, 2000, 2500, history.Finished)},
			task:  finished(2, `{"attempt":2,"pid":2}`), want: "attempt 1 ran on for ever",
		},
		"a short freeze ends no trust": {
			lines:   [][]history.Line{ran(1, 1, 100, 4000, history.Finished), ran(2, 2, 2000, 2500, history.Finished)},
			freezes: frozen(500, 1500), task: finished(2, `{"attempt":2,"pid":2}`), want: "attempt 1 ran on for 2s",
		},
		"a thawed process runs on": {
			lines:   [][]history.Line{ran(1, 1, 100, 17_000, history.Stopped), ran(2, 2, 2900, 3100, history.Finished)},
			freezes: frozen(500, 15_000), task: finished(2, `{"attempt":2,"pid":2}`), want: "ran on for 2s after its process was thawed",
		},
		"an old attempt starts after a newer one": {
			lines:   [][]history.Line{ran(1, 1, 15_010, 15_020, history.Stopped), ran(2, 2, 2900, 3100, history.Finished)},
			freezes: frozen(500, 15_000), task: finished(2, `{"attempt":2,"pid":2}`), want: "attempt 1 started in process 1, 12.11s after attempt 2 did",
		},
		"one attempt in two processes": {
			lines: [][]history.Line{ran(1, 1, 100, 200, history.Finished), ran(2, 1, 300, 400, history.Finished)},
			task:  finished(1, `{"attempt":1,"pid":1}`), want: "attempt 1 ran twice",
		},
		"one attempt twice in one process": {
			lines: [][]history.Line{ran(1, 1, 100, 200, history.Finished), ran(1, 1, 300, 0, "")},
			task:  finished(1, `{"attempt":1,"pid":1}`), want: "started attempt 1 twice",
		},
		"an end without a start": {
			lines: [][]history.Line{ran(1, 1, 100, 200, history.Finished), ran(2, 2, 300, 400, history.Stopped)[1:]},
			task:  finished(1, `{"attempt":1,"pid":1}`), want: "without a start",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := history.Record{Rules: rules, Freezes: c.freezes, Gone: c.gone}
			for _, lines := range c.lines {
				r.Lines = append(r.Lines, lines...)
			}
			got := r.Check([]string{"t"}, map[string]task.Task{c.task.ID: c.task}, map[string]history.May{"t": c.may})
			switch {
			case c.want == "" && len(got) > 0:
				t.Errorf("found %q, want nothing", got)
			case c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)):
				t.Errorf("found %q, want just %q", got, c.want)
			}
		})
	}
}

func TestWitness(t *testing.T) {
	t.Parallel()
	var w history.Witness
	see := func(tk task.Task, want string) {
		t.Helper()
		if got := w.See(&tk); got == "" != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	see(task.Task{ID: "t", LifecycleStatus: task.Running, Attempt: 1}, "")
	see(finished(1, `{"attempt":1}`), "")
	see(finished(1, `{"attempt":1}`), "")
	see(finished(2, `{"attempt":2}`), "had ended as Finished of attempt 1")
	see(task.Task{ID: "t", LifecycleStatus: task.Created, Attempt: 1}, "and is Created")
}

func TestLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log, err := history.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range []history.Event{history.Started, history.Stopped} {
		if err := log.Write(history.Line{Event: event, Task: "t", Attempt: 7}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "2.jsonl"), []byte(`{"event":"sta`), 0o600); err != nil {
		t.Fatal(err)
	}
	lines, err := history.Read(dir)
	if err != nil || len(lines) != 2 || lines[1].Event != history.Stopped || lines[1].PID != os.Getpid() || lines[1].Boot < lines[0].Boot {
		t.Errorf("%+v, %v", lines, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "2.jsonl"), []byte("no\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := history.Read(dir); err == nil || !strings.Contains(err.Error(), "2.jsonl") {
		t.Errorf("a log that does not decode: %v", err)
	}
}
