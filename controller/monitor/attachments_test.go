package monitor

import (
	"fmt"
	"testing"
)

func TestOutdatedAttachmentsAreBounded(t *testing.T) {
	t.Parallel()
	a := attachments{resendAfter: 1}
	ids := make([]string, 2*maxOutdated)
	for i := range ids {
		ids[i] = fmt.Sprint("t", i)
	}
	a.add(ids)
	if due := a.markDue(0); len(due) != maxOutdated {
		t.Errorf("%d tasks are remembered, want %d", len(due), maxOutdated)
	}
	if due := a.markDue(0); len(due) != 0 {
		t.Errorf("%d are due again at once", len(due))
	}
}
