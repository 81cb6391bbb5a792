package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/events/quarantine"
	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/registry"
)

// protocol is the major version of the events that a node reads.
const protocol = events.Version

// errAgain says that a session lost its trust, that all its work has stopped, and that another one may begin.
var errAgain = errors.New("the session has ended")

// Waits.
const (
	minWait     = 50 * time.Millisecond // the first pause after a failure; it doubles
	maxWait     = 2 * time.Second
	callTimeout = 3 * time.Second         // one call of the bus
	byeTimeout  = 1500 * time.Millisecond // each part of the leave-taking
	remindEvery = 10 * time.Second        // how often a log line names the handlers that a lost session waits for
)

// phase is how far a session has come.
type phase uint8

const (
	joining phase = iota // not known to be registered: claims are taken in, nothing is started
	live                 // claims are taken in and started
	over                 // lost or closed: nothing is taken in or started, and no end is noted any more
)

// session is one incarnation: from its registration to its end.
type session struct {
	cfg      *Config
	log      *slog.Logger
	clock    clock.Clock
	bus      bus
	registry Registry
	handlers map[string]Handler
	base     context.Context // the values of Run's context, without its end
	spawn    func(func())    // starts a goroutine for handlers
	unsure   bool            // while it joins: a heartbeat without an answer may have registered the node

	node            registry.Node // what heartbeats say that does not change; the counter is guarded by mu
	partition       int           // of task.assign and task.control
	statusPartition int
	assign, control Reader
	usage           usage
	state           *state

	trusted atomic.Int64  // boot time until which the session trusts itself; 0 = it was never confirmed
	lost    chan struct{} // closed when the trust has ended
	bad     *quarantine.Quarantine
	wake    chan struct{} // something may have to be sent
	lookNow chan struct{} // the session's partitions may be gone
	beatNow chan struct{} // a heartbeat should not wait for its time
	idle    chan struct{} // the last handler has returned
	hurried chan struct{} // closed: a drain waits for no handler to end by itself

	mu          sync.Mutex // guards what follows
	phase       phase
	stopping    bool // it drains for good
	claims      *claims
	runs        map[*claim]*run
	terms       terms
	hastened    time.Duration    // when a heartbeat was last hastened for a new term; 0 = never
	aloud       []sending        // the last heartbeats that went over task.status
	notice      events.Notice    // not sent yet
	quarantined map[string]int64 // by topic: the highest offset that was put into quarantine
}

func newSession(ctx context.Context, n *Node, b bus, reg Registry, handlers map[string]Handler, template registry.Node) *session {
	template.Incarnation = newIncarnation()
	template.StartedAt = n.clock.Now().UnixMilli()
	return &session{
		cfg: &n.cfg, log: n.log, clock: n.clock, bus: b, registry: reg, handlers: handlers, base: context.WithoutCancel(ctx),
		spawn: func(work func()) { go work() },
		node:  template, hurried: n.hurried,
		lost: make(chan struct{}), wake: make(chan struct{}, 1), beatNow: make(chan struct{}, 1), lookNow: make(chan struct{}, 1), idle: make(chan struct{}, 1),
		bad:    quarantine.New(b, n.clock, n.log),
		claims: newClaims(newRoom(n.cfg.Capacity, n.cfg.Prefetch, n.cfg.CapacityByClass), n.limits), runs: map[*claim]*run{}, quarantined: map[string]int64{},
	}
}

func newIncarnation() string { return rand.Text() }

// run is the session's whole life. It returns errAgain if the trust was lost and all work has stopped, or never came in time.
func (s *session) run(ctx context.Context) error { //nolint:contextcheck // the loops outlive ctx: the session drains
	if !s.locate(ctx) {
		return nil // it ended before anybody knew of the node
	}
	reading, stopReading := context.WithCancel(s.base)
	var readers, writers sync.WaitGroup
	readers.Go(func() { s.read(reading, s.assign, s.assignRound) })
	readers.Go(func() { s.read(reading, s.control, s.controlRound) })
	stop := make(chan struct{})
	end := sync.OnceFunc(func() {
		stopReading()
		close(stop)
		readers.Wait()
		writers.Wait()
	})
	defer end()

	if joined, err := s.join(ctx); !joined {
		end()
		s.close()
		if errors.Is(err, errAgain) {
			s.sayGoodbye() //nolint:contextcheck // ctx may have ended
		}
		s.leave() //nolint:contextcheck // ctx may have ended; a heartbeat whose answer got lost may have registered the node
		return err
	}
	writers.Go(func() { s.beatLoop(stop) })
	writers.Go(func() { s.flushLoop(stop) })
	writers.Go(func() { s.trustLoop(stop) })
	writers.Go(func() { s.placeLoop(stop) })

	select {
	case <-ctx.Done():
		return s.drain(end) //nolint:contextcheck // ctx has ended
	case <-s.lost:
		end()
		return s.stopLost(ctx)
	}
}

// locate finds the node's partitions and makes readers that begin at their present ends. It waits for the topics, and reports false if
// ctx ended first.
func (s *session) locate(ctx context.Context) bool {
	said := ""
	for try := 0; ; try++ {
		err := s.locateRound(ctx)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		said = s.sayOnce(said, locateHint(err), err)
		if !s.pause(ctx.Done(), backoff(try)) {
			return false
		}
	}
}

func locateHint(err error) string {
	if errors.Is(err, kafka.ErrUnknownTopic) {
		return "the topics, which a controller creates when it starts"
	}
	return "Kafka"
}

func (s *session) locateRound(ctx context.Context) error {
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
	s.partition, s.statusPartition = events.Partition(s.node.ID, assigns), events.Partition(s.node.ID, statuses)
	s.node.Partition = s.partition
	if s.assign, err = s.readerAtEnd(ctx, events.TopicAssign); err != nil {
		return err
	}
	s.control, err = s.readerAtEnd(ctx, events.TopicControl)
	return err
}

func (s *session) readerAtEnd(ctx context.Context, topic string) (Reader, error) {
	ranges, err := s.bus.Offsets(ctx, topic, []int{s.partition})
	if err != nil {
		return nil, err
	}
	return s.bus.reader(topic, s.partition, kafka.Position{Offset: ranges[s.partition].End}), nil
}

// successor is what the heartbeats of the next session of this process say. It may take this one's place at once: all its work has ended.
// One that was never registered, as far as is known, leaves to it whom it replaces itself.
func (s *session) successor(template registry.Node) registry.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	template.Replaces, template.Crashed = s.node.Replaces, s.node.Crashed
	if s.trusted.Load() != 0 {
		template.Replaces, template.Crashed = s.node.Incarnation, false
	}
	return template
}

// drain is the clean end. end stops the loops.
func (s *session) drain(end func()) error {
	s.state.name(s.node.Incarnation, true)
	s.mu.Lock()
	s.stopping = true
	s.drainLocked()
	running := len(s.runs)
	s.mu.Unlock()
	s.log.Info("draining", "running", running, "soft", s.cfg.DrainSoft, "hard", s.cfg.DrainHard)
	signal(s.wake)
	signal(s.beatNow)
	if !s.settleDownOr(s.hurried, s.cfg.DrainSoft) {
		s.cancelAll(ErrDraining)
		s.settleDown(s.cfg.DrainHard)
	}
	end()
	if s.isLost() {
		if left := s.close(); len(left) > 0 {
			return leftError("lost its lease while it drained, and handlers did not return", left)
		}
		s.leave()
		return fmt.Errorf("node %s: %w while it drained: what had not been reported runs again elsewhere", s.node.ID, ErrLeaseLost)
	}
	unsent := s.flushAll()
	if left := s.close(); len(left) > 0 {
		return leftError(fmt.Sprintf("handlers did not return within DRAIN_HARD (%s); the node does not leave the registry, so that their tasks"+
			" go elsewhere only when its lease is over", s.cfg.DrainHard), left)
	}
	s.sayGoodbye()
	s.leave()
	if unsent > 0 {
		s.log.Warn("reports could not be sent before the node left; these tasks run again elsewhere", "reports", unsent)
	}
	s.log.Info("left")
	return nil
}

// stopLost waits until the handlers of a session that lost its trust have returned.
func (s *session) stopLost(ctx context.Context) error {
	for !s.settleDownOr(ctx.Done(), remindEvery) {
		if ctx.Err() != nil {
			if !s.settleDown(s.cfg.DrainHard) {
				return leftError("handlers did not return after the lease was lost", s.close())
			}
			break
		}
		s.log.Warn("lease lost: waiting for handlers that do not return at the end of their context", "tasks", names(s.left()))
	}
	s.close()
	s.sayGoodbye() //nolint:contextcheck // ctx may have ended; the node holds nothing any more
	s.leave()      //nolint:contextcheck // ctx may have ended
	return errAgain
}

// settleDown waits until no handler runs, or d has passed. It reports whether none runs.
func (s *session) settleDown(d time.Duration) bool { return s.settleDownOr(nil, d) }

func (s *session) settleDownOr(done <-chan struct{}, d time.Duration) bool {
	timer := s.clock.NewTimer(d)
	defer timer.Stop()
	for {
		if len(s.left()) == 0 {
			return true
		}
		select {
		case <-s.idle:
		case <-timer.C():
			return len(s.left()) == 0
		case <-done:
			return len(s.left()) == 0
		}
	}
}

// left lists the claims whose handlers run.
func (s *session) left() []*claim {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*claim, 0, len(s.runs))
	for c := range s.runs {
		list = append(list, c)
	}
	return list
}

// cancelAll ends the contexts of all handlers.
func (s *session) cancelAll(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs {
		r.cancel(cause)
	}
}

// close ends the session for its handlers: what still runs is noted nowhere any more. It returns those claims.
func (s *session) close() []*claim {
	s.mu.Lock()
	s.phase = over
	s.mu.Unlock()
	return s.left()
}

// sayGoodbye tells the leader that the node holds nothing any more.
func (s *session) sayGoodbye() {
	ctx, cancel := context.WithTimeout(s.base, byeTimeout)
	defer cancel()
	if err := s.publish(ctx, events.NoticeLeft, nil, func(int, int) {}); err != nil {
		s.log.Warn("the leader was not told that the node left", "error", err)
	}
}

// leave takes the node out of the registry.
func (s *session) leave() {
	ctx, cancel := context.WithTimeout(s.base, byeTimeout)
	defer cancel()
	if err := s.registry.Leave(ctx, s.node.ID, s.node.Incarnation); err != nil {
		s.log.Warn("the node's registration is left to expire", "error", err)
	}
}

func (s *session) now() int64 { return s.clock.Now().UnixMilli() }

// pause waits for d. It reports false if done came first.
func (s *session) pause(done <-chan struct{}, d time.Duration) bool {
	timer := s.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-done:
		return false
	}
}

// backoff is the pause after the failure with this number, the first being 0.
func backoff(failures int) time.Duration {
	return min(minWait<<min(failures, 10), maxWait)
}

// signal fills a channel of one place; a full one is signalled already.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// maxNames bounds how many tasks an error or a log line names.
const maxNames = 10

func leftError(what string, left []*claim) error {
	return fmt.Errorf("node: %s: %d still run: %s", what, len(left), names(left))
}

func names(list []*claim) string {
	var all []string
	for _, c := range list {
		all = append(all, fmt.Sprintf("%s (%s)", c.task.ID, c.task.ClassName))
	}
	slices.Sort(all)
	if n := len(all); n > maxNames {
		all = append(all[:maxNames], fmt.Sprintf("and %d more", n-maxNames))
	}
	return strings.Join(all, ", ")
}
