package ingest

import (
	"context"
	"fmt"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/loop"
	"github.com/skalds-go/skalds/pkg/store"
)

// Reader reads one partition.
type Reader interface {
	Next(ctx context.Context) ([]kafka.Record, error)
	Position() kafka.Position
}

// Bus is the part of the bus that ingest uses.
type Bus interface {
	Partitions(ctx context.Context, topic string) (int, error)
}

const (
	ackAfter  = 50 * time.Millisecond // how long an acknowledgement may wait to be sent together with others
	saveAfter = time.Second           // how long a position may wait to be stored
	lastSave  = time.Second / 4       // how long storing the positions may take at the end
	growEvery = 2 * time.Second       // time between two checks for new partitions
	// aheadAfter is how long a read may wait for ingest before the heartbeats after it are read ahead.
	aheadAfter = 250 * time.Millisecond
)

// retryPause is the pause after a round that failed.
var retryPause = loop.Backoff{First: 20 * time.Millisecond, Max: time.Second}

// Service runs an ingest on all partitions of task.status, including those that are added while it runs.
type Service struct {
	ingest    *Ingest
	transport Transport
	term      int64
	bus       Bus
	open      func(partition int, from kafka.Position) Reader
	runner    loop.Runner
	progress  *Progress
	inbox     *inbox
	unconfirmed

	// Only the loop uses these.
	pending batch         // of a round that failed
	ackAt   time.Duration // when acknowledgements are sent; 0 = none wait
	saveAt  time.Duration // when positions are stored; 0 = all are

	// Listen and Load, of which one is called after the other, set these.
	listening *loop.Group
	early     *loop.Group // reads only heartbeats, until Load has succeeded
	loaded    bool
}

// NewService returns the service of one leadership. Open returns a reader of a partition of task.status.
func NewService(i *Ingest, t Transport, term int64, b Bus, open func(partition int, from kafka.Position) Reader, r loop.Runner) *Service {
	return &Service{ingest: i, transport: t, term: term, bus: b, open: open, runner: r,
		progress: &Progress{done: make(map[int]kafka.Position)}, inbox: newInbox(), unconfirmed: newUnconfirmed()}
}

// Progress returns how far the service has come.
func (s *Service) Progress() *Progress { return s.progress }

// Listen starts to take in records, in loops of the group: only heartbeats until [Service.Load] has succeeded, then
// all. Nodes that know of this leader obey no other one, even while the store does not answer from which positions to
// read.
func (s *Service) Listen(g *loop.Group) {
	s.listening = g
	g.Start(s.confirmLoop())
	if s.loaded {
		s.readAll()
		return
	}
	s.early = s.runner.Group(g.Context())
	s.early.Start(s.growLoop("early grow", 0, func(partition int) {
		s.early.Start(s.heartbeatLoop("early heartbeats", partition, kafka.Latest()))
	}))
}

// Load counts the partitions and reads the stored positions. A partition without a position is read from its earliest
// record. After Load the service takes in reports.
func (s *Service) Load(ctx context.Context) error {
	partitions, err := s.bus.Partitions(ctx, events.TopicStatus)
	if err != nil {
		return fmt.Errorf("count the partitions of %s: %w", events.TopicStatus, err)
	}
	stored, err := s.ingest.store.Positions(ctx, events.TopicStatus)
	if err != nil {
		return fmt.Errorf("read the positions in %s: %w", events.TopicStatus, err)
	}
	for p := range partitions {
		at := kafka.Earliest()
		if from, ok := stored[p]; ok {
			at = kafka.Position(from)
		}
		s.progress.set(p, at)
	}
	if s.early != nil {
		s.early.Stop()
	}
	s.loaded = true
	if s.listening != nil {
		s.readAll()
	}
	return nil
}

// readAll starts the loops that take in all records.
func (s *Service) readAll() {
	starts := s.progress.starts()
	for partition := range len(starts) {
		s.listening.Start(s.readLoop(partition, starts[partition]))
	}
	s.listening.Start(s.growLoop("grow", len(starts), func(partition int) {
		s.listening.Start(s.readLoop(partition, kafka.Earliest()))
	}), s.loop())
}

// growLoop returns the loop that finds new partitions. Nodes that join later may report there.
func (s *Service) growLoop(name string, have int, read func(partition int)) loop.Loop {
	return loop.Loop{
		Name:    name,
		Backoff: loop.Backoff{First: growEvery, Max: growEvery},
		Failure: "the partitions of " + events.TopicStatus + " cannot be counted; it will be tried again",
		Quiet:   true,
		Step: func(ctx context.Context, _ loop.Wake) (loop.Next, error) {
			n, err := s.bus.Partitions(ctx, events.TopicStatus)
			if err != nil {
				return loop.Next{}, err
			}
			for ; have < n; have++ {
				read(have)
			}
			return loop.After(growEvery), nil
		},
	}
}

// readLoop returns the loop that reads a partition. At most one of its reads waits for ingest.
func (s *Service) readLoop(partition int, from kafka.Position) loop.Loop {
	r, taken := s.open(partition, from), loop.NewWake()
	return loop.Loop{
		Name: "read status",
		Step: func(ctx context.Context, _ loop.Wake) (loop.Next, error) {
			records, err := r.Next(ctx)
			if err != nil {
				if ctx.Err() == nil {
					s.ingest.log.Error("reading stopped", "topic", events.TopicStatus, "partition", partition, "error", err)
				}
				return loop.Done(), nil
			}
			s.observe(records) // first, since heartbeats need no store
			s.inbox.put(read{partition: partition, records: records, after: r.Position(), taken: taken})
			if s.runner.Driver.Wait(ctx, aheadAfter, taken) == nil && ctx.Err() == nil {
				s.readAhead(ctx, partition, r.Position(), taken)
			}
			return loop.Next{}, nil
		},
	}
}

// readAhead reads the heartbeats after a read that ingest is too busy to take, until it takes that read. Everything
// else is read again later.
func (s *Service) readAhead(ctx context.Context, partition int, from kafka.Position, taken loop.Wake) {
	ahead := s.runner.Group(ctx)
	defer ahead.Stop()
	ahead.Start(s.heartbeatLoop("ahead", partition, from))
	s.runner.Driver.Wait(ctx, loop.Forever, taken)
}

// loop returns the loop that runs rounds over what the readers have read.
func (s *Service) loop() loop.Loop {
	return loop.Loop{
		Name:    "ingest",
		Wakes:   []loop.Wake{s.inbox.filled},
		First:   loop.OnWake(),
		Step:    s.step,
		Backoff: retryPause,
		Failure: "reports were not written; they will be tried again",
		End:     s.end,
	}
}

func (s *Service) step(ctx context.Context, _ loop.Wake) (loop.Next, error) {
	if s.pending.empty() {
		s.pending = s.inbox.nextBatch()
	}
	now := s.ingest.clock.Boot
	if !s.pending.empty() {
		if err := s.ingest.Round(ctx, s.pending.records); err != nil {
			return loop.Next{}, err
		}
		for partition, at := range s.pending.after {
			s.progress.set(partition, at)
		}
		s.pending = batch{}
		if s.ackAt == 0 && s.ingest.unsent > 0 {
			s.ackAt = now() + ackAfter
		}
		if s.saveAt == 0 {
			s.saveAt = now() + saveAfter
		}
	}
	if s.ackAt != 0 && now() >= s.ackAt {
		s.ackAt = 0
		s.acknowledge(ctx)
	}
	if s.saveAt != 0 && now() >= s.saveAt {
		s.saveAt = 0
		s.save(ctx)
	}
	return s.next(now()), nil
}

// next returns when the loop has something to do, unless something is read before.
func (s *Service) next(now time.Duration) loop.Next {
	switch {
	case s.ackAt == 0 && s.saveAt == 0:
		return loop.OnWake()
	case s.ackAt == 0 || s.saveAt != 0 && s.saveAt < s.ackAt:
		return loop.After(s.saveAt - now)
	default:
		return loop.After(s.ackAt - now)
	}
}

// acknowledge sends the acknowledgements that wait. Nodes that do not get theirs report again.
func (s *Service) acknowledge(ctx context.Context) {
	if err := s.transport.Acknowledge(ctx, s.term, s.ingest.DrainAcknowledged()); err != nil && ctx.Err() == nil {
		s.ingest.log.Debug("acknowledgements were not sent; the nodes will report again", "error", err)
	}
}

// end stores the positions when the context has ended. A store that hangs must not hold up the end: if this process
// leads again, nothing takes in heartbeats until then.
func (s *Service) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSave)
	defer cancel()
	s.save(ctx)
}

// save stores the positions. If it fails, records are read again later, which does no harm.
func (s *Service) save(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, store.OpTimeout)
	defer cancel()
	if err := s.ingest.store.SavePositions(ctx, events.TopicStatus, s.progress.all()); err != nil {
		s.ingest.log.Debug("positions were not stored", "topic", events.TopicStatus, "error", err)
	}
}
