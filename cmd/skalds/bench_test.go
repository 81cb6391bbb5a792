package main

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/task"
)

// measure runs skalds bench and gives its report, which has every task finished exactly once.
func measure(t *testing.T, d *devCluster, args ...string) benchReport {
	t.Helper()
	a := want(t, 0, append([]string{"bench", "-o", "json", "--server", d.server}, args...)...)
	r := decode[benchReport](t, a)
	if !r.good() {
		t.Errorf("not every task finished exactly once: %+v", r)
	}
	return r
}

// TestS1_ATaskIsAssignedAtOnce submits to an idle cluster: waiting for the poll would take up to five seconds each.
func TestS1_ATaskIsAssignedAtOnce(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--nodes", "1")
	late := 0
	for range 10 {
		got := decode[task.Task](t, want(t, 0, "task", "submit", "demo.echo", "--wait", "-o", "json", "--server", d.server))
		if got.AssignedDateTime-got.CreateDateTime > 1000 {
			late++
		}
	}
	if late > 1 { // one may meet a machine that is busy with something else
		t.Errorf("%d of 10 tasks waited more than a second for their assignment", late)
	}
}

// TestS14_ThousandTasksAreThousandRuns counts what the node ran.
func TestS14_ThousandTasksAreThousandRuns(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--nodes", "1")
	if r := measure(t, d, "--tasks", "1000"); r.FinishedOnce != 1000 {
		t.Errorf("%+v", r)
	}
	if n := decode[client.Node](t, want(t, 0, "nodes", "show", "node-1", "-o", "json", "--server", d.server)); n.Finished != 1000 {
		t.Errorf("the node ran %d tasks", n.Finished)
	}
}

// TestS17_NothingOfABurstIsCancelled submits 300 tasks at once that take a while.
func TestS17_NothingOfABurstIsCancelled(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	c, err := client.New(client.Config{Server: d.server})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	burst := make([]client.NewTask, 300)
	for i := range burst {
		burst[i] = client.NewTask{ClassName: "demo.sleep", Attachments: map[string]int{"ms": 20}}
	}
	items, err := c.SubmitBatch(t.Context(), burst)
	if err != nil {
		t.Fatal(err)
	}
	for i := range items {
		got, err := c.Wait(t.Context(), items[i].ID)
		if err != nil {
			t.Fatal(err)
		}
		if got.LifecycleStatus != task.Finished || got.Attempt != 1 {
			t.Errorf("task %s is %s after attempt %d: %s", got.ID, got.LifecycleStatus, got.Attempt, got.Error)
		}
	}
}

// TestS20_TheEndOfAShortHandlerArrives runs 10,000 handlers of less than a millisecond.
func TestS20_TheEndOfAShortHandlerArrives(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	if r := measure(t, d, "--tasks", "10000"); r.FinishedOnce != 10_000 || r.Lost != 0 {
		t.Errorf("%+v", r)
	}
}

// TestBenchLatency: tasks at a steady pace. What they take is for people to read, not for a test: see TestC35 and TestS12.
func TestBenchLatency(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	r := measure(t, d, "--scenario", "latency", "--tasks", "20", "--rate", "100")
	if r.SubmitToStart.P50 < 0 || r.SubmitToFinish.P50 < r.SubmitToStart.P50 || r.SubmitToFinish.Max < r.SubmitToFinish.P50 {
		t.Errorf("%+v", r)
	}
}

func TestBenchReportsWhatFailed(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	a := want(t, exitNo, "bench", "--tasks", "20", "--classes", "demo.clock,demo.fail", "--rate", "400", "-o", "json", "--server", d.server)
	if r := decode[benchReport](t, a); r.FinishedOnce != 10 || r.Failed != 10 || r.Lost != 0 || r.Doubled != 0 {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(a.err, "of 20 tasks 10 finished, 10 ended otherwise") {
		t.Errorf("it says %q", a.err)
	}
}

func TestBenchReportsWhatIsLost(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--nodes", "1")
	a := want(t, exitNo, "bench", "--tasks", "4", "--classes", "nobody.knows.it,demo.clock", "--timeout", "10ms", "-o", "json", "--server", d.server)
	if r := decode[benchReport](t, a); r.FinishedOnce != 2 || r.Lost != 2 {
		t.Errorf("%+v", r)
	}
}

func TestBenchWantsNodes(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--nodes", "0")
	if a := want(t, exitNo, "bench", "--server", d.server); !strings.Contains(a.err, "there is no node") {
		t.Errorf("it says %q", a.err)
	}
}

func TestBenchStopsAtARefusal(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	a := want(t, exitNo, "bench", "--tasks", "3", "--payload", "300000", "--server", d.server)
	if !strings.Contains(a.err, "TASK_MAX_BYTES") {
		t.Errorf("it says %q", a.err)
	}
}

func TestEvaluate(t *testing.T) {
	t.Parallel()
	runs := []benchRun{
		{submitted: 1_000_000, started: 1_001_000, finished: 1_002_000, status: task.Finished, attempt: 1},
		{submitted: 1_500_000, started: 1_503_000, finished: 3_000_000, status: task.Finished, attempt: 2},
		{submitted: 1_600_000, finished: 1_700_000, status: task.Failed, attempt: 1},
		{submitted: 1_600_000, status: task.Running, attempt: 1},
		{submitted: 1_600_000},
	}
	want := benchReport{
		Scenario: "throughput", Tasks: 5, Seconds: 2, TasksPerSecond: 1, FinishedOnce: 2, Failed: 1, Lost: 2, Doubled: 3,
		SubmitToStart:  spread{P50: 1, P90: 3, P99: 3, Max: 3},
		SubmitToFinish: spread{P50: 100, P90: 1500, P99: 1500, Max: 1500},
	}
	if got := evaluate("throughput", runs, 3); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := evaluate("throughput", runs, -1); got.Doubled != 1 {
		t.Errorf("by the attempts %d runs are too many, want 1", got.Doubled)
	}
	if got := evaluate("latency", make([]benchRun, 2), 0); got != (benchReport{Scenario: "latency", Tasks: 2, Lost: 2}) {
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
	before := nodeCounts{"a": {incarnation: "1", beat: 5, finished: 10}, "b": {incarnation: "1", beat: 7, finished: 20}}
	after := nodeCounts{"a": {incarnation: "1", beat: 7, finished: 15}, "b": {incarnation: "2", beat: 9, finished: 2}, "c": {incarnation: "1", beat: 9, finished: 4}}
	if n := after.since(before); n != 5+2+4 {
		t.Errorf("%d runs since then", n)
	}
	if after.same(before) || !before.same(before) {
		t.Error("a node that came or was restarted is not seen")
	}
	if !after.settled(before) {
		t.Error("two heartbeats without work are not enough")
	}
	after["a"] = nodeCount{incarnation: "1", beat: 7, held: 1}
	if after.settled(before) {
		t.Error("a node that holds tasks counts as settled")
	}
	after["a"] = nodeCount{incarnation: "1", beat: 6}
	if after.settled(before) {
		t.Error("one heartbeat counts as two")
	}
}

func TestProgressLine(t *testing.T) {
	t.Parallel()
	p := newProgress(nil, 20_000)
	for done, want := range map[int]string{
		0:      "[..............................] 0 of 20,000, 1.5s",
		10_000: "[###############...............] 10,000 of 20,000, 1.5s",
		30_000: "[##############################] 20,000 of 20,000, 1.5s",
	} {
		if got := p.line(done, 1500*time.Millisecond); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// BenchmarkCluster runs tasks through a whole cluster in this process, for a profile of where the time goes:
//
//	go test ./cmd/skalds -run '^$' -bench Cluster/memory -benchtime 100000x -cpuprofile cpu.prof
func BenchmarkCluster(b *testing.B) {
	b.Run("memory", func(b *testing.B) { benchmarkCluster(b) })
	b.Run("data", func(b *testing.B) { benchmarkCluster(b, "--data", b.TempDir()) })
}

func benchmarkCluster(b *testing.B, args ...string) {
	b.Helper()
	d := startDev(b, args...)
	c, err := client.New(client.Config{Server: d.server})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	m := &bench{
		api: c, prefix: "bench-", runs: make([]benchRun, b.N), progress: newProgress(nil, b.N),
		o: benchOptions{scenario: throughput, tasks: b.N, classes: []string{"demo.clock"}, batch: 1000, timeout: patience},
	}
	before, err := m.settledNodes(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	if err := m.driveBatches(b.Context(), before); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	if err := m.readRuns(b.Context()); err != nil {
		b.Fatal(err)
	}
	r := evaluate(throughput, m.runs, 0)
	if !r.good() {
		b.Errorf("%+v", r)
	}
	b.ReportMetric(r.TasksPerSecond, "tasks/s")
}
