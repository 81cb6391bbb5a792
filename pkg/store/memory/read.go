package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// chunk is how many entries a long read looks at before it lets writers in.
const chunk = 1024

// Promote implements store.Tasks.
func (s *Store) Promote(ctx context.Context, now int64, limit int) (promoted int, next int64, err error) {
	if err := check(ctx, "promote", store.CheckLimit(limit)); err != nil {
		return 0, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		first, ok := s.tasks.later.Min()
		switch {
		case !ok:
			return promoted, 0, nil
		case first.at > now || promoted == limit:
			return promoted, first.at, nil
		}
		s.tasks.unlink(first.e)
		first.e.t.NotBefore = 0
		s.tasks.link(first.e)
		promoted++
	}
}

// Overdue implements store.Tasks.
func (s *Store) Overdue(ctx context.Context, now int64, limit int) (tasks []task.Task, next int64, err error) {
	if err := check(ctx, "overdue", store.CheckLimit(limit)); err != nil {
		return nil, 0, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.tasks.deadlines.Scan(func(p place) bool {
		if p.at > now {
			next = p.at
			return false
		}
		if len(tasks) < limit {
			tasks = append(tasks, p.e.light())
			return true
		}
		return false
	})
	if next == 0 && len(tasks) == limit {
		s.tasks.deadlines.Ascend(at(now+1, ""), func(p place) bool {
			next = p.at
			return false
		})
	}
	return tasks, next, nil
}

// Get implements store.Tasks.
func (s *Store) Get(ctx context.Context, ids []string) ([]task.Task, error) {
	if err := check(ctx, "get", store.CheckBatch(len(ids))); err != nil {
		return nil, err
	}
	out := make([]task.Task, 0, len(ids))
	seen := make(map[string]struct{}, len(ids))
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, id := range ids {
		if _, twice := seen[id]; twice {
			continue
		}
		seen[id] = struct{}{}
		if e, ok := s.tasks.byID[id]; ok {
			out = append(out, e.t.Clone())
		}
	}
	return out, nil
}

// light is a copy without attachments and result.
func (e *entry) light() task.Task {
	t := e.t.Clone()
	t.Attachments, t.Result = nil, nil
	return t
}

// Active implements store.Tasks. It yields each task that is active at its begin and still is when its turn comes,
// once, without holding a lock.
func (s *Store) Active(ctx context.Context, yield func(*task.Task) error) error {
	if err := alive(ctx); err != nil {
		return err
	}
	var all []*entry
	s.mu.RLock()
	for _, status := range []task.Status{task.Assigning, task.Running, task.Paused} {
		s.tasks.of(status).Scan(func(p place) bool { all = append(all, p.e); return true })
	}
	s.mu.RUnlock()
	for some := range slices.Chunk(all, chunk) {
		if err := alive(ctx); err != nil {
			return err
		}
		part := make([]task.Task, 0, len(some))
		s.mu.RLock()
		for _, e := range some {
			if e.t.LifecycleStatus.Active() {
				part = append(part, e.light())
			}
		}
		s.mu.RUnlock()
		for i := range part {
			if err := yield(&part[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Desired implements store.Tasks.
func (s *Store) Desired(ctx context.Context, limit int) ([]task.Task, error) {
	if err := check(ctx, "desired", store.CheckLimit(limit)); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]task.Task, 0, min(limit, len(s.tasks.desired)))
	for e := range s.tasks.desired {
		if len(out) == limit {
			break
		}
		out = append(out, e.light())
	}
	return out, nil
}

// Counts implements store.Tasks.
func (s *Store) Counts(ctx context.Context) (map[task.Status]int64, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	counts := make(map[task.Status]int64, statuses)
	for i, t := range s.tasks.byStatus {
		counts[order[i]] = int64(t.Len())
	}
	return counts, nil
}

// List implements store.Tasks.
func (s *Store) List(ctx context.Context, f store.Filter) (store.ListPage, error) {
	if err := check(ctx, "list", f.Check()); err != nil {
		return store.ListPage{}, err
	}
	w := walk{s: s, f: &f, statuses: task.Set(f.Status...)}
	if len(f.Status) == 0 {
		w.statuses = task.Set(task.All()...)
	}
	var from *place
	if f.Cursor != "" {
		created, id, err := store.ParseCursor(f.Cursor)
		if err != nil {
			return store.ListPage{}, fmt.Errorf("list: %w", err)
		}
		from = new(at(created, id))
	}
	var page store.ListPage
	skip := f.Skip
	err := w.down(ctx, from, f.Limit+f.Skip+1, func(e *entry) bool {
		switch {
		case skip > 0:
			skip--
		case len(page.Tasks) == f.Limit:
			page.NextCursor = store.Cursor(&page.Tasks[f.Limit-1])
			return false
		default:
			page.Tasks = append(page.Tasks, e.t.Clone())
		}
		return true
	})
	if err == nil && f.Total {
		page.Total, err = w.count(ctx)
	}
	if err != nil {
		return store.ListPage{}, err
	}
	return page, nil
}

// walk goes through the tasks that a filter selects, the newest first.
type walk struct {
	s        *Store
	f        *store.Filter
	statuses task.Statuses
}

// down calls take, under the read lock, for each task behind the place (nil = from the newest), until take says no.
// It will need about `want` of them.
func (w *walk) down(ctx context.Context, from *place, want int, take func(*entry) bool) error {
	if w.f.Executor != "" || w.f.ClassName != "" || w.f.IDPrefix != "" || want > chunk {
		want = chunk // not all that it looks at will match
	}
	for {
		if err := alive(ctx); err != nil {
			return err
		}
		last, more := w.step(from, want, take)
		if !more {
			return nil
		}
		from = &last
	}
}

// step goes at most n tasks further, and says where it came to and whether there may be more.
func (w *walk) step(from *place, n int, take func(*entry) bool) (last place, more bool) {
	w.s.mu.RLock()
	defer w.s.mu.RUnlock()
	found := w.next(from, n)
	for _, p := range found {
		if w.matches(&p.e.t) && !take(p.e) {
			return place{}, false
		}
	}
	if len(found) < n {
		return place{}, false
	}
	return found[n-1], true
}

// next returns the next n places of the trees that the filter needs, together in one order.
func (w *walk) next(from *place, n int) []place {
	var found []place
	for _, t := range w.trees() {
		left := n
		take := func(p place) bool {
			if from != nil && p.at == from.at && p.e.t.ID == from.e.t.ID {
				return true
			}
			found = append(found, p)
			left--
			return left > 0
		}
		if from != nil {
			t.Descend(*from, take)
		} else {
			t.Reverse(take)
		}
	}
	slices.SortFunc(found, func(a, b place) int {
		if byPlace(b, a) {
			return -1
		}
		return 1
	})
	return found[:min(n, len(found))]
}

// trees are the smallest set of trees that hold all that the filter selects.
func (w *walk) trees() []*tree[place] {
	if w.f.Executor != "" {
		if t, ok := w.s.tasks.byExecutor[w.f.Executor]; ok {
			return []*tree[place]{t}
		}
		return nil
	}
	var trees []*tree[place]
	for _, status := range w.statuses.List() {
		trees = append(trees, w.s.tasks.of(status))
	}
	return trees
}

func (w *walk) matches(t *task.Task) bool {
	return w.statuses.Has(t.LifecycleStatus) &&
		(w.f.Executor == "" || t.Executor == w.f.Executor) &&
		(w.f.ClassName == "" || t.ClassName == w.f.ClassName) &&
		strings.HasPrefix(t.ID, w.f.IDPrefix)
}

// count counts all that match.
func (w *walk) count(ctx context.Context) (int64, error) {
	var n int64
	if w.f.Executor == "" && w.f.ClassName == "" && w.f.IDPrefix == "" {
		counts, err := w.s.Counts(ctx)
		for _, status := range w.statuses.List() {
			n += counts[status]
		}
		return n, err
	}
	err := w.down(ctx, nil, chunk, func(*entry) bool { n++; return true })
	return n, err
}
