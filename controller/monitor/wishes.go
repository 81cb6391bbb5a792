package monitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/transport"
	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// Desired carries out what people asked of tasks: it passes it on to the nodes that hold them, and does it for those that no node holds any
// more. It is repeated until the node's report ends the wish. What is beyond one page is carried out by compare. New attachments are passed
// on, too.
func (m *Monitor) Desired(ctx context.Context) error {
	tasks, err := m.store.Desired(ctx, store.MaxBatch)
	if err != nil {
		return fmt.Errorf("read wishes: %w", err)
	}
	return errors.Join(m.carryOut(ctx, tasks), m.update(ctx))
}

func (m *Monitor) carryOut(ctx context.Context, tasks []task.Task) error {
	return errors.Join(m.settle(ctx, tasks), m.pass(ctx, tasks))
}

// settle carries out the wishes for tasks that no node holds: they came while a node did.
func (m *Monitor) settle(ctx context.Context, tasks []task.Task) error {
	now := m.clock.Now().UnixMilli()
	var changes []task.Change
	for i := range tasks {
		if c, ok := task.Settle(&tasks[i], now); ok {
			changes = append(changes, c)
		}
	}
	for len(changes) > 0 && m.lease.Valid() {
		n := min(len(changes), store.MaxBatch)
		if _, err := m.store.Apply(ctx, changes[:n]); err != nil {
			return fmt.Errorf("settle what was asked of %d tasks: %w", n, err)
		}
		changes = changes[n:]
		m.room() // one may wait again
	}
	return nil
}

// passed is a wish that was passed on.
type passed struct {
	kind events.CommandKind
	at   time.Duration
}

// repeatAfter is when a wish is passed on again at the earliest. A handler may leave one standing for as long as it likes.
const repeatAfter = 500 * time.Millisecond

var commands = map[task.Desired]events.CommandKind{
	task.DesiredCancelled: events.CommandCancel, task.DesiredPaused: events.CommandPause, task.DesiredRunning: events.CommandResume,
}

// pass gives orders to the nodes that hold the tasks.
func (m *Monitor) pass(ctx context.Context, tasks []task.Task) error {
	var list orders
	now := m.clock.Boot()
	still := make(map[string]passed, len(tasks))
	for i := range tasks {
		t := &tasks[i]
		kind, known := commands[t.Desired]
		to, there := m.fleet.Target(fleet.Key{Node: t.Executor, Incarnation: t.Incarnation})
		if !there || !known {
			continue
		}
		if was, ok := m.passed[t.ClaimID]; ok && was.kind == kind && now-was.at < repeatAfter {
			still[t.ClaimID] = was
			continue
		}
		still[t.ClaimID] = passed{kind, now}
		list.add(to, events.Command{Kind: kind, ID: t.ID, Attempt: t.Attempt, ClaimID: t.ClaimID})
	}
	m.passed = still
	if err := m.order(ctx, list); err != nil {
		m.passed = nil
		return fmt.Errorf("pass on wishes: %w", err)
	}
	return nil
}

// orders are commands by node, in the order in which the nodes came.
type orders struct {
	list []transport.Commands
	at   map[fleet.Key]int
}

func (o *orders) add(to fleet.Target, c events.Command) {
	n, ok := o.at[to.Key]
	if !ok {
		if o.at == nil {
			o.at = make(map[fleet.Key]int)
		}
		n = len(o.list)
		o.at[to.Key] = n
		o.list = append(o.list, transport.Commands{To: to})
	}
	o.list[n].Commands = append(o.list[n].Commands, c)
}

func (m *Monitor) order(ctx context.Context, o orders) error {
	if len(o.list) == 0 || !m.lease.Valid() {
		return nil
	}
	var back []string
	for i := range o.list {
		for _, c := range o.list[i].Commands {
			if c.Kind == events.CommandRecall || c.Kind == events.CommandPause {
				back = append(back, c.ClaimID)
			}
		}
	}
	m.fleet.Recalled(back) // before a node can answer
	return m.transport.Control(ctx, m.lease.Term(), o.list)
}
