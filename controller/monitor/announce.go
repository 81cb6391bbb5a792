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
	"github.com/skalds-go/skalds/pkg/clock"
)

// announceTimeout bounds the announcement to new nodes, which the next round repeats.
const announceTimeout = time.Second

// announcer announces the term to the nodes that the leader comes to know.
type announcer struct {
	fleet     *fleet.Fleet
	transport Transport
	lease     Lease
	clock     clock.Clock
	absent    map[int]absence // partitions of nodes that do not exist
}

// absence is the time for which a partition has not existed.
type absence struct {
	since time.Duration
	seen  time.Duration // when it was last found not to exist
}

// absenceGap is the longest time between two tries that find the same absence.
const absenceGap = 5 * time.Second

// announce writes the term to the partitions of nodes that this leader has come to know. Their waits begin with it. A
// partition that has not existed for longer than a node trusts itself needs no announcement, since nobody else has
// confirmed a heartbeat on it either. See docs/adr/0006.
func (a *announcer) announce(ctx context.Context) error {
	unannounced := a.fleet.Unannounced()
	if len(unannounced) == 0 || !a.lease.Valid() {
		return nil
	}
	byPartition := make(map[int][]fleet.Key)
	for _, to := range unannounced {
		byPartition[to.Partition] = append(byPartition[to.Partition], to.Key)
	}
	partitions := slices.Sorted(maps.Keys(byPartition))
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	now := a.clock.Boot()
	absent := make(map[int]absence)
	var failure error
	for i, err := range a.transport.Announce(ctx, a.lease.Term(), partitions) {
		p := partitions[i]
		if errors.Is(err, kafka.ErrUnknownTopic) {
			gone, known := a.absent[p]
			if !known || now-gone.seen > absenceGap {
				gone.since = now
			}
			gone.seen = now
			absent[p] = gone
			if now-gone.since > a.fleet.LostTimeout() {
				err = nil
			}
		}
		if err != nil {
			failure = err
			continue
		}
		a.fleet.Announced(byPartition[p], a.clock.Boot())
	}
	a.absent = absent
	if failure != nil {
		return fmt.Errorf("announce the term to new nodes: %w", failure)
	}
	return nil
}
