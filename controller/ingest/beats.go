package ingest

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/skalds-go/skalds/controller/transport"
	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
)

const (
	// confirmTimeout bounds one publish of confirmations: a partition that takes nothing must not hold up the others for long.
	confirmTimeout = 500 * time.Millisecond
	// aheadAfter is how long ingest may be busy until the heartbeats behind what it has not taken are looked for.
	aheadAfter = 250 * time.Millisecond
)

// beats are heartbeats that nodes sent over task.status, since the registry did not answer them. To confirm them takes no store and no
// lease: a leader goes on with it until a node has seen a higher term. See docs/adr/0006.
type beats struct {
	wake chan struct{}

	mu      sync.Mutex
	over    bool                     // a node has seen a higher term
	pending map[int]map[string]int64 // to be confirmed: the newest counter, by partition of task.assign and by incarnation
}

func newBeats() *beats {
	return &beats{wake: make(chan struct{}, 1), pending: make(map[int]map[string]int64)}
}

// Hear takes in the heartbeats among records of task.status. It does not block.
func (s *Service) Hear(records []kafka.Record) {
	room := false
	for i := range records {
		if !isBeat(&records[i]) {
			continue
		}
		if st, err := events.DecodeStatus(records[i].Value); err == nil && st.Heartbeat != nil { // else Round puts it into quarantine
			room = s.hear(&st) || room
		}
	}
	tell(room, s.ingest.hooks.Room)
}

func isBeat(r *kafka.Record) bool {
	return slices.ContainsFunc(r.Headers, func(h kafka.Header) bool {
		return h.Key == events.HeaderHeartbeat || h.Key == "skalds-beat" // as nodes before 0.1 mark it
	})
}

// hear takes in one heartbeat, to be confirmed. It says whether its node may take work that it did not before.
func (s *Service) hear(st *events.Status) (room bool) {
	b := s.beats
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over || st.Heartbeat.Term > s.term {
		b.over = true
		clear(b.pending)
		return false
	}
	confirm, room := s.ingest.fleet.ObserveKafka(st.Heartbeat, s.ingest.clock.Boot())
	if !confirm {
		return false
	}
	to := b.pending[st.Heartbeat.Partition]
	if to == nil {
		to = make(map[string]int64)
		b.pending[st.Heartbeat.Partition] = to
	}
	to[st.Incarnation] = st.Heartbeat.Counter
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return room
}

// ConfirmWanted says, once, that there may be something to confirm.
func (s *Service) ConfirmWanted() bool {
	select {
	case <-s.beats.wake:
		return true
	default:
		return false
	}
}

// Confirm tells the nodes which heartbeats were taken in. What they are not told is lost: they send others.
func (s *Service) Confirm(ctx context.Context) error {
	b := s.beats
	b.mu.Lock()
	pending := b.pending
	b.pending = make(map[int]map[string]int64)
	b.mu.Unlock()
	var list []transport.Confirmation
	for _, partition := range slices.Sorted(maps.Keys(pending)) {
		counters := pending[partition]
		for page := range slices.Chunk(slices.Sorted(maps.Keys(counters)), events.MaxHeartbeats) {
			c := transport.Confirmation{Partition: partition, Heartbeats: make([]events.ConfirmedHeartbeat, len(page))}
			for i, incarnation := range page {
				c.Heartbeats[i] = events.ConfirmedHeartbeat{Incarnation: incarnation, Counter: counters[incarnation]}
			}
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	return s.transport.Confirm(ctx, s.term, list)
}

// confirmLoop confirms heartbeats as they come.
func (s *Service) confirmLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.beats.wake:
		}
		if err := s.Confirm(ctx); err != nil && ctx.Err() == nil {
			s.ingest.log.Debug("heartbeats were not confirmed; the nodes send others", "error", err)
		}
	}
}

// hand gives a batch to the loop. While that is busy for long, since the store takes no reports, it looks ahead for heartbeats.
func (s *Service) hand(ctx context.Context, b batch, in chan<- batch) bool {
	timer := s.ingest.clock.NewTimer(aheadAfter)
	defer timer.Stop()
	select {
	case in <- b:
		return true
	case <-ctx.Done():
		return false
	case <-timer.C():
	}
	ahead, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { s.Overhear(ahead, b.partition, b.after) }) // all else is read again later
	defer wg.Wait()
	defer stop()
	select {
	case in <- b:
		return true
	case <-ctx.Done():
		return false
	}
}

// overhear takes in heartbeats alone, from the present ends on, until Load has succeeded: from the moment that nodes know of this leader they
// take nobody else's word, also while the store does not say from where to read. It reports false if the context ended.
func (s *Service) overhear(ctx context.Context) bool {
	early, stop := context.WithCancel(ctx)
	var readers sync.WaitGroup
	defer readers.Wait()
	defer stop()
	readers.Go(func() {
		s.grow(early, 0, func(partition int) {
			readers.Go(func() { s.Overhear(early, partition, kafka.Latest()) })
		})
	})
	select {
	case <-s.loaded:
		return true
	case <-ctx.Done():
		return false
	}
}

// Overhear takes in the heartbeats alone of a partition, until the context ends. What it holds is one read.
func (s *Service) Overhear(ctx context.Context, partition int, from kafka.Position) {
	r := s.open(partition, from)
	for {
		records, err := r.Next(ctx)
		if err != nil {
			return
		}
		s.Hear(records)
	}
}
