package main

import (
	"strings"
	"testing"
	"time"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/config"
)

// A node whose process is asked to end gives its tasks away at once. A kill takes the whole wait for a silent node: that is for the chaos
// suite, and to be measured.
func TestBenchRecovery(t *testing.T) {
	d := startDev(t)
	t.Setenv(asProgram, "1") // of the node processes that the bench starts
	t.Setenv("KAFKA_PORT", d.kafkaPort)
	t.Setenv("REDIS_PORT", d.redisPort)
	a := want(t, 0, "bench", "--scenario", "recovery", "--fault", "term", "--tasks", "20", "-o", "json", "--server", d.server)
	wanted := client.Timing{HeartbeatIntervalMs: 1000, LostAfterMs: 8000, StopMarginMs: 1000, LeaderLeaseMs: 2000}
	if r := decode[recoveryReport](t, a); r.Tasks != 20 || r.Fault != faultTerm || r.Again.Max <= 0 || r.Timing != wanted {
		t.Errorf("%+v", r)
	}
}

func TestBenchOfALeaderNeedsMongoDB(t *testing.T) {
	p := start(t, []string{"STORE=sqlite"}, "bench", "--scenario", "recovery", "--fault", "leader")
	if s := p.wait(t); s.ExitStatus() != exitUsage || !strings.Contains(p.err.String(), `STORE is "sqlite"`) {
		t.Errorf("it ended with %v:\n%s", s, p.err)
	}
}

// TestLongestPause counts from the kill on, and not before.
func TestLongestPause(t *testing.T) {
	t.Parallel()
	const killed = 5_000_000
	at := func(starts ...int64) (runs []benchRun) {
		for _, s := range starts {
			runs = append(runs, benchRun{started: s})
		}
		return runs
	}
	for name, tt := range map[string]struct {
		runs []benchRun
		want float64
	}{
		"over the kill":      {at(killed+1_500_000, killed-4_000_000, killed-10, 0, killed+1_600_000), 1500},
		"some time after it": {at(killed+200, killed+1000, killed+2_001_000, killed+2_001_100), 2000},
		"no start":           {at(killed-10, 0), 0},
	} {
		if got := longestPause(tt.runs, killed); got != tt.want {
			t.Errorf("%s: %v ms, want %v", name, got, tt.want)
		}
	}
}

func TestSettingsOfAReport(t *testing.T) {
	timing := client.Timing{HeartbeatIntervalMs: 250, LostAfterMs: 2000, StopMarginMs: 250, LeaderLeaseMs: 1000}
	if got, want := timingText(timing), "heartbeat 250ms, lost after 2s, stop margin 250ms, leader lease 1s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, v := range timingEnv(timing) {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	cfg, err := config.LoadNode()
	want := config.Liveness{HeartbeatInterval: 250 * time.Millisecond, LostAfter: 2 * time.Second, StopMargin: 250 * time.Millisecond}
	if err != nil || cfg.Liveness != want {
		t.Errorf("a node of the bench has %+v, %v", cfg.Liveness, err)
	}
}
