package monitor

import (
	"fmt"
	"testing"
)

func TestOutdatedAttachmentsAreBounded(t *testing.T) {
	t.Parallel()
	var m Monitor
	ids := make([]string, 2*maxOutdated)
	for i := range ids {
		ids[i] = fmt.Sprint("t", i)
	}
	m.Updated(ids)
	if due := m.attachments.markDue(0, 1); len(due) != maxOutdated {
		t.Errorf("%d tasks are remembered, want %d", len(due), maxOutdated)
	}
	if due := m.attachments.markDue(0, 1); len(due) != 0 {
		t.Errorf("%d are due again at once", len(due))
	}
}
