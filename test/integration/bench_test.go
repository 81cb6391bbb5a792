package integration_test

import (
	"encoding/json"
	"testing"

	"github.com/skalds-go/skalds/test/cluster"
	"github.com/skalds-go/skalds/test/process"
)

// TestIntegrationBenchOfALeader kills the leading one of the bench's controllers under load: each task finishes exactly
// once, as the bench's exit code says. How long it took is to be measured, not asserted.
func TestIntegrationBenchOfALeader(t *testing.T) {
	c := cluster.New(t, "4.4")
	p := process.Start(t, "bench", process.Build(t, cluster.Program), c.With(map[string]string{"LOG_LEVEL": "error"}),
		"bench", "--scenario", "recovery", "--fault", "leader", "--tasks", "600", "-o", "json")
	<-p.Done()
	p.Stop() // checks how it ended
	var report struct {
		FinishedOnce, Doubled, Lost int
		LongestPauseMs              float64
		Timing                      struct{ LeaderLeaseMs int64 }
	}
	if err := json.Unmarshal([]byte(p.Log()), &report); err != nil {
		t.Fatalf("%v: %s", err, p.Log())
	}
	if report.FinishedOnce != 600 || report.LongestPauseMs <= 0 || report.Timing.LeaderLeaseMs != 2000 {
		t.Errorf("%+v", report)
	}
}
