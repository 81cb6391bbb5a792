package backend

import (
	"context"
	"fmt"

	"github.com/skalds-go/skalds/pkg/client"
)

// Fleet returns what the leader knows of nodes beyond their heartbeats.
func (b *Backend) Fleet(ctx context.Context) (client.Fleet, error) {
	return ask(ctx, b, b.fleet, (*client.Client).Fleet)
}

func (b *Backend) fleet(ctx context.Context, l *Leadership) (client.Fleet, error) {
	draining, err := b.deps.Store.Draining(ctx)
	if err != nil {
		return client.Fleet{}, fmt.Errorf("read which nodes drain: %w", err)
	}
	boot, now := b.deps.Clock.Boot(), b.deps.Clock.Now()
	f := client.Fleet{Cordoned: map[string]client.Cordon{}, Draining: append([]string{}, draining...), Gone: []client.GoneNode{}}
	for id, c := range l.Fleet.AllCordoned(boot) {
		f.Cordoned[id] = client.Cordon{Reason: c.Reason, Since: now.Add(c.Since - boot).UnixMilli(), Until: now.Add(c.Until - boot).UnixMilli()}
	}
	for _, g := range l.Fleet.Gone(boot) {
		gone := client.GoneNode{
			ID: g.Node, Incarnation: g.Incarnation, How: string(g.How), At: now.Add(g.At - boot).UnixMilli(),
			Reassigned: g.Reassigned, Ended: g.Ended, Waiting: g.Waiting,
		}
		if g.LastSeen != 0 {
			gone.LastSeen = now.Add(g.LastSeen - boot).UnixMilli()
		}
		f.Gone = append(f.Gone, gone)
	}
	return f, nil
}
