package bench

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/config"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestEvaluate(t *testing.T) {
	t.Parallel()
	runs := []run{
		{submitted: 1_000_000, started: 1_001_000, finished: 1_002_000, status: task.Finished, attempt: 1},
		{submitted: 1_500_000, started: 1_503_000, finished: 3_000_000, status: task.Finished, attempt: 2},
		{submitted: 1_600_000, finished: 1_700_000, status: task.Failed, attempt: 1},
		{submitted: 1_600_000, status: task.Running, attempt: 1},
		{submitted: 1_600_000},
	}
	want := Report{
		Scenario: "throughput", Tasks: 5, Seconds: 2, TasksPerSecond: 1, FinishedOnce: 2, Failed: 1, Lost: 2, Doubled: 3,
		SubmitToStart:  Spread{P50: 1, P90: 3, P99: 3, Max: 3},
		SubmitToFinish: Spread{P50: 100, P90: 1500, P99: 1500, Max: 1500},
	}
	if got := evaluate("throughput", runs, 3); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := evaluate("throughput", runs, -1); got.Doubled != 1 {
		t.Errorf("by the attempts %d runs are too many, want 1", got.Doubled)
	}
	if got := evaluate("latency", make([]run, 2), 0); got != (Report{Scenario: "latency", Tasks: 2, Lost: 2}) {
		t.Errorf("of nothing: %+v", got)
	}
}

func TestSpreadIsOrdered(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, 1e9), 1, 300).Draw(t, "us")
		s := spreadOf(values)
		if s.P50 > s.P90 || s.P90 > s.P99 || s.P99 > s.Max || s.Max != float64(values[len(values)-1])/1000 {
			t.Fatalf("%+v of %v", s, values)
		}
		below := 0
		for _, v := range values {
			if float64(v)/1000 <= s.P50 {
				below++
			}
		}
		if 2*below < len(values) {
			t.Fatalf("p50 %v has only %d of %d at or below it", s.P50, below, len(values))
		}
	})
}

func TestNodeCounts(t *testing.T) {
	t.Parallel()
	before := nodeCounts{"a": {incarnation: "1", heartbeat: 5, finished: 10}, "b": {incarnation: "1", heartbeat: 7, finished: 20}}
	after := nodeCounts{"a": {incarnation: "1", heartbeat: 7, finished: 15}, "b": {incarnation: "2", heartbeat: 9, finished: 2}, "c": {incarnation: "1", heartbeat: 9, finished: 4}}
	if n := after.since(before); n != 5+2+4 {
		t.Errorf("%d runs since then", n)
	}
	if after.same(before) || !before.same(before) {
		t.Error("a node that came or was restarted is not seen")
	}
	if !after.idle(before) {
		t.Error("two heartbeats without work are not enough")
	}
	after["a"] = nodeCount{incarnation: "1", heartbeat: 7, held: 1}
	if after.idle(before) {
		t.Error("a node that holds tasks counts as idle")
	}
	after["a"] = nodeCount{incarnation: "1", heartbeat: 6}
	if after.idle(before) {
		t.Error("one heartbeat counts as two")
	}
}

// TestLongestPause counts from the kill on, and not before.
func TestLongestPause(t *testing.T) {
	t.Parallel()
	const killed = 5_000_000
	at := func(starts ...int64) (runs []run) {
		for _, s := range starts {
			runs = append(runs, run{started: s})
		}
		return runs
	}
	for name, tt := range map[string]struct {
		runs []run
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

// TestTimingOfANode reads the environment that a node of the bench gets as a node does.
func TestTimingOfANode(t *testing.T) {
	timing := client.Timing{HeartbeatIntervalMs: 250, LostAfterMs: 2000, StopMarginMs: 250, LeaderLeaseMs: 1000}
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
