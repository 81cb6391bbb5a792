package monitor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// observe reads all nodes and gives away the work of those that are gone.
func (m *Monitor) observe(ctx context.Context) error {
	began := m.clock.Boot()
	snap, err := m.registry.Snapshot(ctx)
	if err != nil {
		m.fleet.RegistryFailed()
		return fmt.Errorf("read the nodes: %w", err)
	}
	fresh, lost := m.fleet.Observe(snap, began, m.clock.Boot())
	if fresh {
		m.room()
	}
	failure := errors.Join(m.putOut(ctx), m.await(ctx, lost))
	for _, l := range lost {
		b, waits := m.barriers[l.Key]
		if !waits {
			continue
		}
		if there, err := m.reached(ctx, b); err != nil || !there {
			failure = errors.Join(failure, err)
			continue
		}
		if err := m.giveAway(ctx, l); err != nil {
			failure = err
			if ctx.Err() != nil || errors.Is(err, store.ErrUnavailable) {
				break // else a task of this node cannot be taken back: that is not to hold up the others
			}
		}
	}
	return failure
}

// putOut puts those out of the registry that beat though their work was given away: no fence has reached them. They stop, and register as new
// incarnations.
func (m *Monitor) putOut(ctx context.Context) error {
	var failure error
	for _, k := range m.fleet.Zombies() {
		if !m.lease.Valid() {
			return failure
		}
		if err := m.evict(ctx, k, "whose work was given away"); err != nil {
			failure = err
			continue
		}
		m.log.Warn("a node beats whose work was given away; it is put out of the registry", "node", k.Node, "incarnation", k.Incarnation)
	}
	return failure
}

// await notes for nodes whose work is to be given away what ingest must reach before, and forgets those that live after all. Those that fell
// silent are fenced, so that one that still hears stops at once.
func (m *Monitor) await(ctx context.Context, lost []fleet.Lost) error {
	still := make(map[fleet.Key]bool, len(lost))
	var fresh []fleet.Lost
	for _, l := range lost {
		still[l.Key] = true
		if _, waits := m.barriers[l.Key]; !waits {
			fresh = append(fresh, l)
		}
	}
	maps.DeleteFunc(m.barriers, func(k fleet.Key, _ *barrier) bool { return !still[k] })
	if len(fresh) == 0 {
		return nil
	}
	m.fence(ctx, fresh)
	b, err := m.barrier(ctx)
	if err != nil {
		return fmt.Errorf("give away the work of %d nodes: %w", len(fresh), err)
	}
	for _, l := range fresh {
		m.barriers[l.Key] = b
	}
	return nil
}

// fenceTimeout bounds the sending of fences. They are a courtesy: a node that they do not reach has stopped by its own clock.
const fenceTimeout = 500 * time.Millisecond

// fence tells nodes that fell silent to stop.
func (m *Monitor) fence(ctx context.Context, lost []fleet.Lost) {
	var list []fleet.Target
	for _, l := range lost {
		if to, ok := m.fleet.Target(l.Key); ok && l.Loss == task.LossSilent {
			list = append(list, to)
		}
	}
	if len(list) == 0 || !m.lease.Valid() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, fenceTimeout)
	defer cancel()
	if err := m.transport.Fence(ctx, m.lease.Term(), list); err != nil {
		m.log.Debug("nodes were not fenced; they have stopped by their own clocks", "nodes", len(list), "error", err)
	}
}

// giveAway takes a node's tasks back. Ingest has come so far that what the node said in time counts.
func (m *Monitor) giveAway(ctx context.Context, l fleet.Lost) error {
	k := l.Key
	claims := m.fleet.Reassign(k, m.clock.Boot())
	for len(claims) > 0 {
		n := min(len(claims), store.MaxBatch)
		if err := m.lose(ctx, claims[:n], l.Loss); err != nil {
			return fmt.Errorf("give away the work of node %s: %w", k.Node, err)
		}
		m.log.Warn("a node is gone; its tasks wait again", "node", k.Node, "incarnation", k.Incarnation, "tasks", n)
		claims = claims[n:]
		m.room()
	}
	// Its place is free for its successor. Where this fails, the key expires by itself.
	if err := m.registry.Leave(ctx, k.Node, k.Incarnation); err != nil {
		m.log.Debug("the keys of a node that is gone were not removed", "node", k.Node, "error", err)
	}
	delete(m.barriers, k)
	return nil
}

// lose takes claims back, each as the store has it now.
func (m *Monitor) lose(ctx context.Context, claims []fleet.Claim, loss task.Loss) error {
	tasks, err := m.read(ctx, claims)
	if err != nil {
		return err
	}
	now := m.clock.Now().UnixMilli()
	var changes []task.Change
	var again, ended []string
	for _, c := range claims {
		t, found := tasks[c.TaskID]
		over := !found || t.LifecycleStatus.Terminal()
		if found && holds(t, c) {
			if change, ok := task.Lose(t, loss, m.cfg.Policy, now); ok {
				changes = append(changes, change)
				over = change.To.Terminal()
			}
		}
		if over {
			ended = append(ended, c.ID)
		} else {
			again = append(again, c.ID)
		}
	}
	if !m.lease.Valid() {
		return nil
	}
	n, err := m.store.Apply(ctx, changes)
	if err != nil {
		return fmt.Errorf("take %d tasks back: %w", len(changes), err)
	}
	if n == len(changes) {
		m.fleet.TakenBack(again, ended)
	} // else some changed meanwhile: the next round looks at them again
	return nil
}
