package main

import (
	"strings"
	"testing"
	"time"

	"github.com/skalds-go/skalds/cmd/skalds/internal/bench"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/task"
)

// measure runs skalds bench and returns its report, which has every task finished exactly once.
func measure(t *testing.T, d *devCluster, args ...string) bench.Report {
	t.Helper()
	a := want(t, 0, append([]string{"bench", "-o", "json", "--server", d.server}, args...)...)
	r := decode[bench.Report](t, a)
	if !r.Good() {
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

// TestBenchLatency: tasks at a steady pace. What they take is for people to read, not for a test: see TestC35 and
// TestS12.
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
	if r := decode[bench.Report](t, a); r.FinishedOnce != 10 || r.Failed != 10 || r.Lost != 0 || r.Doubled != 0 {
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
	if r := decode[bench.Report](t, a); r.FinishedOnce != 2 || r.Lost != 2 {
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
	b.ResetTimer()
	r, err := bench.Measure(b.Context(), c, bench.Options{
		Scenario: bench.Throughput, Tasks: b.N, Classes: []string{"demo.clock"}, Batch: 1000, Timeout: patience,
	})
	if err != nil {
		b.Fatal(err)
	}
	if !r.Good() {
		b.Errorf("%+v", r)
	}
	b.ReportMetric(r.TasksPerSecond, "tasks/s")
	b.ReportMetric(r.Seconds*1e9/float64(b.N), "ns/op") // without the wait for idle nodes before and after
}
