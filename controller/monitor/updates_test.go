package monitor

import (
	"fmt"
	"testing"
)

func TestUpdatesAreBounded(t *testing.T) {
	t.Parallel()
	var m Monitor
	ids := make([]string, 2*maxUpdates)
	for i := range ids {
		ids[i] = fmt.Sprint("t", i)
	}
	m.Updated(ids)
	if due := m.updates.due(0, 1); len(due) != maxUpdates {
		t.Errorf("%d tasks are remembered, want %d", len(due), maxUpdates)
	}
	if due := m.updates.due(0, 1); len(due) != 0 {
		t.Errorf("%d are due again at once", len(due))
	}
}
