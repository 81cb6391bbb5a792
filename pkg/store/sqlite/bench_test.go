package sqlite

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// batch is how many tasks one call of the benchmark carries.
const batch = 500

// demoQueue is the queue of tasks that waits makes.
const demoQueue = "0||demo.echo"

func waits(i int) task.Task {
	return task.Task{ID: fmt.Sprintf("t%07d", i), ClassName: "demo.echo", Mode: task.ModePassive, LifecycleStatus: task.Created, IsPersistent: true,
		CreateDateTime: 1796010393000 + int64(i/300), UpdateDateTime: 1796010393000, Attachments: []byte(`{"n":1}`)}
}

// meter takes the time of a benchmark's steps: on the wall, and of the processor, which on a busy machine says more.
type meter struct {
	wall, cpu time.Duration
	tasks     int
}

func (m *meter) run(b *testing.B, step func()) {
	b.Helper()
	wall, before := time.Now(), cpu(b)
	step()
	m.wall += time.Since(wall)
	m.cpu += cpu(b) - before
	m.tasks += batch
}

func (m *meter) report(b *testing.B, name string) {
	b.Helper()
	b.ReportMetric(float64(m.cpu.Nanoseconds())/float64(m.tasks), name+"-cpu-ns/task")
	b.ReportMetric(float64(m.tasks)/m.wall.Seconds(), name+"/s")
}

func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkLife creates, reads, claims and finishes batches of 500 while 100,000 tasks wait and as many ended ones are
// kept.
func BenchmarkLife(b *testing.B) {
	for _, sync := range []Sync{SyncNormal, SyncFull} {
		b.Run(string(sync), func(b *testing.B) {
			s, err := Open(b.Context(), filepath.Join(b.TempDir(), "skalds.db"), Options{Sync: sync})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = s.Close(b.Context()) }()
			n := 0
			create := func() {
				tasks := make([]task.Task, batch)
				for i := range tasks {
					tasks[i] = waits(n + i)
				}
				n += batch
				if _, err := s.Create(b.Context(), tasks); err != nil {
					b.Fatal(err)
				}
			}
			for n < 100_000 {
				create()
			}
			var created, read, claimed, finished meter
			for b.Loop() {
				created.run(b, create)
				var page store.PendingPage
				read.run(b, func() {
					if page, err = s.Waiting(b.Context(), demoQueue, store.Place{}, batch); err != nil {
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
				claimed.run(b, func() { applyAll(b, s, claims) })
				finished.run(b, func() { applyAll(b, s, ends) })
			}
			created.report(b, "create")
			read.report(b, "waiting")
			claimed.report(b, "claim")
			finished.report(b, "finish")
		})
	}
}

func applyAll(b *testing.B, s *Store, changes []task.Change) {
	b.Helper()
	if k, err := s.Apply(b.Context(), changes); err != nil || k != batch {
		b.Fatalf("applied %d, error %v", k, err)
	}
}

// BenchmarkSharedTransactions says how much cheaper a call is where 64 callers are at it than where one is: they share
// transactions.
func BenchmarkSharedTransactions(b *testing.B) {
	const callers = 64
	for _, sync := range []Sync{SyncNormal, SyncFull} {
		b.Run(string(sync), func(b *testing.B) {
			s, err := Open(b.Context(), filepath.Join(b.TempDir(), "skalds.db"), Options{Sync: sync})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = s.Close(b.Context()) }()
			var next atomic.Int64
			perCall := func(n, calls int) float64 {
				began := time.Now()
				var g errgroup.Group
				for range n {
					g.Go(func() error {
						for range calls / n {
							if _, err := s.Create(b.Context(), []task.Task{waits(int(next.Add(1)))}); err != nil {
								return err
							}
						}
						return nil
					})
				}
				if err := g.Wait(); err != nil {
					b.Fatal(err)
				}
				return time.Since(began).Seconds() / float64(calls/n*n)
			}
			var alone, together float64
			for b.Loop() {
				alone += perCall(1, 4*callers)
				together += perCall(callers, 4*callers)
			}
			b.ReportMetric(alone/together, "alone/together")
		})
	}
}
