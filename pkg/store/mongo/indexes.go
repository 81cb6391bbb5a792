package mongo

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// indexTimeout is how long making one index may take.
const indexTimeout = 10 * time.Minute

// indexes are those of the tasks; doc.go says what each serves.
func indexes() []mongo.IndexModel {
	asc := func(keys ...string) bson.D {
		d := make(bson.D, 0, len(keys))
		for _, k := range keys {
			d = append(d, bson.E{Key: k, Value: 1})
		}
		return d
	}
	return []mongo.IndexModel{
		{Keys: asc("id"), Options: options.Index().SetUnique(true)},
		{Keys: asc("idempotencyKey"), Options: options.Index().SetUnique(true).SetSparse(true)},
		{Keys: asc("keyPermit"), Options: options.Index().SetUnique(true).SetSparse(true)},
		{Keys: asc("poolPermit"), Options: options.Index().SetUnique(true).SetSparse(true)},
		{Keys: asc("lifecycleStatus", "mode", "notBefore", "queue", "createDateTime", "id")},
		{Keys: asc("lifecycleStatus", "updateDateTime")},
		{Keys: asc("lifecycleStatus", "deadlineDateTime")},
		{Keys: asc("desired"), Options: options.Index().SetSparse(true)},
		{Keys: asc("executor", "lifecycleStatus")},
		{Keys: bson.D{{Key: "createDateTime", Value: -1}, {Key: "id", Value: -1}}},
	}
}

// createIndexes makes the indexes that are missing, one after the other, so that an error says which.
func (s *Store) createIndexes(ctx context.Context) error {
	for _, index := range indexes() {
		if err := s.createIndex(ctx, index); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) createIndex(ctx context.Context, index mongo.IndexModel) error {
	ctx, cancel := context.WithTimeout(ctx, indexTimeout)
	defer cancel()
	_, err := s.tasks.Indexes().CreateOne(ctx, index)
	if err == nil {
		return nil
	}
	op := fmt.Sprintf("make the index %v", index.Keys)
	switch {
	case mongo.IsDuplicateKeyError(err):
		return fail(op, s.tasks, fmt.Errorf("%w: documents have the same value, or lack it: keep one of each and remove the others", err))
	case slices.ContainsFunc([]int{85, 86}, func(code int) bool { return hasCode(err, code) }): // IndexOptionsConflict, IndexKeySpecsConflict
		return fail(op, s.tasks, fmt.Errorf("%w: drop the index of the same name or keys that is there, it is made anew", err))
	default:
		return fail(op, s.tasks, err)
	}
}
