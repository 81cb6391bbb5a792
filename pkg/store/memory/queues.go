package memory

import (
	"context"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// queue holds the tasks that wait and ask for the same. Each stored task refers to its own, so that a name is made and
// kept once.
type queue struct {
	name  string
	tasks *tree[place] // those that wait, by (createDateTime, id)
	of    int          // stored tasks of this queue, waiting or not
}

// queues holds the queues of all stored tasks by name, and those with waiting tasks in the order of their names.
type queues struct {
	byName map[string]*queue
	names  *tree[*queue]
}

func newQueues() *queues {
	return &queues{byName: map[string]*queue{}, names: newTree(func(a, b *queue) bool { return a.name < b.name })}
}

// join returns the queue of that name and counts one more task of it; leave counts one less.
func (qs *queues) join(name string) *queue {
	q, ok := qs.byName[name]
	if !ok {
		q = &queue{name: name, tasks: newTree(byPlace)}
		qs.byName[name] = q
	}
	q.of++
	return q
}

func (qs *queues) leave(q *queue) {
	if q.of--; q.of == 0 {
		delete(qs.byName, q.name)
	}
}

// add puts e into its queue as a waiting task; remove takes it out.
func (qs *queues) add(e *entry) {
	if e.queue.tasks.Len() == 0 {
		qs.names.add(e.queue)
	}
	e.queue.tasks.add(e.created())
}

func (qs *queues) remove(e *entry) {
	e.queue.tasks.remove(e.created())
	if e.queue.tasks.Len() == 0 {
		qs.names.remove(e.queue)
	}
}

// after calls yield for the queues with waiting tasks after the given name, until it returns false.
func (qs *queues) after(name string, yield func(*queue) bool) {
	qs.names.Ascend(&queue{name: name}, func(q *queue) bool { return q.name == name || yield(q) })
}

// Queues implements store.Queues. No document of this store fails to decode, so Bad is always empty.
func (s *Store) Queues(ctx context.Context, after string, limit int) (store.QueuePage, error) {
	var page store.QueuePage
	if err := check(ctx, "queues", store.CheckLimit(limit)); err != nil {
		return page, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	page.Names = make([]string, 0, min(limit, s.tasks.queues.names.Len()))
	s.tasks.queues.after(after, func(q *queue) bool {
		if page.More = len(page.Names) == limit; page.More {
			return false
		}
		page.Names = append(page.Names, q.name)
		return true
	})
	return page, nil
}

// Depths implements store.Queues.
func (s *Store) Depths(ctx context.Context, after string, limit int) (map[string]int64, error) {
	if err := check(ctx, "depths", store.CheckLimit(limit)); err != nil {
		return nil, err
	}
	depths := map[string]int64{}
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.tasks.queues.after(after, func(q *queue) bool {
		depths[q.name] = int64(q.tasks.Len())
		return len(depths) < limit
	})
	return depths, nil
}

// Waiting implements store.Queues.
func (s *Store) Waiting(ctx context.Context, name string, after store.Place, limit int) (store.PendingPage, error) {
	if err := check(ctx, "waiting", store.CheckLimit(limit)); err != nil {
		return store.PendingPage{}, err
	}
	var page store.PendingPage
	s.mu.RLock()
	defer s.mu.RUnlock()
	q, ok := s.tasks.queues.byName[name]
	if !ok {
		return page, nil
	}
	page.Tasks = make([]task.Task, 0, min(limit, q.tasks.Len()))
	take := func(p place) bool {
		if after.Set && p.at == after.CreateDateTime && p.e.t.ID == after.ID {
			return true // the place is just behind this one
		}
		if page.More = len(page.Tasks) == limit; page.More {
			return false
		}
		page.Tasks = append(page.Tasks, p.e.t.Clone())
		return true
	}
	if after.Set {
		q.tasks.Ascend(at(after.CreateDateTime, after.ID), take)
	} else {
		q.tasks.Scan(take)
	}
	return page, nil
}
