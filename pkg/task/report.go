package task

import "encoding/json"

// Kind is what a node reports of a claim.
type Kind string

// The kinds of report. Started, Progress, Paused and Resumed are followed by others; the rest end the claim. Once a run
// was paused, it is Paused or Resumed until its end, since those two alone say whether it is.
const (
	ReportStarted   Kind = "started"
	ReportProgress  Kind = "progress"
	ReportPaused    Kind = "paused"
	ReportResumed   Kind = "resumed"
	ReportFinished  Kind = "finished"
	ReportFailed    Kind = "failed"
	ReportCancelled Kind = "cancelled"
	ReportRejected  Kind = "rejected"
	ReportReleased  Kind = "released"
)

var reportEvents = map[Kind]Event{
	ReportStarted:   EventStart,
	ReportProgress:  EventStart,
	ReportPaused:    EventPause,
	ReportResumed:   EventResume,
	ReportFinished:  EventFinish,
	ReportFailed:    EventFail,
	ReportCancelled: EventCancel,
	ReportRejected:  EventReject,
	ReportReleased:  EventRelease,
}

// Known reports whether this version knows the kind.
func (k Kind) Known() bool { _, ok := reportEvents[k]; return ok }

// Final reports whether a report of this kind ends the claim.
func (k Kind) Final() bool {
	switch reportEvents[k] {
	case EventStart, EventPause, EventResume:
		return false
	default:
		return k.Known()
	}
}

// MaxChanges returns the most changes that Changes, or [Fail], returns for a report of kind k.
func (k Kind) MaxChanges() int {
	switch k {
	case ReportPaused, ReportResumed:
		return 4
	case ReportFailed:
		return 3
	default:
		return 2
	}
}

// Report is the whole present state of one claim, as its node reports it. So the newest report of a claim replaces the
// older ones, and a repeated one does no harm. Times are epoch milliseconds of the node's clock.
type Report struct {
	ID         string          `json:"id"`
	Attempt    int64           `json:"attempt"`
	ClaimID    string          `json:"claimId"`
	Kind       Kind            `json:"kind"`
	StartedAt  int64           `json:"startedAt,omitempty"`
	FinishedAt int64           `json:"finishedAt,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
	Error      string          `json:"error,omitempty"`
	Progress   *Progress       `json:"progress,omitempty"`
	Permanent  bool            `json:"permanent,omitempty"`          // of a failure: another attempt would fail, too
	RetryAt    int64           `json:"retryAt,omitempty"`            // of a failure: not to be tried again before; 0 = as the task's backoff says
	Version    int64           `json:"attachmentsVersion,omitempty"` // of the attachments that the node has
	Node       string          `json:"-"`                            // the reporting node; set by whoever reads the report
	Heartbeat  int64           `json:"-"`                            // the node's newest heartbeat at that time, likewise; 0 = unknown
}

// Changes returns the compare-and-sets that write the report down; at most one of them applies. An unknown kind has
// none. A failure is final here; [Fail] decides with the task's document whether it is retried.
func (r *Report) Changes(now int64) []Change {
	e, ok := reportEvents[r.Kind]
	if !ok {
		return nil
	}
	base := Change{ID: r.ID, Attempt: r.Attempt, ClaimID: r.ClaimID, UpdatedAt: now, StartedAt: r.StartedAt, Progress: r.Progress}
	switch e {
	case EventFinish, EventFail, EventCancel:
		base.FinishedAt, base.Result, base.Error = r.FinishedAt, r.Result, r.Error
		if base.FinishedAt == 0 {
			base.FinishedAt = now // an ended task always says when
		}
	case EventPause, EventResume:
		return pauseOrResume(base, e)
	case EventReject, EventRelease:
		// Why it was rejected stands in the document until the next claim.
		base.Unassign, base.StartedAt, base.Progress, base.Error = true, 0, nil, r.Error
	default:
	}
	if r.Kind.Final() {
		base.Run = r.run(string(r.Kind), now)
	}
	var list []Change
	for _, to := range All() {
		if from := sources(e, to) & held; from != 0 {
			c := base
			c.From, c.To = from, to
			list = append(list, c)
		}
	}
	return list
}

// pauseOrResume returns the changes for a report that the run is paused or has resumed. If people have asked for the
// opposite meanwhile, that request stays.
func pauseOrResume(base Change, e Event) []Change {
	to, _ := Next(Running, e)
	base.To = to
	same, other := base, base
	same.From, other.From = Set(Paused), Set(Assigning, Running)
	done, undone := DesiredPaused, DesiredRunning
	if to == Running {
		same.From, other.From = other.From, same.From
		done, undone = undone, done
	}
	carried, against, cancelled := other, other, other
	carried.IfDesired, carried.ClearDesired = &done, true
	against.IfDesired, against.Desired = new(Desired), undone
	cancelled.IfDesired = new(DesiredCancelled)
	return []Change{same, carried, against, cancelled}
}

// run returns the report as an entry of the task's history.
func (r *Report) run(outcome string, now int64) *Run {
	ended := r.FinishedAt
	if ended == 0 {
		ended = now
	}
	return &Run{Attempt: r.Attempt, Executor: r.Node, StartDateTime: r.StartedAt, FinishDateTime: ended, Outcome: outcome, Error: r.Error}
}

// held are the statuses a task with a present claim can have on its node.
const held = Statuses(1<<1 | 1<<2 | 1<<3)

// Fold keeps one report for each claim: the last, but none after a final one. A report of an unknown kind replaces no
// other. The order of first appearance stays. Fold reuses the slice.
func Fold(reports []Report) []Report {
	type claim struct {
		id, claimID string
	}
	at := make(map[claim]int, len(reports))
	n := 0
	for _, r := range reports {
		k := claim{r.ID, r.ClaimID}
		i, seen := at[k]
		switch {
		case !seen:
			at[k] = n
			reports[n] = r
			n++
		case !reports[i].Kind.Final() && r.Kind.Known():
			if r.Progress == nil {
				r.Progress = reports[i].Progress
			}
			reports[i] = r
		}
	}
	return reports[:n]
}
