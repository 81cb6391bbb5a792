package memory

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

const batch = 500

// filled is a store with n tasks that wait.
func filled(tb testing.TB, n int) *Store {
	tb.Helper()
	s := New()
	for i := 0; i < n; i += batch {
		createBatch(tb, s, i)
	}
	return s
}

func createBatch(tb testing.TB, s *Store, from int) {
	tb.Helper()
	tasks := make([]task.Task, batch)
	for i := range tasks {
		tasks[i] = fresh(from + i)
	}
	if _, err := s.Create(tb.Context(), tasks); err != nil {
		tb.Fatal(err)
	}
}

// meter takes the processor time of a benchmark's steps, which on a busy machine says more than the time on the wall.
type meter struct {
	cpu   time.Duration
	tasks int
}

func (m *meter) run(b *testing.B, step func()) {
	b.Helper()
	before := cpu(b)
	step()
	m.cpu += cpu(b) - before
	m.tasks += batch
}

func (m *meter) report(b *testing.B, name string) {
	b.Helper()
	b.ReportMetric(float64(m.cpu.Nanoseconds())/float64(m.tasks), name+"-cpu-ns/task")
	b.ReportMetric(float64(m.tasks)/m.cpu.Seconds(), name+"/cpu-s")
}

func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkLife creates, reads, claims and finishes batches of 500 while 1M tasks wait and 100,000 ended ones are kept.
func BenchmarkLife(b *testing.B) {
	s, n := filled(b, 1_000_000), 1_000_000
	var created, read, claimed, finished meter
	for b.Loop() {
		tasks := make([]task.Task, batch)
		for i := range tasks {
			tasks[i] = fresh(n + i)
		}
		n += batch
		created.run(b, func() {
			if _, err := s.Create(b.Context(), tasks); err != nil {
				b.Fatal(err)
			}
		})
		var page store.PendingPage
		read.run(b, func() {
			var err error
			if page, err = s.Waiting(b.Context(), "0||demo.echo", store.Place{}, batch); err != nil {
				b.Fatal(err)
			}
		})
		claims := make([]task.Change, len(page.Tasks))
		ends := make([]task.Change, 0, len(page.Tasks))
		for i := range claims {
			t := &page.Tasks[i]
			claims[i] = task.Claim(t, fmt.Sprintf("n%d", i%10), "i1", "claim-"+t.ID, 5)
			r := task.Report{ID: t.ID, Attempt: 1, ClaimID: "claim-" + t.ID, Kind: task.ReportFinished, FinishedAt: 7, Result: []byte(`{}`)}
			ends = append(ends, r.Changes(int64(n+i))...)
		}
		claimed.run(b, func() { apply(b, s, claims) })
		finished.run(b, func() { apply(b, s, ends) })
	}
	created.report(b, "create")
	read.report(b, "waiting")
	claimed.report(b, "claim")
	finished.report(b, "finish")
}

func apply(b *testing.B, s *Store, changes []task.Change) {
	b.Helper()
	if k, err := s.Apply(b.Context(), changes); err != nil || k != batch {
		b.Fatalf("applied %d, error %v", k, err)
	}
}
