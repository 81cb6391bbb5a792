package ingest

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
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
	settleAfter = 50 * time.Millisecond // how long a settled claim may wait for others to be told of together
	saveAfter   = time.Second           // how long a position may wait to be stored
	lastSave    = time.Second / 4       // how long storing them may take at the end
	drainLimit  = 4000                  // records that one round takes in, but for those of the read that passes it
	drainBytes  = 16 << 20              // and bytes of them
	firstPause  = 20 * time.Millisecond // pause after a round that failed; doubles up to lastPause
	lastPause   = time.Second
	growEvery   = 2 * time.Second // time between two looks for partitions that were added
)

// Progress says how far ingest has come. It is safe for concurrent use.
type Progress struct {
	mu   sync.Mutex
	done map[int]kafka.Position
}

// Reached says whether everything before the given ends has been taken in.
func (p *Progress) Reached(ends map[int]kafka.Range) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for partition, r := range ends {
		if r.First < r.End && p.done[partition].Offset < r.End {
			return false
		}
	}
	return true
}

func (p *Progress) set(partition int, at kafka.Position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done[partition] = at
}

func (p *Progress) all() map[int]store.Position {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make(map[int]store.Position, len(p.done))
	for partition, at := range p.done {
		if at.Offset >= 0 {
			out[partition] = store.Position(at)
		}
	}
	return out
}

// batch is what one read of a partition gave.
type batch struct {
	partition int
	records   []kafka.Record
	after     kafka.Position
}

// Service runs an ingest on all partitions of task.status, also those that are added meanwhile.
type Service struct {
	ingest    *Ingest
	transport Transport
	term      int64
	bus       Bus
	open      func(partition int, from kafka.Position) Reader
	progress  *Progress
	beats     *beats
	loaded    chan struct{} // closed once Load has succeeded
	begin     func()        // closes it
}

// NewService makes the service of one leadership. Open makes a reader of a partition of task.status.
func NewService(i *Ingest, t Transport, term int64, b Bus, open func(partition int, from kafka.Position) Reader) *Service {
	loaded := make(chan struct{})
	return &Service{ingest: i, transport: t, term: term, bus: b, open: open, progress: &Progress{done: make(map[int]kafka.Position)},
		beats: newBeats(), loaded: loaded, begin: sync.OnceFunc(func() { close(loaded) })}
}

// Progress says how far the service has come.
func (s *Service) Progress() *Progress { return s.progress }

// Load learns the partitions and reads the stored positions; without one, a partition is read from its earliest record. With it, Run begins
// to take in reports.
func (s *Service) Load(ctx context.Context) error {
	partitions, err := s.bus.Partitions(ctx, events.TopicStatus)
	if err != nil {
		return fmt.Errorf("learn the partitions of %s: %w", events.TopicStatus, err)
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
	s.begin()
	return nil
}

// Loaded says whether Load has succeeded.
func (s *Service) Loaded() bool {
	select {
	case <-s.loaded:
		return true
	default:
		return false
	}
}

// Starts says where each partition is to be read from.
func (s *Service) Starts() map[int]kafka.Position {
	s.progress.mu.Lock()
	defer s.progress.mu.Unlock()
	return maps.Clone(s.progress.done)
}

// Round takes in what was read of some partitions, and where each of them was read up to. After an error it is to be called again with the
// same records.
func (s *Service) Round(ctx context.Context, records []kafka.Record, after map[int]kafka.Position) error {
	if err := s.ingest.Round(ctx, records); err != nil {
		return err
	}
	for partition, at := range after {
		s.progress.set(partition, at)
	}
	return nil
}

// Acknowledge tells nodes what is settled. What they are not told, they report again.
func (s *Service) Acknowledge(ctx context.Context) error {
	return s.transport.Acknowledge(ctx, s.term, s.ingest.DrainAcknowledged())
}

// Run takes in records until the context ends: before Load has succeeded, heartbeats alone.
func (s *Service) Run(ctx context.Context) {
	var loops sync.WaitGroup
	defer loops.Wait()
	loops.Go(func() { s.confirmLoop(ctx) })
	if !s.overhear(ctx) {
		return
	}
	in := make(chan batch)
	starts := s.Starts()
	for partition, from := range starts {
		loops.Go(func() {
			s.read(ctx, partition, from, in)
		})
	}
	loops.Go(func() {
		s.grow(ctx, len(starts), func(partition int) {
			loops.Go(func() { s.read(ctx, partition, kafka.Earliest(), in) })
		})
	})
	s.loop(ctx, in)
}

// grow has partitions read that are added while the service runs: what nodes that join later report is there. have is how many are read.
func (s *Service) grow(ctx context.Context, have int, read func(partition int)) {
	timer := s.ingest.clock.NewTimer(growEvery)
	defer timer.Stop()
	for {
		have = s.Grow(ctx, have, read)
		timer.Reset(growEvery)
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
		}
	}
}

// Grow looks once for partitions beside the ones that are read, and has them read. It says how many are read now.
func (s *Service) Grow(ctx context.Context, have int, read func(partition int)) int {
	n, err := s.bus.Partitions(ctx, events.TopicStatus)
	if err != nil {
		return have // the next look finds them
	}
	for ; have < n; have++ {
		read(have)
	}
	return have
}

func (s *Service) read(ctx context.Context, partition int, from kafka.Position, in chan<- batch) {
	r := s.open(partition, from)
	for {
		records, err := r.Next(ctx)
		if err != nil {
			if ctx.Err() == nil {
				s.ingest.log.Error("reading stopped", "topic", events.TopicStatus, "partition", partition, "error", err)
			}
			return
		}
		s.Hear(records) // before the store has anything to do with it
		if !s.hand(ctx, batch{partition, records, r.Position()}, in) {
			return
		}
	}
}

func (s *Service) loop(ctx context.Context, in <-chan batch) {
	clock := s.ingest.clock
	settle, save := clock.NewTimer(settleAfter), clock.NewTimer(saveAfter)
	settle.Stop()
	save.Stop()
	defer settle.Stop()
	defer save.Stop()
	dirty := false
	for {
		select {
		case <-ctx.Done():
			s.End(ctx)
			return
		case b := <-in:
			hadSettled := s.ingest.waiting > 0
			if !s.take(ctx, b, in) {
				return
			}
			if !hadSettled && s.ingest.waiting > 0 {
				settle.Reset(settleAfter)
			}
			if !dirty {
				dirty = true
				save.Reset(saveAfter)
			}
		case <-settle.C():
			if err := s.Acknowledge(ctx); err != nil && ctx.Err() == nil {
				s.ingest.log.Debug("nodes were not told what is settled; they will report again", "error", err)
			}
		case <-save.C():
			dirty = false
			s.Save(ctx)
		}
	}
}

// take makes a round of one batch and of what else is there already. It tries until the store takes it.
func (s *Service) take(ctx context.Context, b batch, in <-chan batch) bool {
	records, bytes := b.records, sizeOf(b.records)
	after := map[int]kafka.Position{b.partition: b.after}
	for more := true; more && len(records) < drainLimit && bytes < drainBytes; {
		select {
		case next := <-in:
			records, bytes = append(records, next.records...), bytes+sizeOf(next.records)
			after[next.partition] = next.after
		default:
			more = false
		}
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := s.Round(ctx, records, after)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		s.ingest.log.Warn("reports were not written; they will be tried again", "records", len(records), "error", err)
		timer := s.ingest.clock.NewTimer(pause)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}

func sizeOf(records []kafka.Record) int {
	n := 0
	for i := range records {
		n += len(records[i].Value)
	}
	return n
}

// End stores the positions when the context has ended. A store that hangs must not hold that up: in the process that leads anew nobody hears
// heartbeats until then.
func (s *Service) End(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSave)
	defer cancel()
	s.Save(ctx)
}

// Save stores the positions. Where it fails, records will be read again, which does no harm.
func (s *Service) Save(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, store.OpTimeout)
	defer cancel()
	if err := s.ingest.store.SavePositions(ctx, events.TopicStatus, s.progress.all()); err != nil {
		s.ingest.log.Debug("positions were not stored", "topic", events.TopicStatus, "error", err)
	}
}
