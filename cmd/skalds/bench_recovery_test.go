package main

import (
	"strings"
	"testing"

	"github.com/skalds-go/skalds/cmd/skalds/internal/bench"
	"github.com/skalds-go/skalds/pkg/client"
)

// A node whose process is asked to end gives its tasks away at once. A kill takes the whole wait for a silent node:
// that is for the chaos suite, and to be measured.
func TestBenchRecovery(t *testing.T) {
	d := startDev(t)
	t.Setenv(asProgram, "1") // of the node processes that the bench starts
	t.Setenv("KAFKA_PORT", d.kafkaPort)
	t.Setenv("REDIS_PORT", d.redisPort)
	a := want(t, 0, "bench", "--scenario", "recovery", "--fault", "term", "--tasks", "20", "-o", "json", "--server", d.server)
	wanted := client.Timing{HeartbeatIntervalMs: 1000, LostAfterMs: 8000, StopMarginMs: 1000, LeaderLeaseMs: 2000}
	if r := decode[bench.RecoveryReport](t, a); r.Tasks != 20 || r.Fault != bench.FaultTerm || r.Again.Max <= 0 || r.Timing != wanted {
		t.Errorf("%+v", r)
	}
}

func TestBenchOfALeaderNeedsMongoDB(t *testing.T) {
	p := start(t, []string{"STORE=sqlite"}, "bench", "--scenario", "recovery", "--fault", "leader")
	if s := p.wait(t); s.ExitStatus() != exitUsage || !strings.Contains(p.err.String(), `STORE is "sqlite"`) {
		t.Errorf("it ended with %v:\n%s", s, p.err)
	}
}

func TestSettingsOfAReport(t *testing.T) {
	t.Parallel()
	r := bench.RecoveryReport{Fault: bench.FaultKill, Timing: client.Timing{
		HeartbeatIntervalMs: 250, LostAfterMs: 2000, StopMarginMs: 250, LeaderLeaseMs: 1000,
	}}
	var b strings.Builder
	p := newPairs(&b)
	addRecovery(p, &r)
	if err := p.flush(); err != nil {
		t.Fatal(err)
	}
	if want := "heartbeat 250ms, lost after 2s, stop margin 250ms, leader lease 1s"; !strings.Contains(b.String(), want) {
		t.Errorf("it does not hold %q:\n%s", want, b.String())
	}
}
