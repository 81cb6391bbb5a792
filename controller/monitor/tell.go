package monitor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
)

// tellTimeout bounds the announcement to new nodes, which the next round repeats.
const tellTimeout = time.Second

// tell announces the term on the partitions of nodes that this leader has come to know: their waits begin with it.
func (m *Monitor) tell(ctx context.Context) error {
	untold := m.fleet.Untold()
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
	var failure error
	for i, err := range m.transport.Tell(ctx, m.lease.Term(), partitions) {
		if err != nil {
			failure = err
			continue
		}
		m.fleet.Told(byPartition[partitions[i]], m.clock.Boot())
	}
	if failure != nil {
		return fmt.Errorf("announce the term to new nodes: %w", failure)
	}
	return nil
}
