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
	"github.com/skalds-go/skalds/pkg/loop"
)

// confirmTimeout bounds one publish of confirmations: a partition that accepts nothing must not hold up the others for
// long.
const confirmTimeout = 500 * time.Millisecond

// unconfirmed are heartbeats that nodes sent over task.status because the registry did not answer them. Confirming them
// needs neither the store nor a lease: a leader does it until a node has seen a higher term. See docs/adr/0006.
type unconfirmed struct {
	wake loop.Wake

	heartbeats sync.Mutex
	over       bool                     // a node has seen a higher term
	counters   map[int]map[string]int64 // the newest counter, by partition of task.assign and by incarnation
}

func newUnconfirmed() unconfirmed {
	return unconfirmed{wake: loop.NewWake(), counters: make(map[int]map[string]int64)}
}

// observe takes in the heartbeats among records of task.status. It does not block.
func (s *Service) observe(records []kafka.Record) {
	capacity := false
	for i := range records {
		if !isHeartbeat(&records[i]) {
			continue
		}
		if st, err := events.DecodeStatus(records[i].Value); err == nil && st.Heartbeat != nil { // Round puts others into quarantine
			capacity = s.observeOne(&st) || capacity
		}
	}
	callIf(capacity, s.ingest.hooks.Capacity)
}

func isHeartbeat(r *kafka.Record) bool {
	return slices.ContainsFunc(r.Headers, func(h kafka.Header) bool {
		return h.Key == events.HeaderHeartbeat || h.Key == "skalds-beat" // the mark of nodes before 0.1
	})
}

// observeOne takes in one heartbeat and notes that it must be confirmed. It reports whether its node may take work now
// and could not before.
func (s *Service) observeOne(st *events.Status) (fresh bool) {
	s.heartbeats.Lock()
	defer s.heartbeats.Unlock()
	if s.over || st.Heartbeat.Term > s.term {
		s.over = true
		clear(s.counters)
		return false
	}
	confirm, fresh := s.ingest.fleet.ObserveKafka(st.Heartbeat, s.ingest.clock.Boot())
	if !confirm {
		return false
	}
	counters := s.counters[st.Heartbeat.Partition]
	if counters == nil {
		counters = make(map[string]int64)
		s.counters[st.Heartbeat.Partition] = counters
	}
	counters[st.Incarnation] = st.Heartbeat.Counter
	s.wake.Signal()
	return fresh
}

// confirm sends the nodes their confirmations. It does not repeat those that it could not send: the nodes send other
// heartbeats.
func (s *Service) confirm(ctx context.Context) error {
	s.heartbeats.Lock()
	counters := s.counters
	s.counters = make(map[int]map[string]int64)
	s.heartbeats.Unlock()
	var list []transport.Confirmation
	for _, partition := range slices.Sorted(maps.Keys(counters)) {
		byIncarnation := counters[partition]
		for page := range slices.Chunk(slices.Sorted(maps.Keys(byIncarnation)), events.MaxHeartbeats) {
			c := transport.Confirmation{Partition: partition, Heartbeats: make([]events.ConfirmedHeartbeat, len(page))}
			for i, incarnation := range page {
				c.Heartbeats[i] = events.ConfirmedHeartbeat{Incarnation: incarnation, Counter: byIncarnation[incarnation]}
			}
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return s.transport.Confirm(ctx, s.term, list)
}

// confirmLoop returns the loop that confirms heartbeats as they arrive. It does not pause after a failure: the next
// heartbeats come from other nodes.
func (s *Service) confirmLoop() loop.Loop {
	return loop.Loop{
		Name:     "confirm",
		Wakes:    []loop.Wake{s.wake},
		First:    loop.OnWake(),
		Deadline: confirmTimeout,
		Step: func(ctx context.Context, _ loop.Wake) (loop.Next, error) {
			if err := s.confirm(ctx); err != nil {
				s.ingest.log.Debug("heartbeats were not confirmed; the nodes send others", "error", err)
			}
			return loop.OnWake(), nil
		},
	}
}

// heartbeatLoop returns the loop that takes in only the heartbeats of a partition. It holds one read in memory.
func (s *Service) heartbeatLoop(name string, partition int, from kafka.Position) loop.Loop {
	r := s.open(partition, from)
	return loop.Loop{
		Name: name,
		Step: func(ctx context.Context, _ loop.Wake) (loop.Next, error) {
			records, err := r.Next(ctx)
			if err != nil {
				return loop.Done(), nil //nolint:nilerr // growLoop or the next read ahead opens another reader
			}
			s.observe(records)
			return loop.Next{}, nil
		},
	}
}
