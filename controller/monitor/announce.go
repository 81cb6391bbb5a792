package monitor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/events/kafka"
)

// announceTimeout bounds the announcement to new nodes, which the next round repeats.
const announceTimeout = time.Second

// absence is a partition that does not exist.
type absence struct {
	since time.Duration
	seen  time.Duration // when that was last found
}

// absenceGap is the longest time between two looks that show one and the same absence.
const absenceGap = 5 * time.Second

// announce writes the term to the partitions of nodes that this leader has come to know. Their waits begin with it. A
// partition that has not existed for longer than a node trusts itself needs no announcement, since nobody else has
// confirmed a heartbeat on it either. See docs/adr/0006.
func (m *Monitor) announce(ctx context.Context) error {
	unannounced := m.fleet.Unannounced()
	if len(unannounced) == 0 || !m.lease.Valid() {
		return nil
	}
	byPartition := make(map[int][]fleet.Key)
	for _, to := range unannounced {
		byPartition[to.Partition] = append(byPartition[to.Partition], to.Key)
	}
	partitions := slices.Sorted(maps.Keys(byPartition))
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	now := m.clock.Boot()
	absent := make(map[int]absence)
	var failure error
	for i, err := range m.transport.Announce(ctx, m.lease.Term(), partitions) {
		p := partitions[i]
		if errors.Is(err, kafka.ErrUnknownTopic) {
			a, known := m.absent[p]
			if !known || now-a.seen > absenceGap {
				a.since = now
			}
			a.seen = now
			absent[p] = a
			if now-a.since > m.fleet.LostTimeout() {
				err = nil
			}
		}
		if err != nil {
			failure = err
			continue
		}
		m.fleet.Announced(byPartition[p], m.clock.Boot())
	}
	m.absent = absent
	if failure != nil {
		return fmt.Errorf("announce the term to new nodes: %w", failure)
	}
	return nil
}
