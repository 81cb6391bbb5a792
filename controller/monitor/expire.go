package monitor

import (
	"context"
	"fmt"
	"time"

	"github.com/skalds-go/skalds/pkg/store"
)

// expireEvery is the time between two looks for tasks whose retention is over.
const expireEvery = time.Minute

// expire removes ended tasks whose retention is over, a page at a time.
func (m *Monitor) expire(ctx context.Context) error {
	if m.clock.Boot()-m.expired < expireEvery {
		return nil
	}
	before := m.clock.Now().Add(-m.cfg.Retention).UnixMilli()
	n, err := m.store.Expire(ctx, before, store.MaxBatch)
	if err != nil {
		return fmt.Errorf("remove tasks that ended before their retention: %w", err)
	}
	if n < store.MaxBatch {
		m.expired = m.clock.Boot()
	}
	return nil
}
