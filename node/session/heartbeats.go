package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skalds-go/skalds/pkg/loop"
	"github.com/skalds-go/skalds/pkg/registry"
)

// heart makes the session's heartbeats and sends them: to the registry, and if that does not answer, over Kafka to the
// leader.
type heart struct {
	*core
	registry Registry
	bus      Bus
	usage    usage

	node            registry.Node   // what heartbeats say that does not change; the lock guards the counter
	statusPartition int             // of task.status
	hastened        time.Duration   // when a heartbeat was last hastened for a new term; 0 = never
	unconfirmed     []sentHeartbeat // the last heartbeats over Kafka
}

// timeout bounds one heartbeat: several fit into the time that a lease holds.
func (h *heart) timeout() time.Duration {
	return max(h.cfg.HeartbeatInterval, h.lease.term/4)
}

// loop renews the registration in every heartbeat interval.
func (h *heart) loop() loop.Loop {
	return loop.Loop{
		Name: "heartbeat", Wakes: []loop.Wake{h.beatNow}, First: loop.After(h.cfg.HeartbeatInterval),
		Failure: "a heartbeat was not confirmed by the registry; the leader is asked to confirm the next ones",
		Step: func(context.Context, loop.Wake) (loop.Next, error) {
			began := h.clock.Boot()
			err := h.beat() //nolint:contextcheck // one that is under way when the loops end is not cut off
			return loop.After(began + h.cfg.HeartbeatInterval - h.clock.Boot()).Regardless(), err
		},
	}
}

// beat sends one heartbeat if the lease holds. The error says that the registry has not confirmed it.
func (h *heart) beat() error {
	sent := h.clock.Boot() // before the check: a process that is frozen in between must not count from its thawing
	if !h.isTrusted() {
		return nil
	}
	err := h.send(h.base, min(h.timeout(), h.lease.left()))
	if err == nil {
		h.confirm(sent)
		return nil
	}
	if errors.Is(err, registry.ErrTaken) {
		h.lose("another incarnation holds the node id")
	}
	left := h.lease.left()
	h.sendOverKafka()
	return fmt.Errorf("%w (the lease holds for another %s)", err, left)
}

// send sends one heartbeat to the registry.
func (h *heart) send(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	n := h.next()
	return h.registry.Heartbeat(ctx, &n)
}

// next makes the next heartbeat.
func (h *heart) next() registry.Node {
	u := h.usage.read(h.clock.Boot())
	h.mu.Lock()
	defer h.mu.Unlock()
	h.node.Counter++
	h.node.StartedAt = min(h.node.StartedAt, h.now()) // the clock was ahead, and has been set right
	n := h.node
	n.CPU, n.Memory, n.CPUs, n.MemoryTotal = u.cpu, u.memory, u.cpus, u.memoryTotal
	n.Term, n.RoundRobinCount = h.terms.term, h.terms.countBefore
	c := h.claims
	n.Running, n.Queued, n.Received, n.Finished = c.running, len(c.queue), c.received, c.finished
	n.SlotsRunning, n.SlotsQueued, n.RunningByClass = c.slots.used, c.slots.queued, c.slots.takenByClass()
	n.Tasks = c.held()
	if c.draining {
		n.State = registry.Draining
	}
	return n
}

// counter returns the number of the last heartbeat that was made.
func (h *heart) counter() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.node.Counter
}

// isCurrentLocked reports whether an event of this term counts. The first event of a higher term hastens a heartbeat,
// so that its leader need not wait for what it reads there; but not more than one in an interval.
func (h *heart) isCurrentLocked(term int64) bool {
	current, higher := h.terms.observe(term)
	if now := h.clock.Boot(); higher && (h.hastened == 0 || now-h.hastened >= h.cfg.HeartbeatInterval) {
		h.hastened = now
		h.beatNow.Signal()
	}
	return current
}
