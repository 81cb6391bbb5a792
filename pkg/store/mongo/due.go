package mongo

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// Promote implements store.Tasks.
func (s *Store) Promote(ctx context.Context, now int64, limit int) (promoted int, next int64, err error) {
	if err := store.CheckLimit(limit); err != nil {
		return 0, 0, fmt.Errorf("mongodb: promote: %w", err)
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	const op = "let tasks wait whose time has come"
	come := append(ready(), bson.E{Key: "notBefore", Value: bson.D{{Key: "$lte", Value: now}, {Key: "$ne", Value: int64(0)}}})
	var found []any
	opts := options.Find().SetProjection(bson.D{{Key: "_id", Value: 1}}).SetLimit(int64(limit)).SetBatchSize(int32(limit) + 1)
	err = s.each(ctx, op, come, opts, func(doc bson.Raw) error {
		found = append(found, copyValue(doc.Lookup("_id")))
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	if len(found) > 0 {
		filter := append(bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: found}}}}, come...)
		result, err := s.tasks.UpdateMany(ctx, filter, bson.D{{Key: "$set", Value: bson.D{{Key: "notBefore", Value: int64(0)}}}})
		if err != nil {
			return 0, 0, fail(op, s.tasks, err)
		}
		promoted = int(result.ModifiedCount)
	}
	left := append(ready(), bson.E{Key: "notBefore", Value: bson.D{{Key: "$gt", Value: int64(0)}}})
	next, err = s.earliest(ctx, op, left, "notBefore")
	return promoted, next, err
}

// Overdue implements store.Tasks.
func (s *Store) Overdue(ctx context.Context, now int64, limit int) (tasks []task.Task, next int64, err error) {
	if err := store.CheckLimit(limit); err != nil {
		return nil, 0, fmt.Errorf("mongodb: overdue: %w", err)
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	const op = "read what is overdue"
	due := func(condition bson.D) bson.D { return bson.D{unended(), {Key: "deadlineDateTime", Value: condition}} }
	opts := light().SetSort(bson.D{{Key: "deadlineDateTime", Value: 1}}).SetLimit(int64(limit))
	come := due(bson.D{{Key: "$gt", Value: int64(0)}, {Key: "$lte", Value: now}})
	if tasks, err = s.all(ctx, op, come, opts); err != nil {
		return nil, 0, err
	}
	next, err = s.earliest(ctx, op, due(bson.D{{Key: "$gt", Value: now}}), "deadlineDateTime")
	return tasks, next, err
}

// earliest is the least value of a field among the documents that match; 0 if there is none.
func (s *Store) earliest(ctx context.Context, op string, filter bson.D, field string) (int64, error) {
	least := int64(0)
	opts := options.Find().SetProjection(bson.D{{Key: field, Value: 1}}).SetSort(bson.D{{Key: field, Value: 1}}).SetLimit(1)
	err := s.each(ctx, op, filter, opts, func(doc bson.Raw) error {
		least, _ = whole(doc.Lookup(field))
		return nil
	})
	return least, err
}
