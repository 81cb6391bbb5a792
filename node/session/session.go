package session

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/events/quarantine"
	"github.com/skalds-go/skalds/pkg/config"
	"github.com/skalds-go/skalds/pkg/loop"
	"github.com/skalds-go/skalds/pkg/registry"
)

// Protocol is the major version of the events that a node reads.
const Protocol = events.Version

// Config is what a process runs its sessions with.
type Config struct {
	Node     *config.Node       // valid
	Template registry.Node      // what every heartbeat says; the sessions fill in the rest
	Handlers map[string]Handler // by class
	Log      *slog.Logger
	// Hurry, when it is closed, has no drain wait for what runs.
	Hurry loop.Wake
	Seams Seams
}

// errAgain says that a session is over and all its work has stopped, and that another one may begin.
var errAgain = errors.New("the session has ended")

// Serve runs sessions, one after the other, until ctx ends. Then the last one drains. The error says what went wrong
// with that; nothing else ends Serve.
func Serve(ctx context.Context, cfg Config) error {
	cfg.Seams.setDefaults(cfg.Log)
	lock, err := openLockFile(&cfg)
	if err != nil {
		return err
	}
	next := cfg.Template
	for ctx.Err() == nil {
		s := newSession(ctx, &cfg, next, lock)
		if err := s.serve(ctx); !errors.Is(err, errAgain) {
			if err == nil {
				lock.close() // else handlers run on, and the lock ends with the process
			}
			return err
		}
		next = s.successor(next)
	}
	lock.close()
	return nil
}

// Session is one incarnation: from its registration to its end.
type Session struct {
	*core
	heart    heart
	exec     executor
	reporter reporter
	inbox    inbox

	bus             Bus
	registry        Registry
	runner          loop.Runner
	lock            *lockFile
	hurry           loop.Wake
	observe         func(*Session, Stage)
	partition       int // of task.assign and task.control
	assign, control Reader
	unsure          bool // while it joins: a heartbeat without an answer may have registered the node
}

func newSession(ctx context.Context, cfg *Config, template registry.Node, lock *lockFile) *Session {
	seams := &cfg.Seams
	template.Incarnation = seams.Incarnation()
	template.StartedAt = seams.Clock.Now().UnixMilli()
	c := &core{
		cfg: cfg.Node, id: template.ID, self: template.Incarnation, log: cfg.Log, clock: seams.Clock, driver: seams.Runner.Driver,
		base:     context.WithoutCancel(ctx),
		flushNow: loop.NewWake(), beatNow: loop.NewWake(), lookNow: loop.NewWake(), idle: loop.NewWake(),
		claims: newClaims(newSlots(cfg.Node.Capacity, cfg.Node.Prefetch, cfg.Node.CapacityByClass), defaultClaimLimits),
	}
	s := &Session{
		core: c, bus: seams.Bus, registry: seams.Registry, lock: lock, hurry: cfg.Hurry, observe: seams.Observe,
		runner: seams.Runner,
		heart:  heart{core: c, registry: seams.Registry, bus: seams.Bus, usage: usage{load: seams.Load}, node: template},
		exec:   executor{core: c, handlers: cfg.Handlers, runs: map[*claim]*Run{}},
	}
	s.reporter = reporter{core: c, heart: &s.heart, exec: &s.exec, bus: seams.Bus}
	s.inbox = inbox{
		core: c, heart: &s.heart, exec: &s.exec,
		quarantine: quarantine.New(seams.Bus, seams.Clock, cfg.Log), quarantined: map[string]int64{},
	}
	c.lease = lease{clock: seams.Clock, term: cfg.Node.LostAfter - cfg.Node.StopMargin, lost: make(loop.Wake), onEnd: s.stopWorkLocked}
	s.observe(s, Made)
	return s
}

// NewIncarnation returns a random name for a session.
func NewIncarnation() string { return rand.Text() }

// stopWorkLocked ends all work, as the lease has ended.
func (s *Session) stopWorkLocked(why string) {
	s.exec.cancelAllLocked(ErrLeaseLost)
	s.log.Error("lease lost: all work stops", "reason", why, "running", len(s.exec.runs))
}

// successor returns what the heartbeats of the next session of this process say. That one may take this one's place at
// once: all its work has ended. A session that was never registered, as far as is known, leaves to it whom it replaces
// itself.
func (s *Session) successor(template registry.Node) registry.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	template.Replaces, template.Crashed = s.heart.node.Replaces, s.heart.node.Crashed
	if s.lease.until.Load() != 0 {
		template.Replaces, template.Crashed = s.self, false
	}
	return template
}

// Incarnation returns the name of the session.
func (s *Session) Incarnation() string { return s.self }

// TrustedUntil returns the boot time at which the lease ends; 0 if no heartbeat was ever confirmed.
func (s *Session) TrustedUntil() time.Duration { return time.Duration(s.lease.until.Load()) }

// IsLost reports whether the session has lost its lease.
func (s *Session) IsLost() bool { return s.lease.isLost() }

// Held returns how many claims the session has not forgotten; ended ones are among them until they are acknowledged.
func (s *Session) Held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.claims.byID)
}

// Confirm extends the lease as if a heartbeat that was sent at this boot time had been confirmed. Only the simulation
// calls it, to break what makes the lease safe and see that it is found.
func (s *Session) Confirm(sent time.Duration) { s.confirm(sent) }

// locate finds the session's partitions and makes readers that begin at their present ends.
func (s *Session) locate(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	assigns, err := s.bus.Partitions(ctx, events.TopicAssign)
	if err != nil {
		return err
	}
	statuses, err := s.bus.Partitions(ctx, events.TopicStatus)
	if err != nil {
		return err
	}
	s.partition, s.heart.statusPartition = events.Partition(s.id, assigns), events.Partition(s.id, statuses)
	s.heart.node.Partition = s.partition
	if s.assign, err = s.readerAtEnd(ctx, events.TopicAssign); err != nil {
		return err
	}
	s.control, err = s.readerAtEnd(ctx, events.TopicControl)
	return err
}

func (s *Session) readerAtEnd(ctx context.Context, topic string) (Reader, error) {
	ranges, err := s.bus.Offsets(ctx, topic, []int{s.partition})
	if err != nil {
		return nil, err
	}
	return s.bus.Reader(topic, s.partition, kafka.Position{Offset: ranges[s.partition].End}), nil
}

// join sends one heartbeat that may register the node, and opens the session for work if it did. Since is a boot time
// at which the node certainly was not registered.
//
// A heartbeat whose answer got lost may have registered the node, and brought it claims. If so much time has passed
// since then that they may have been reassigned, the session must not start them: join returns errAgain, and the next
// session begins with nothing. It also does if the id is another's after that: the node may have been put out of the
// registry.
func (s *Session) join(ctx context.Context, since time.Duration) error {
	s.proveDeath()
	sent := s.clock.Boot()
	switch err := s.heart.send(ctx, s.heart.timeout()); {
	case errors.Is(err, registry.ErrTaken) && s.unsure:
		s.log.Warn("the node may have been registered, and has lost its place: it registers anew", "error", err)
		return errAgain
	case err != nil:
		s.unsure = s.unsure || !errors.Is(err, registry.ErrTaken)
		return err
	}
	if took := s.clock.Boot() - since; took >= s.lease.term {
		s.log.Warn("the registration took too long: the node registers anew", "after", took)
		return errAgain
	}
	s.confirm(sent)
	if !s.begin() {
		s.log.Warn("the leader has given up the registration meanwhile: the node registers anew")
		return errAgain
	}
	return nil
}

// proveDeath has the heartbeats name a predecessor that is known to be dead, once that is known.
func (s *Session) proveDeath() {
	if d, ok := s.lock.lock(); ok {
		s.log.Info("the predecessor is known to be dead", "incarnation", d.incarnation, "crashed", d.crashed)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.heart.node.Replaces, s.heart.node.Crashed = d.incarnation, d.crashed
	}
}

// begin opens the session for work. It reports false if the leader has fenced it already.
func (s *Session) begin() bool {
	s.mu.Lock()
	if !s.lease.begin() {
		s.mu.Unlock()
		return false
	}
	s.reporter.notice = events.NoticeJoined
	s.exec.startLocked(s.now())
	s.mu.Unlock()
	s.lock.write(s.self, false)
	s.flushNow.Signal()
	s.log.Info("registered", "incarnation", s.self, "partition", s.partition, "capacity", s.cfg.Capacity, "classes", s.heart.node.Classes)
	return true
}

// close ends the session for its handlers: what still runs is recorded nowhere any more. It returns those claims.
func (s *Session) close() unreturned {
	s.mu.Lock()
	s.lease.phase = over
	s.mu.Unlock()
	return s.exec.running()
}

// leave takes the node out of the registry.
func (s *Session) leave() {
	ctx, cancel := context.WithTimeout(s.base, goodbyeTimeout)
	defer cancel()
	if err := s.registry.Leave(ctx, s.id, s.self); err != nil {
		s.log.Warn("the node's registration is left to expire", "error", err)
	}
}
