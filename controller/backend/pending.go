package backend

import (
	"context"
	"fmt"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/task"
)

// Pending groups all tasks that wait by reason.
func (b *Backend) Pending(ctx context.Context) (client.Pending, error) {
	return ask(ctx, b, b.pending, (*client.Client).Pending)
}

func (b *Backend) pending(ctx context.Context, l *Leadership) (client.Pending, error) {
	groups, err := l.Dispatcher.Pending(ctx)
	if err != nil {
		return client.Pending{}, fmt.Errorf("group what waits: %w", err)
	}
	counts, err := b.deps.Store.Counts(ctx)
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
