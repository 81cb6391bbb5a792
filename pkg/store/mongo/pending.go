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

// Pending implements store.Tasks.
//
// The server sorts by what the documents hold, of whatever type, and a place knows only whole numbers and a string. So that no document
// hides behind a place, the filter is "not before the place" instead of "behind it": a value of another type is always let through. Such
// a document is read once: either it is bad, and marked, or it lacks priority or creation time, and gets the 0 that it stands for.
func (s *Store) Pending(ctx context.Context, after store.Place, limit int) (store.PendingPage, error) {
	if err := store.CheckLimit(limit); err != nil {
		return store.PendingPage{}, fmt.Errorf("mongodb: pending: %w", err)
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	opts := options.Find().SetSort(bson.D{{Key: "priority", Value: -1}, {Key: "createDateTime", Value: 1}, {Key: "id", Value: 1}}).
		SetLimit(int64(limit)).SetBatchSize(int32(limit) + 1)
	page := store.PendingPage{Next: after, Tasks: make([]task.Task, 0, min(limit, 64))}
	r := repair{now: time.Now().UnixMilli()}
	n := 0
	err := s.each(ctx, "read what waits", pendingFilter(after), opts, func(doc bson.Raw) error {
		n++
		page.Tasks = append(page.Tasks, task.Task{})
		t := &page.Tasks[len(page.Tasks)-1]
		if err := judge(doc, t); err != nil {
			page.Tasks = page.Tasks[:len(page.Tasks)-1]
			r.mark(doc, t, reason(err))
			return nil
		}
		r.fill(doc, t)
		return nil
	})
	if err != nil {
		return store.PendingPage{}, err
	}
	if !after.Set && s.sweep.due(time.Now()) {
		if err := s.findStrays(ctx, &r); err != nil {
			return store.PendingPage{}, err
		}
	}
	done, err := s.carryOut(ctx, &r)
	if err != nil {
		return store.PendingPage{}, err
	}
	page.Bad = r.bad
	// Bad documents that the server does not let us mark come again; without progress there is no next page, or the caller would spin.
	page.More = n == limit && (len(page.Tasks) > 0 || done > 0)
	if k := len(page.Tasks); k > 0 {
		page.Next = store.After(&page.Tasks[k-1])
	}
	return page, nil
}

// pendingFilter matches what waits for the controller and is not before the place, one branch for each range of the index.
func pendingFilter(after store.Place) any {
	waits := append(ready(), bson.E{Key: "notBefore", Value: bson.D{{Key: "$in", Value: bson.A{int64(0), nil}}}})
	if !after.Set {
		return waits
	}
	branch := func(more ...bson.E) bson.D { return append(slices.Clone(waits), more...) }
	priority, created := bson.E{Key: "priority", Value: after.Priority}, bson.E{Key: "createDateTime", Value: after.CreateDateTime}
	return bson.D{{Key: "$or", Value: bson.A{
		branch(not("priority", "$gte", after.Priority)),
		branch(priority, not("createDateTime", "$lte", after.CreateDateTime)),
		branch(priority, created, not("id", "$lte", after.ID)),
	}}}
}
