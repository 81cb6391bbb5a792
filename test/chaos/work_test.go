package chaos_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
	"github.com/skalds-go/skalds/test/chaos/history"
)

// The classes of the worker.
const (
	quick    = "quick"
	slow     = "slow"
	inSteps  = "steps"    // can be paused and updated
	stubborn = "stubborn" // does not stop when it is told to
)

func newTask(id, class string, ms int) client.NewTask {
	return client.NewTask{ID: id, ClassName: class, Attachments: map[string]int{"ms": ms}}
}

// batch is n tasks of one kind.
func batch(n int, prefix, class string, ms int) []client.NewTask {
	list := make([]client.NewTask, n)
	for i := range list {
		list[i] = newTask(fmt.Sprintf("%s-%05d", prefix, i), class, ms)
	}
	return list
}

// callLimit is how long one call of the API may take.
const callLimit = 3 * time.Second

// offer submits tasks through whichever controller takes them, until all are acknowledged or the context ends. The ids
// make that safe.
func (w *world) offer(ctx context.Context, list []client.NewTask) error {
	var last error
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for try := 0; len(list) > 0; try++ {
		api := w.controllers()[try%controllers].api
		n := min(len(list), store.MaxBatch)
		call, cancel := context.WithTimeout(ctx, callLimit)
		items, err := api.SubmitBatch(call, list[:n])
		cancel()
		last = err
		taken := map[string]bool{}
		for _, it := range items {
			if it.Status == http.StatusCreated || it.Status == http.StatusConflict {
				taken[it.ID] = true
			} else {
				last = fmt.Errorf("%s: %d %s", it.ID, it.Status, it.Error)
			}
		}
		w.mu.Lock()
		w.submitted = slices.AppendSeq(w.submitted, maps.Keys(taken))
		w.mu.Unlock()
		list = slices.DeleteFunc(list, func(t client.NewTask) bool { return taken[t.ID] })
		if last == nil {
			continue
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d tasks are not acknowledged: %w; last: %w", len(list), ctx.Err(), last)
		}
	}
	return nil
}

// submit has tasks acknowledged.
func (w *world) submit(n int, prefix, class string, ms int) {
	w.T.Helper()
	ctx, cancel := context.WithTimeout(w.T.Context(), recoverLimit)
	defer cancel()
	if err := w.offer(ctx, batch(n, prefix, class, ms)); err != nil {
		w.T.Fatal(err)
	}
}

// cancel asks for a task's end. It may be refused, for the task has ended or nobody answers.
func (w *world) cancel(ctx context.Context, id string) {
	w.allow(id, func(m *history.May) { m.Cancel = true })
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	_, _ = w.controllers()[0].api.Cancel(ctx, id)
}

// allow notes what may become of a task.
func (w *world) allow(id string, change func(*history.May)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.may[id]
	change(&m)
	w.may[id] = m
}

// acknowledged gives the ids of a prefix that a controller has taken.
func (w *world) acknowledged(prefix string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ids []string
	for _, id := range w.submitted {
		if len(id) >= len(prefix) && id[:len(prefix)] == prefix {
			ids = append(ids, id)
		}
	}
	return ids
}

// count asks the store itself how many tasks of a prefix have one of these statuses.
func (w *world) count(ctx context.Context, prefix string, status ...task.Status) (int, error) {
	page, err := w.store.List(ctx, store.Filter{IDPrefix: prefix, Status: status, Limit: 1, Total: true})
	return int(page.Total), err
}

// stored reads all tasks of a prefix from the store itself.
func (w *world) stored(prefix string) map[string]task.Task {
	w.T.Helper()
	all := map[string]task.Task{}
	for f := (store.Filter{IDPrefix: prefix, Limit: store.MaxBatch}); ; {
		page, err := w.store.List(w.T.Context(), f)
		if err != nil {
			w.T.Fatal(err)
		}
		for i := range page.Tasks {
			all[page.Tasks[i].ID] = page.Tasks[i]
		}
		if f.Cursor = page.NextCursor; f.Cursor == "" {
			return all
		}
	}
}

// ended waits until all tasks of a prefix have ended, and gives how long that took.
func (w *world) ended(limit time.Duration, prefix string) time.Duration {
	w.T.Helper()
	began := time.Now()
	w.Eventually(limit, "all tasks "+prefix+" have ended", func(ctx context.Context) (bool, string) {
		n, err := w.count(ctx, prefix, task.Created, task.Assigning, task.Running, task.Paused)
		return err == nil && n == 0, fmt.Sprint(n, " have not; ", err)
	})
	return time.Since(began)
}

// check waits for the end of all tasks of a prefix and applies the rules to them. The API must show what the store has.
func (w *world) check(limit time.Duration, prefix string) map[string]task.Task {
	w.T.Helper()
	w.ended(limit, prefix)
	stored := w.stored(prefix)
	w.compare(prefix, stored)
	all := maps.Clone(stored) // what was stored without an acknowledgement must end as well
	for _, id := range w.acknowledged(prefix) {
		all[id] = task.Task{}
	}
	ids := slices.Collect(maps.Keys(all))
	// A run that was given away may still be on its way to its end.
	var wrong []string
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for range int(rules.LostAfter / (100 * time.Millisecond)) {
		record := w.record()
		if wrong = record.Check(ids, stored, w.may); len(wrong) == 0 {
			return stored
		}
		<-tick.C
	}
	for _, text := range wrong {
		w.T.Error(text)
	}
	return stored
}

// compare checks that the API lists what the store has.
func (w *world) compare(prefix string, stored map[string]task.Task) {
	w.T.Helper()
	listed := w.Tasks(prefix)
	if len(listed) != len(stored) {
		w.T.Errorf("the API lists %d tasks %s, the store has %d", len(listed), prefix, len(stored))
	}
	for id, t := range stored {
		if got := listed[id]; got.LifecycleStatus != t.LifecycleStatus || got.Attempt != t.Attempt || string(got.Result) != string(t.Result) {
			w.T.Errorf("the API says that task %s is %s of attempt %d with %s; the store has %s of attempt %d with %s",
				id, got.LifecycleStatus, got.Attempt, got.Result, t.LifecycleStatus, t.Attempt, t.Result)
		}
	}
}

// reruns is how many runs there were beyond one for each task.
func reruns(runs map[string][]history.Run) int {
	n := 0
	for _, list := range runs {
		n += len(list) - 1
	}
	return n
}
