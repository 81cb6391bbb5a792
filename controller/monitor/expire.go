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
	if m.clock.Boot()-m.expiredAt < expireEvery {
		return nil
	}
	before := m.clock.Now().Add(-m.cfg.Retention).UnixMilli()
	n, err := m.store.Expire(ctx, before, store.MaxBatch)
	if err != nil {
		return fmt.Errorf("remove tasks whose retention is over: %w", err)
	}
	if n < store.MaxBatch {
		m.expiredAt = m.clock.Boot()
	}
	return nil
}
