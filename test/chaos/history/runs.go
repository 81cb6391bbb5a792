package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Result is what a handler of the tests returns: which run it was.
type Result struct {
	Attempt int64 `json:"attempt"`
	PID     int   `json:"pid"`
}

// Freeze is a time in which a process did not run. Until is [Forever] while it is frozen, or if it was killed then.
type Freeze struct {
	PID         int
	From, Until time.Duration
}

// Forever is a time that has not come.
const Forever = time.Duration(math.MaxInt64)

// Rules are the times that the processes were told.
type Rules struct {
	LostAfter  time.Duration // NODE_LOST_AFTER
	StopMargin time.Duration // NODE_STOP_MARGIN
	// Instant is how long a process that was frozen past its trust may take after the thaw to stop its handlers.
	Instant time.Duration
}

// trust is how long a node trusts itself after a heartbeat.
func (r *Rules) trust() time.Duration { return r.LostAfter - r.StopMargin }

// Run is one call of a handler.
type Run struct {
	Task    string
	Attempt int64
	PID     int
	Start   time.Duration
	End     time.Duration // at the latest; Forever while it runs
	Outcome Event         // how it ended by its own words; Started = it wrote no end
	Cause   string
}

// Record is what is known after a test, or while it goes on.
type Record struct {
	Rules
	Lines   []Line
	Freezes []Freeze
	Gone    map[int]time.Duration // by process id: a time at which the process had ended
}

type runKey struct {
	pid     int
	task    string
	attempt int64
}

// Runs makes runs of lines, by task, in the order of their attempts, and says what in the lines cannot be.
//
// The run of a process that was killed ended when the process did. That of a process that was frozen for longer than it
// trusts itself ended when the trust did, wherever its own words say that it ended soon after the thaw.
func (r *Record) Runs() (byTask map[string][]Run, wrong []string) {
	byTask = map[string][]Run{}
	at := map[runKey]int{}
	for _, l := range r.Lines {
		key := runKey{l.PID, l.Task, l.Attempt}
		i, began := at[key]
		switch {
		case l.Event == Started && began:
			wrong = append(wrong, fmt.Sprintf("task %s: process %d started attempt %d twice", l.Task, l.PID, l.Attempt))
		case l.Event == Started:
			at[key] = len(byTask[l.Task])
			byTask[l.Task] = append(byTask[l.Task], Run{
				Task: l.Task, Attempt: l.Attempt, PID: l.PID, Start: l.Boot, End: r.end(l.PID), Outcome: Started,
			})
		case !began:
			wrong = append(wrong, fmt.Sprintf("task %s: process %d ended attempt %d without a start", l.Task, l.PID, l.Attempt))
		default:
			run := &byTask[l.Task][i]
			run.End, run.Outcome, run.Cause = l.Boot, l.Event, l.Cause
		}
	}
	for _, runs := range byTask {
		for i := range runs {
			if text := r.freeze(&runs[i]); text != "" {
				wrong = append(wrong, text)
			}
		}
		slices.SortStableFunc(runs, func(a, b Run) int {
			return cmp.Or(cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Start, b.Start))
		})
	}
	return byTask, wrong
}

func (r *Record) end(pid int) time.Duration {
	if gone, ok := r.Gone[pid]; ok {
		return gone
	}
	return Forever
}

// freeze applies what the test did to the run's process.
func (r *Record) freeze(run *Run) string {
	wrong := ""
	end := run.End
	for _, f := range r.Freezes {
		if f.PID != run.PID || f.Until <= run.Start || f.From >= run.End || f.Until-f.From <= r.trust() {
			continue
		}
		if f.Until != Forever && run.End > f.Until+r.Instant {
			wrong = fmt.Sprintf("task %s: attempt %d ran on for %s after its process was thawed, frozen for %s",
				run.Task, run.Attempt, since(f.Until, run.End), f.Until-f.From)
		}
		end = min(end, max(f.From, run.Start)+r.trust())
	}
	run.End = end
	return wrong
}

// since is how long after a time an end is.
func since(from, end time.Duration) string {
	if end == Forever {
		return "ever"
	}
	return (end - from).String()
}
