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

// tellTimeout bounds the announcement to new nodes, which the next round repeats.
const tellTimeout = time.Second

// absence is a partition that is not there.
type absence struct {
	since time.Duration
	seen  time.Duration // when it was looked for last
}

// lookGap is how far two looks may lie apart that show the same absence.
const lookGap = 5 * time.Second

// tell announces the term on the partitions of nodes that this leader has come to know: their waits begin with it. A partition that has not been
// there for longer than a node trusts itself needs no word: nobody else has confirmed a heartbeat on it either. See docs/adr/0006.
func (m *Monitor) tell(ctx context.Context) error {
	untold := m.fleet.Unannounced()
	if len(untold) == 0 || !m.lease.Valid() {
		return nil
	}
	byPartition := make(map[int][]fleet.Key)
	for _, to := range untold {
		byPartition[to.Partition] = append(byPartition[to.Partition], to.Key)
	}
	partitions := slices.Sorted(maps.Keys(byPartition))
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	now := m.clock.Boot()
	nowhere := make(map[int]absence)
	var failure error
	for i, err := range m.transport.Announce(ctx, m.lease.Term(), partitions) {
		p := partitions[i]
		if errors.Is(err, kafka.ErrUnknownTopic) {
			a, known := m.nowhere[p]
			if !known || now-a.seen > lookGap {
				a.since = now
			}
			a.seen = now
			nowhere[p] = a
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
	m.nowhere = nowhere
	if failure != nil {
		return fmt.Errorf("announce the term to new nodes: %w", failure)
	}
	return nil
}
