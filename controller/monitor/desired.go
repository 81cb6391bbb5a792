package monitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// Desired carries out what people have requested of tasks: it forwards requests to the nodes that hold the tasks, and
// carries them out for tasks that no node holds any more. A request is forwarded again and again until a report of the
// node ends it. What is beyond one page is left to compare. New attachments are forwarded, too.
func (m *Monitor) Desired(ctx context.Context) error {
	tasks, err := m.store.Desired(ctx, store.MaxBatch)
	if err != nil {
		return fmt.Errorf("read the tasks of which something is desired: %w", err)
	}
	return errors.Join(m.applyDesired(ctx, tasks), m.attachments.forward(ctx))
}

func (m *Monitor) applyDesired(ctx context.Context, tasks []task.Task) error {
	return errors.Join(m.changeUnheld(ctx, tasks), m.forward(ctx, tasks))
}

// changeUnheld carries out the requests for tasks that no node holds. They came while a node did.
func (m *Monitor) changeUnheld(ctx context.Context, tasks []task.Task) error {
	now := m.clock.Now().UnixMilli()
	var changes []task.Change
	for i := range tasks {
		if c, ok := task.ApplyDesired(&tasks[i], now); ok {
			changes = append(changes, c)
		}
	}
	for len(changes) > 0 && m.lease.Valid() {
		n := min(len(changes), store.MaxBatch)
		if _, err := m.store.Apply(ctx, changes[:n]); err != nil {
			return fmt.Errorf("carry out what is desired of %d tasks: %w", n, err)
		}
		changes = changes[n:]
		m.capacity() // one may wait again
	}
	return nil
}

// forwarded is a request that was forwarded to a node.
type forwarded struct {
	kind events.CommandKind
	at   time.Duration
}

// forwardEvery is the least time until a request is forwarded again. A handler may leave one unanswered for as long as
// it likes.
const forwardEvery = 500 * time.Millisecond

var commandOf = map[task.Desired]events.CommandKind{
	task.DesiredCancelled: events.CommandCancel,
	task.DesiredPaused:    events.CommandPause,
	task.DesiredRunning:   events.CommandResume,
}

// forward sends requests to the nodes that hold the tasks.
func (m *Monitor) forward(ctx context.Context, tasks []task.Task) error {
	var list commands
	now := m.clock.Boot()
	still := make(map[string]forwarded, len(tasks))
	for i := range tasks {
		t := &tasks[i]
		kind, known := commandOf[t.Desired]
		to, there := m.fleet.Target(fleet.Key{Node: t.Executor, Incarnation: t.Incarnation})
		if !there || !known {
			continue
		}
		if was, ok := m.forwarded[t.ClaimID]; ok && was.kind == kind && now-was.at < forwardEvery {
			still[t.ClaimID] = was
			continue
		}
		still[t.ClaimID] = forwarded{kind, now}
		list.add(to, events.Command{Kind: kind, ID: t.ID, Attempt: t.Attempt, ClaimID: t.ClaimID})
	}
	m.forwarded = still
	if err := m.commander.send(ctx, list); err != nil {
		m.forwarded = nil
		return fmt.Errorf("forward what is desired of tasks: %w", err)
	}
	return nil
}
