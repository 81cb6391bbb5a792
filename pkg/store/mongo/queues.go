package mongo

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// ready matches what waits for the controller, whatever its notBefore.
func ready() bson.D {
	return bson.D{{Key: "lifecycleStatus", Value: task.Created}, {Key: "mode", Value: task.ModePassive}}
}

// queued matches what waits in a queue. Documents have these two by encode or by fill, so that the index alone says
// which match.
func queued(queue any) bson.D {
	return append(ready(), bson.E{Key: "notBefore", Value: int64(0)}, bson.E{Key: "queue", Value: queue})
}

func not(field, op string, v any) bson.E {
	return bson.E{Key: field, Value: bson.D{{Key: "$not", Value: bson.D{{Key: op, Value: v}}}}}
}

const (
	// window is how many keys of the index are read at a time to find queues.
	window = 256
	// maxWindows is how many windows one call of Queues reads: a page may be shorter than it was asked for.
	maxWindows = 1000
)

// Queues implements store.Queues.
//
// It reads a window of the index, and goes on behind the last queue that it saw there: so it costs a window for a queue
// with many tasks, and as few for many queues with few. No server needs to know how to skip from one value to the next
// by itself.
func (s *Store) Queues(ctx context.Context, after string, limit int) (store.QueuePage, error) {
	if err := store.CheckLimit(limit); err != nil {
		return store.QueuePage{}, fmt.Errorf("mongodb: queues: %w", err)
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	r := repair{now: time.Now().UnixMilli()}
	if after == "" {
		if err := s.repairHidden(ctx, &r); err != nil {
			return store.QueuePage{}, err
		}
	}
	page := store.QueuePage{Bad: r.bad}
	opts := options.Find().SetProjection(bson.D{{Key: "_id", Value: 0}, {Key: "queue", Value: 1}}).SetSort(bson.D{{Key: "queue", Value: 1}}).
		SetLimit(window).SetBatchSize(window + 1)
	for range maxWindows {
		n, from := 0, after
		err := s.each(ctx, "list the queues", queued(bson.D{{Key: "$gt", Value: after}}), opts, func(doc bson.Raw) error {
			n++
			if name := queueOf(doc); name > after { // what is no string comes with those, and is for findOrphans
				page.Names, after = append(page.Names, name), name
			}
			return nil
		})
		if err != nil {
			return store.QueuePage{}, err
		}
		if len(page.Names) >= limit {
			page.More = n == window || len(page.Names) > limit
			page.Names = page.Names[:limit]
			return page, nil
		}
		if n < window || after == from {
			return page, nil
		}
	}
	page.More = true
	return page, nil
}

// repairHidden finds documents that no page shows, and repairs or fails them.
func (s *Store) repairHidden(ctx context.Context, r *repair) error {
	if err := s.findUnfilled(ctx, r); err != nil {
		return err
	}
	if !s.sweep.due(time.Now()) {
		return nil
	}
	if err := s.findOrphans(ctx, r); err != nil {
		return err
	}
	_, err := s.carryOut(ctx, r)
	return err
}

// Waiting implements store.Queues.
//
// The server sorts by what the documents hold, of whatever type, and a place knows only a whole number and a string. So
// that no document hides behind a place, the filter is "not before the place" instead of "behind it": a value of
// another type is always let through. Such a document is read once: either it is bad, and marked, or it lacks its
// creation time, and gets the 0 that it stands for. One that another program has changed so that it belongs into
// another queue is put there.
func (s *Store) Waiting(ctx context.Context, queue string, after store.Place, limit int) (store.PendingPage, error) {
	if err := store.CheckLimit(limit); err != nil {
		return store.PendingPage{}, fmt.Errorf("mongodb: waiting: %w", err)
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	opts := options.Find().SetSort(bson.D{{Key: "createDateTime", Value: 1}, {Key: "id", Value: 1}}).
		SetLimit(int64(limit)).SetBatchSize(int32(limit) + 1)
	page := store.PendingPage{Tasks: make([]task.Task, 0, min(limit, 64))}
	r := repair{now: time.Now().UnixMilli()}
	n := 0
	err := s.each(ctx, "read what waits", waitingFilter(queue, after), opts, func(doc bson.Raw) error {
		n++
		page.Tasks = append(page.Tasks, task.Task{})
		t := &page.Tasks[len(page.Tasks)-1]
		if !r.examine(doc, t) || t.Queue() != queue {
			page.Tasks = page.Tasks[:len(page.Tasks)-1]
		}
		return nil
	})
	if err != nil {
		return store.PendingPage{}, err
	}
	done, err := s.carryOut(ctx, &r)
	if err != nil {
		return store.PendingPage{}, err
	}
	page.Bad = r.bad
	// Bad documents that the server does not let us mark come again; without progress there is no next page, or the
	// caller would spin.
	page.More = n == limit && (len(page.Tasks) > 0 || done > 0)
	return page, nil
}

// waitingFilter matches what waits in the queue and is not before the place, one branch for each range of the index.
func waitingFilter(queue string, after store.Place) any {
	waits := queued(queue)
	if !after.Set {
		return waits
	}
	branch := func(more ...bson.E) bson.D { return append(slices.Clone(waits), more...) }
	return bson.D{{Key: "$or", Value: bson.A{
		branch(not("createDateTime", "$lte", after.CreateDateTime)),
		branch(bson.E{Key: "createDateTime", Value: after.CreateDateTime}, not("id", "$lte", after.ID)),
	}}}
}

// Depths implements store.Queues. It goes over the whole of the index behind the name.
func (s *Store) Depths(ctx context.Context, after string, limit int) (map[string]int64, error) {
	if err := store.CheckLimit(limit); err != nil {
		return nil, fmt.Errorf("mongodb: depths: %w", err)
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	cursor, err := s.tasks.Aggregate(ctx, bson.A{
		bson.D{{Key: "$match", Value: queued(bson.D{{Key: "$gt", Value: after}})}},
		bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$queue"}, {Key: "n", Value: bson.D{{Key: "$sum", Value: 1}}}}}},
		bson.D{{Key: "$sort", Value: bson.D{{Key: "_id", Value: 1}}}},
		bson.D{{Key: "$limit", Value: limit}},
	})
	const op = "count what waits"
	if err != nil {
		return nil, fail(op, s.tasks, err)
	}
	var found []bson.Raw
	if err := cursor.All(ctx, &found); err != nil {
		return nil, fail(op, s.tasks, err)
	}
	depths := make(map[string]int64, len(found))
	for _, doc := range found {
		name, _ := doc.Lookup("_id").StringValueOK()
		depths[name], _ = whole(doc.Lookup("n"))
	}
	return depths, nil
}
