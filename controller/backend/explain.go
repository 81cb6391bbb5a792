package backend

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/skalds-go/skalds/controller/dispatcher"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/task"
)

// Explain says why a task is where it is.
func (b *Backend) Explain(ctx context.Context, t *task.Task) (client.Explanation, error) {
	waits := t.LifecycleStatus == task.Created && t.Mode != task.ModeActive && t.NotBefore == 0
	if !waits && !t.LifecycleStatus.Active() {
		return b.explainOther(nil, t), nil
	}
	return ask(ctx, b, func(_ context.Context, l *Leadership) (client.Explanation, error) {
		if !waits {
			return b.explainOther(l, t), nil
		}
		return explained(t, l.Dispatcher.Explain(t)), nil
	}, func(peer *client.Client, ctx context.Context) (client.Explanation, error) {
		return peer.Explain(ctx, t.ID)
	})
}

// explainOther explains a task that does not wait for its turn.
func (b *Backend) explainOther(l *Leadership, t *task.Task) client.Explanation {
	picked := ""
	if l != nil {
		picked = l.Fleet.PickedBy(t.ClaimID)
	}
	e := client.Explanation{ID: t.ID, Status: t.LifecycleStatus}
	e.Reason, e.Text, e.Help = describe(t, picked, b.deps.Clock.Now())
	if t.LifecycleStatus == task.Created {
		e.Until = t.NotBefore
	}
	return e
}

// describe says in words where a task is that does not wait for its turn. picked is the strategy that picked its node,
// if known.
func describe(t *task.Task, picked string, now time.Time) (reason, text, help string) {
	switch {
	case t.LifecycleStatus.Terminal():
		return describeEnded(t, now)
	case t.Mode == task.ModeActive:
		return "EDGE", "It belongs to an edge node, which runs it by itself: no controller dispatches it.", ""
	case t.LifecycleStatus == task.Paused && t.Executor == "":
		return "PAUSED", "A person has paused it; no node holds it.", "Resume it: skalds task resume " + dispatcher.ShellWord(t.ID)
	case t.LifecycleStatus == task.Paused:
		text = fmt.Sprintf("A person has paused it; it is on %s and keeps its slot there.", t.Executor)
		return "PAUSED", text + asked(t), "Resume it: skalds task resume " + dispatcher.ShellWord(t.ID)
	case t.LifecycleStatus == task.Created && t.Failures > 0:
		last := ""
		if n := len(t.Attempts); n > 0 && t.Attempts[n-1].Error != "" {
			last = " (" + t.Attempts[n-1].Error + ")"
		}
		return "BACKOFF", fmt.Sprintf("Its attempt %d has failed%s; the next one may begin in %s.", t.Attempt, last, until(t.NotBefore, now)), ""
	case t.LifecycleStatus == task.Created:
		return "NOT_BEFORE", fmt.Sprintf("It is not to run before %s, in %s.", time.UnixMilli(t.NotBefore).UTC().Format(time.RFC3339), until(t.NotBefore, now)), ""
	}
	how := ""
	if picked != "" {
		how = ", which " + picked + " picked"
	}
	if t.LifecycleStatus == task.Running {
		return "RUNNING", fmt.Sprintf("It has been running on %s%s (attempt %d)%s.", t.Executor, age(t, t.StartDateTime, now, " for %s"), t.Attempt, how) +
			asked(t), ""
	}
	text = fmt.Sprintf("It was sent to %s%s (attempt %d)%s, and the node has not said that it began.",
		t.Executor, age(t, t.AssignedDateTime, now, " %s ago"), t.Attempt, how)
	return "ASSIGNING", text + asked(t),
		"The node may be full for a moment: skalds nodes show " + dispatcher.ShellWord(t.Executor) + " says what it does."
}

// describeEnded says how a task ended.
func describeEnded(t *task.Task, now time.Time) (reason, text, help string) {
	on := ""
	switch {
	case t.Attempt > 0:
		on = fmt.Sprintf(", on attempt %d", t.Attempt)
	case t.StartDateTime == 0 && t.LifecycleStatus != task.Finished:
		on = ", before it ran"
	}
	text = fmt.Sprintf("It ended%s%s: %s.", age(t, t.FinishDateTime, now, " %s ago"), on, t.LifecycleStatus)
	if t.Error != "" {
		text = fmt.Sprintf("%s: %s", strings.TrimSuffix(text, "."), t.Error)
	}
	if t.LifecycleStatus == task.Finished {
		return "ENDED", text, "See its result: skalds task show " + dispatcher.ShellWord(t.ID)
	}
	return "ENDED", text, "Run it again: skalds task retry " + dispatcher.ShellWord(t.ID)
}

// asked says what a person has asked of a task and its node has not carried out yet.
func asked(t *task.Task) string {
	switch t.Desired {
	case task.DesiredCancelled:
		return " It is to be cancelled: its handler has not returned yet."
	case task.DesiredPaused:
		return " It is to be paused: its handler has not come to a place where it waits (WaitWhilePaused)."
	case task.DesiredRunning:
		return " It is to go on: its node has not said yet that it does."
	}
	return ""
}

// age says how long ago a time of a task was, in the given format; nothing where that is not known.
func age(t *task.Task, at int64, now time.Time, format string) string {
	d, ok := client.Age(t, at, now)
	if !ok {
		return ""
	}
	return fmt.Sprintf(format, span(d))
}

func until(at int64, now time.Time) string { return span(time.UnixMilli(at).Sub(now)) }

// span formats a length of time for people.
func span(d time.Duration) string {
	d = max(d, 0)
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// explained returns the dispatcher's explanation of a task that waits for its turn.
func explained(t *task.Task, d dispatcher.Explanation) client.Explanation {
	e := client.Explanation{ID: t.ID, Status: t.LifecycleStatus}
	e.Reason, e.Text, e.Help, e.Until, e.Queue, e.NotTaking = string(d.Reason), d.Text, d.Help, d.Until, d.Queue, d.NotTaking
	if p := d.Placement; p != nil {
		e.Placement = &client.Placement{Strategy: string(p.Strategy), Nodes: p.Nodes, NoClass: p.NoClass, NoLabels: p.NoLabels, TooSmall: p.TooSmall,
			AntiAffinity: p.Anti, Avoided: p.Avoided, RateLimited: p.RateLimited, Kept: p.Kept, Full: p.Full, FullNodes: p.FullNodes}
		for _, b := range p.Best {
			e.Placement.Best = append(e.Placement.Best, client.NodeScore{Node: b.Node, Score: b.Score})
		}
	}
	return e
}
