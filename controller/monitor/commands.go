package monitor

import (
	"context"
	"fmt"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/transport"
	"github.com/skalds-go/skalds/events"
)

// commands are commands by node, in the order in which the nodes came.
type commands struct {
	list []transport.Commands
	at   map[fleet.Key]int
}

func (c *commands) add(to fleet.Target, command events.Command) {
	i, ok := c.at[to.Key]
	if !ok {
		if c.at == nil {
			c.at = make(map[fleet.Key]int)
		}
		i = len(c.list)
		c.at[to.Key] = i
		c.list = append(c.list, transport.Commands{To: to})
	}
	c.list[i].Commands = append(c.list[i].Commands, command)
}

// commander sends commands to nodes.
type commander struct {
	fleet     *fleet.Fleet
	transport Transport
	lease     Lease
}

// send sends commands to their nodes, if the lease is valid.
func (s *commander) send(ctx context.Context, c commands) error {
	if len(c.list) == 0 || !s.lease.Valid() {
		return nil
	}
	var recalled []string
	for i := range c.list {
		for _, command := range c.list[i].Commands {
			if command.Kind == events.CommandRecall || command.Kind == events.CommandPause {
				recalled = append(recalled, command.ClaimID)
			}
		}
	}
	s.fleet.Recalled(recalled) // before a node can answer
	return s.transport.Control(ctx, s.lease.Term(), c.list)
}

// Recall asks nodes to release claims that they have not started.
func (m *Monitor) Recall(ctx context.Context, claims []fleet.Claim) error {
	var list commands
	for i := range claims {
		c := &claims[i]
		if to, there := m.fleet.Target(c.Key); there {
			list.add(to, events.Command{Kind: events.CommandRecall, ID: c.TaskID, Attempt: c.Attempt, ClaimID: c.ID})
		}
	}
	if err := m.commander.send(ctx, list); err != nil {
		return fmt.Errorf("recall %d tasks: %w", len(claims), err)
	}
	return nil
}
