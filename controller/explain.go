package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/skalds-go/skalds/controller/api"
	"github.com/skalds-go/skalds/controller/dispatcher"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/task"
)

// Explain says why a task is where it is. What only the leader knows, it is asked for.
func (s *steering) Explain(ctx context.Context, t *task.Task) (client.Explanation, error) {
	c := (*Controller)(s)
	e := client.Explanation{ID: t.ID, Status: t.LifecycleStatus}
	now := c.deps.Clock.Now()
	l := c.leading()
	if waits := t.LifecycleStatus == task.Created && t.Mode != task.ModeActive && t.NotBefore == 0; waits || t.LifecycleStatus.Active() {
		if l == nil {
			peer, err := s.peer(ctx)
			if err != nil {
				return e, err
			}
			return peer.Explain(ctx, t.ID)
		}
		if waits {
			return explained(e, l.dispatcher.Explain(t)), nil
		}
	}
	e.Reason, e.Text, e.Help = c.elsewhere(l, t, now)
	if t.LifecycleStatus == task.Created {
		e.Until = t.NotBefore
	}
	return e, nil
}

// elsewhere says it of a task that does not wait for its turn.
func (c *Controller) elsewhere(l *leadership, t *task.Task, now time.Time) (reason, text, help string) {
	switch {
	case t.LifecycleStatus.Terminal():
		return c.ended(t, now)
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
	if l != nil {
		if why := l.fleet.PickedBy(t.ClaimID); why != "" {
			how = ", which " + why + " picked"
		}
	}
	if t.LifecycleStatus == task.Running {
		return "RUNNING", fmt.Sprintf("It has been running on %s for %s (attempt %d)%s.", t.Executor, since(t.StartDateTime, now), t.Attempt, how) + asked(t), ""
	}
	sent := since(t.AssignedDateTime, now)
	text = fmt.Sprintf("It was sent to %s %s ago (attempt %d)%s, and the node has not said that it began.", t.Executor, sent, t.Attempt, how)
	return "ASSIGNING", text + asked(t),
		"The node may be full for a moment: skalds nodes show " + dispatcher.ShellWord(t.Executor) + " says what it does."
}

// ended says how a task ended.
func (c *Controller) ended(t *task.Task, now time.Time) (reason, text, help string) {
	on := fmt.Sprintf("on attempt %d", t.Attempt)
	if t.Attempt == 0 {
		on = "before it ran"
	}
	text = fmt.Sprintf("It ended %s ago, %s: %s.", since(t.FinishDateTime, now), on, t.LifecycleStatus)
	if t.Error != "" {
		text = fmt.Sprintf("%s: %s", strings.TrimSuffix(text, "."), t.Error)
	}
	if t.LifecycleStatus == task.Finished {
		return "ENDED", text, "See its result: skalds task show " + dispatcher.ShellWord(t.ID)
	}
	return "ENDED", text, "Run it again: skalds task retry " + dispatcher.ShellWord(t.ID)
}

// asked says what a person has asked of a task that its node has not carried out.
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

func since(at int64, now time.Time) string { return span(now.Sub(time.UnixMilli(at))) }
func until(at int64, now time.Time) string { return span(time.UnixMilli(at).Sub(now)) }

// span is a time for people.
func span(d time.Duration) string {
	d = max(d, 0)
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// explained adds what the dispatcher says.
func explained(e client.Explanation, d dispatcher.Explanation) client.Explanation {
	e.Reason, e.Text, e.Help, e.Until, e.Queue, e.NotTaking = string(d.Reason), d.Text, d.Help, d.Until, d.Queue, d.NotTaking
	if p := d.Placement; p != nil {
		e.Placement = &client.Placement{Strategy: string(p.Strategy), Nodes: p.Nodes, NoClass: p.NoClass, NoLabels: p.NoLabels, TooSmall: p.TooSmall,
			AntiAffinity: p.Anti, Avoided: p.Avoided, Throttled: p.Throttled, Kept: p.Kept, Full: p.Full, FullNodes: p.FullNodes}
		for _, b := range p.Best {
			e.Placement.Best = append(e.Placement.Best, client.NodeScore{Node: b.Node, Score: b.Score})
		}
	}
	return e
}

// Pending groups all tasks that wait by reason. The leader is asked for it.
func (s *steering) Pending(ctx context.Context) (client.Pending, error) {
	c := (*Controller)(s)
	l := c.leading()
	if l == nil {
		peer, err := s.peer(ctx)
		if err != nil {
			return client.Pending{}, err
		}
		return peer.Pending(ctx)
	}
	groups, err := l.dispatcher.Pending(ctx)
	if err != nil {
		return client.Pending{}, fmt.Errorf("group what waits: %w", err)
	}
	counts, err := c.deps.Store.Counts(ctx)
	if err != nil {
		return client.Pending{}, fmt.Errorf("count what waits: %w", err)
	}
	p := client.Pending{Groups: make([]client.PendingGroup, 0, len(groups)+2)}
	for _, g := range groups {
		p.Total += g.Tasks
		p.Groups = append(p.Groups, client.PendingGroup{Reason: string(g.Reason), Tasks: g.Tasks, Queues: g.Queues, Text: g.Text, Help: g.Help, Sample: g.Sample})
	}
	if later := counts[task.Created] - p.Total; later > 0 {
		p.Total += later
		p.Groups = append(p.Groups, client.PendingGroup{Reason: "LATER", Tasks: later,
			Text: "They wait for a time (notBefore, or the backoff after a failure), or belong to edge nodes."})
	}
	if paused := counts[task.Paused]; paused > 0 {
		p.Total += paused
		p.Groups = append(p.Groups, client.PendingGroup{Reason: "PAUSED", Tasks: paused,
			Text: "A person has paused them.", Help: "Resume them: skalds task resume ID"})
	}
	return p, nil
}

// peer gives a client of the controller that leads.
func (s *steering) peer(ctx context.Context) (*client.Client, error) {
	c := (*Controller)(s)
	doc, err := c.deps.Store.Leader(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the leader's document: %w", err)
	}
	if doc.Holder == "" || doc.Holder == c.id {
		return nil, api.ErrNoLeader
	}
	peer, err := client.New(client.Config{Server: doc.Address, Token: string(c.cfg.APIToken), HTTP: c.peers})
	if err != nil {
		return nil, errors.Join(api.ErrNoLeader, err)
	}
	return peer, nil
}
