package session

import (
	"context"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/events/quarantine"
	"github.com/skalds-go/skalds/pkg/loop"
)

// inbox takes in the events of task.assign and task.control.
type inbox struct {
	*core
	heart       *heart
	exec        *executor
	quarantine  *quarantine.Quarantine
	quarantined map[string]int64 // by topic: the highest offset that was put into quarantine
}

// loop reads one partition.
func (in *inbox) loop(name, topic string, r Reader, receive func(value []byte) error) loop.Loop {
	return loop.Loop{
		Name: name, Failure: "a partition cannot be read; it is tried again",
		Step: func(ctx context.Context, _ loop.Wake) (loop.Next, error) {
			records, err := r.Next(ctx)
			if err != nil {
				return loop.Next{}, err
			}
			for i := range records {
				if !in.isForUs(&records[i]) {
					continue
				}
				if err := receive(records[i].Value); err != nil {
					in.setAside(topic, &records[i], err) //nolint:contextcheck // also one that the end of the loops comes upon
				}
			}
			in.flushNow.Signal()
			return loop.Next{}, nil
		},
	}
}

// isForUs reports whether a record may be addressed to this incarnation, by its headers alone.
func (in *inbox) isForUs(r *kafka.Record) bool {
	for i := range r.Headers {
		switch h := &r.Headers[i]; h.Key {
		case events.HeaderNode:
			if string(h.Value) != in.id {
				return false
			}
		case events.HeaderIncarnation:
			if string(h.Value) != in.self {
				return false
			}
		}
	}
	return true
}

// isAddressed reports whether an event is for this incarnation. An event without recipient is for every node.
func (in *inbox) isAddressed(recipient, incarnation string) bool {
	return recipient == "" || (recipient == in.id && incarnation == in.self)
}

// receiveAssign takes in an event of task.assign.
func (in *inbox) receiveAssign(value []byte) error {
	a, err := events.DecodeAssign(value)
	if err != nil || !in.isAddressed(string(a.Recipient), a.Incarnation) {
		return err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.lease.isOpen() || !in.heart.isCurrentLocked(a.Term) {
		return nil
	}
	if a.Recipient != "" {
		in.terms.setRoundRobinCount(a.RoundRobinCount)
	}
	in.heart.confirmLocked(a.Heartbeats)
	in.claims.acknowledge(a.Acknowledged)
	now := in.now()
	for i := range a.Tasks {
		t := &a.Tasks[i]
		_, known := in.exec.handlers[t.ClassName]
		in.claims.receive(*t, known, now)
		in.exec.startLocked(now)
	}
	return nil
}

// receiveControl takes in an event of task.control.
func (in *inbox) receiveControl(value []byte) error {
	c, err := events.DecodeControl(value)
	if err != nil || !in.isAddressed(c.Recipient, c.Incarnation) {
		return err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.lease.isOpen() || !in.heart.isCurrentLocked(c.Term) {
		return nil
	}
	if c.Fence {
		in.lease.fence()
		return nil
	}
	if c.Drain != nil {
		in.setDrainingLocked(*c.Drain)
	}
	now := in.now()
	for i := range c.Commands {
		switch cmd := &c.Commands[i]; cmd.Kind {
		case events.CommandCancel:
			if running := in.claims.cancel(cmd.ClaimID, now); running != nil {
				in.exec.endLocked(in.exec.runs[running], ErrCancelled)
			}
		case events.CommandPause:
			in.claims.pause(cmd.ClaimID, now)
		case events.CommandRecall:
			in.claims.recall(cmd.ClaimID, now)
		case events.CommandResume:
			in.exec.resumeLocked(cmd.ClaimID)
		case events.CommandUpdate:
			in.claims.update(cmd.ClaimID, cmd.AttachmentsVersion, cmd.Attachments)
		}
	}
	in.exec.startLocked(now) // one that left the queue may have kept others from starting
	return nil
}

// setDrainingLocked drains the node on request, or ends that. A draining node goes on with what runs, but for what
// pauses, and takes nothing new. A node that stops drains whatever is requested.
func (in *inbox) setDrainingLocked(drain bool) {
	if in.forGood || drain == in.claims.draining {
		return
	}
	if drain {
		in.exec.drainLocked()
	} else {
		in.claims.draining = false
	}
	in.log.Info("a drain was requested, or its end", "drain", drain, "running", len(in.exec.runs))
	in.beatNow.Signal()
}

// setAside puts a record that does not decode into quarantine, once, and steps over it.
func (in *inbox) setAside(topic string, r *kafka.Record, reason error) {
	in.mu.Lock()
	last, had := in.quarantined[topic]
	seen := had && r.Offset <= last
	if !seen {
		in.quarantined[topic] = r.Offset
	}
	in.mu.Unlock()
	if !seen {
		in.quarantine.Put(in.base, r, topic, reason)
	}
}
