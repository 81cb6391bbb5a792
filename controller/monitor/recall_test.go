package monitor_test

import (
	"testing"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/pkg/task"
)

// A node that releases a claim because it was recalled takes other work with the report, not with its next heartbeat.
// One that does so by itself has a reason.
func TestANodeThatReleasesARecalledTaskTakesWorkAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ask   func(t *testing.T, b *bundle)
		takes bool
	}{
		"recalled": {func(t *testing.T, b *bundle) {
			t.Helper()
			if err := b.m.Recall(t.Context(), b.fleet.Unbegun(func(*fleet.Claim) bool { return true }, 10)); err != nil {
				t.Fatal(err)
			}
		}, true},
		"paused": {func(t *testing.T, b *bundle) {
			t.Helper()
			b.request(t, "t", task.Pause)
			b.round(t)
		}, true},
		"not asked": {func(*testing.T, *bundle) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.round(t)
			tk := b.assigned(t, "t", true)
			c.ask(t, b)
			b.fleet.Reported(n1, &task.Report{ID: tk.ID, Attempt: tk.Attempt, ClaimID: tk.ClaimID, Kind: task.ReportReleased})
			if b.takes() != c.takes {
				t.Errorf("it takes work: %t, want %t", b.takes(), c.takes)
			}
		})
	}
}
