package memory

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// spread is a store with n tasks that wait, in so many queues.
func spread(b *testing.B, n, queues int) *Store {
	b.Helper()
	s := New()
	tasks := make([]task.Task, batch)
	for i := 0; i < n; i += batch {
		for j := range tasks {
			tasks[j] = fresh(i + j)
			tasks[j].Namespace = fmt.Sprintf("n%06d", (i+j)%queues)
		}
		if _, err := s.Create(b.Context(), tasks); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

// BenchmarkWaiting reads the head of a queue: it must not matter how many wait, nor in how many queues.
func BenchmarkWaiting(b *testing.B) {
	for _, c := range []struct{ tasks, queues int }{{1_000, 1}, {1_000_000, 1}, {1_000_000, 100_000}} {
		b.Run(fmt.Sprintf("tasks=%d/queues=%d", c.tasks, c.queues), func(b *testing.B) {
			s := spread(b, c.tasks, c.queues)
			page, err := s.Queues(b.Context(), "", 1)
			if err != nil {
				b.Fatal(err)
			}
			runtime.GC() // what the filling left
			b.ReportAllocs()
			before := cpu(b)
			for b.Loop() {
				if got, err := s.Waiting(b.Context(), page.Names[0], store.Place{}, 10); err != nil || len(got.Tasks) != 10 {
					b.Fatalf("%d tasks, error %v", len(got.Tasks), err)
				}
			}
			b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}

// BenchmarkQueues reads a page of 1,000 queues out of the middle.
func BenchmarkQueues(b *testing.B) {
	for _, queues := range []int{2_000, 100_000} {
		b.Run(fmt.Sprintf("queues=%d", queues), func(b *testing.B) {
			s := spread(b, queues*10, queues)
			middle := (&task.Task{Namespace: fmt.Sprintf("n%06d", queues/3), ClassName: "demo.echo"}).Queue()
			runtime.GC() // what the filling left
			b.ReportAllocs()
			before := cpu(b)
			for b.Loop() {
				if got, err := s.Queues(b.Context(), middle, store.MaxBatch); err != nil || len(got.Names) != store.MaxBatch {
					b.Fatalf("%d queues, error %v", len(got.Names), err)
				}
			}
			b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}
