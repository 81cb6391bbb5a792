package node

import (
	"context"
	"errors"
	"time"

	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/registry"
)

// Rounds is one session of a node whose rounds the caller makes, one call at a time and in any order, in place of the loops of [Node.Run].
// It is there for the simulation in test/sim, which runs the real rounds under a scheduler of its own, and for nothing else. No method
// waits for anything but the bus and the registry that the node was given.
type Rounds struct {
	n        *Node
	template registry.Node
	s        *session
	failures int // heartbeats in a row that were not confirmed
}

// StateFile is the node's file in SKALD_STATE_DIR with its lock.
type StateFile interface {
	TryLock() bool
	Read() []byte
	Write(b []byte)
	Boot() string // names this boot of the machine
}

// NewRounds makes the first session of a process, this incarnation. The node must have been given its bus and its registry, and can have no
// Run. Spawn is called with what has to run beside the caller: handlers, one after the other.
func NewRounds(n *Node, incarnation string, spawn func(work func())) (*Rounds, error) {
	handlers, err := n.chain()
	if err != nil {
		return nil, err
	}
	r := &Rounds{n: n, template: n.template(handlers)}
	r.s = newSession(context.Background(), n, n.bus, n.registry, handlers, r.template)
	r.s.node.Incarnation, r.s.spawn = incarnation, spawn
	return r, nil
}

// Prove has the node prove by a file that its predecessor is dead.
func (r *Rounds) Prove(f StateFile) {
	r.s.state = &state{log: r.n.log, file: givenFile{f}, boot: f.Boot()}
}

// Measure has heartbeats say how busy the machine is by load, from 0 to 1: what the real one says would make each history another.
func (r *Rounds) Measure(load func() float64) { r.s.usage.given = load }

// Next makes the session that follows this one, of which nothing runs any more, in the same process.
func (r *Rounds) Next(incarnation string) *Rounds {
	next := &Rounds{n: r.n, template: r.s.successor(r.template)}
	next.s = newSession(context.Background(), r.n, r.n.bus, r.n.registry, r.s.handlers, next.template)
	next.s.node.Incarnation, next.s.spawn, next.s.state = incarnation, r.s.spawn, r.s.state
	next.s.usage.given = r.s.usage.given
	return next
}

// givenFile is a StateFile as the state's.
type givenFile struct{ StateFile }

func (f givenFile) tryLock() (bool, error) { return f.TryLock(), nil }
func (f givenFile) read() ([]byte, error)  { return f.Read(), nil }
func (f givenFile) write(b []byte) error   { f.Write(b); return nil }
func (givenFile) close() error             { return nil }

var _ lockedFile = givenFile{}

// Locate finds the node's partitions and makes the readers of Assigns and Controls.
func (r *Rounds) Locate(ctx context.Context) error { return r.s.locateRound(ctx) }

// Assigns reads what AssignRound is to be given, and Controls what ControlRound is.
func (r *Rounds) Assigns() Reader { return r.s.assign }

// Controls reads what ControlRound is to be given.
func (r *Rounds) Controls() Reader { return r.s.control }

// AssignRound takes records of task.assign in.
func (r *Rounds) AssignRound(records []kafka.Record) { r.s.assignRound(records) }

// ControlRound takes records of task.control in.
func (r *Rounds) ControlRound(records []kafka.Record) { r.s.controlRound(records) }

// Join sends a heartbeat that may register the node; since is a boot time at which it certainly was not. Again says that it came too late:
// this session has to leave, and another one may begin.
func (r *Rounds) Join(ctx context.Context, since time.Duration) (again bool, err error) {
	err = r.s.joinRound(ctx, since)
	return errors.Is(err, errAgain), err
}

// Beat sends a heartbeat and says whether it was confirmed.
func (r *Rounds) Beat() bool {
	before := r.s.trusted.Load()
	r.failures = r.s.beatRound(r.failures)
	return r.s.trusted.Load() != before
}

// Confirm counts the trust from another boot time than that of the last heartbeat's sending. It breaks what makes trust safe: the simulation
// does that to see it found.
func (r *Rounds) Confirm(sent time.Duration) { r.s.confirm(sent) }

// BeatNow says, once, that a heartbeat should not wait for its time.
func (r *Rounds) BeatNow() bool { return taken(r.s.beatNow) }

// Flush sends a batch of reports, and says whether there are more.
func (r *Rounds) Flush(ctx context.Context) (more bool, err error) { return r.s.flushRound(ctx) }

// FlushWanted says, once, that there may be something to send.
func (r *Rounds) FlushWanted() bool { return taken(r.s.wake) }

// FlushDue is the boot time at which something will have to be sent again, if there is such a time.
func (r *Rounds) FlushDue() (time.Duration, bool) { return r.s.flushDue() }

// Unsent is how many reports wait to be sent.
func (r *Rounds) Unsent() int {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return len(r.s.claims.dirty)
}

// Unsettled is how many claims the session holds, ended ones among them.
func (r *Rounds) Unsettled() int {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return len(r.s.claims.byID)
}

// Check says whether the session trusts itself, and ends its work if not any more.
func (r *Rounds) Check() bool { return r.s.check() }

// TrustedUntil is the boot time at which the trust ends; 0 if it never began.
func (r *Rounds) TrustedUntil() time.Duration { return time.Duration(r.s.trusted.Load()) }

// Lost says whether the trust has ended.
func (r *Rounds) Lost() bool { return r.s.isLost() }

// Running is how many handlers have not returned.
func (r *Rounds) Running() int { return len(r.s.left()) }

// Drain has the session take nothing new, and release what is queued or pauses.
func (r *Rounds) Drain() {
	r.s.state.name(r.s.node.Incarnation, true)
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.stopping = true
	r.s.drainLocked()
}

// CancelAll ends the contexts of all handlers, as of a node that drains.
func (r *Rounds) CancelAll() { r.s.cancelAll(ErrDraining) }

// Close ends the session: it notes nothing any more.
func (r *Rounds) Close() { r.s.close() }

// Goodbye tells the leader that the node holds nothing, and leaves the registry.
func (r *Rounds) Goodbye() {
	r.s.sayGoodbye()
	r.s.leave()
}

// Rest is what [Task.WaitWhilePaused] does before it waits: it says whether the run of a handler's context is to pause, and gives what is closed
// when it may go on.
func (r *Rounds) Rest(ctx context.Context) (goOn <-chan struct{}, pause bool) {
	if goOn, pause = r.s.rest(TaskFrom(ctx).claim); pause {
		signal(r.s.wake)
	}
	return goOn, pause
}

// ClaimID is the claim that a handler's context belongs to. It is a method only to keep it off the SDK.
func (*Rounds) ClaimID(ctx context.Context) string { return TaskFrom(ctx).claim.task.ClaimID }

func taken(signal chan struct{}) bool {
	select {
	case <-signal:
		return true
	default:
		return false
	}
}
