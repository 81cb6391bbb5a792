package mongo

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// maxDocument is how large one document may be; the server's limit is 16 MiB, and a task grows while it lives.
const maxDocument = 15 << 20

func hasCode(err error, code int) bool {
	var answer mongo.ServerError
	return errors.As(err, &answer) && answer.HasErrorCode(code)
}

// Create implements store.Tasks.
func (s *Store) Create(ctx context.Context, tasks []task.Task) ([]store.CreateOutcome, error) {
	if err := store.CheckBatch(len(tasks)); err != nil {
		return nil, fmt.Errorf("mongodb: create: %w", err)
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	out := make([]store.CreateOutcome, len(tasks))
	docs := make([]any, 0, len(tasks))
	index := make([]int, 0, len(tasks)) // of each document, the task's
	for i := range tasks {
		doc, err := newDocument(&tasks[i])
		if err != nil {
			out[i] = store.CreateOutcome{Status: store.CreateFailed, Err: fmt.Errorf("task %q: %w", tasks[i].ID, err)}
			continue
		}
		docs, index = append(docs, doc), append(index, i)
	}
	if len(docs) == 0 {
		return out, nil
	}
	_, err := s.tasks.InsertMany(ctx, docs, options.InsertMany().SetOrdered(false))
	if err == nil {
		return out, nil
	}
	var bulk mongo.BulkWriteException
	if !errors.As(err, &bulk) || unavailable(err) {
		return nil, fail("create", s.tasks, err)
	}
	var taken []int
	for _, refused := range bulk.WriteErrors {
		i := index[refused.Index]
		out[i] = store.CreateOutcome{Status: store.CreateFailed, Err: refuse(fmt.Sprintf("create task %q", tasks[i].ID), s.tasks, refused)}
		if refused.Code == duplicateKey {
			taken = append(taken, i)
		}
	}
	return out, s.existing(ctx, tasks, taken, out)
}

// newDocument is the document of a new task.
func newDocument(t *task.Task) (bson.Raw, error) {
	if err := store.CheckNew(t); err != nil {
		return nil, err
	}
	doc := encode(t)
	if len(doc) > maxDocument {
		return nil, fmt.Errorf("the document has %d bytes: at most %d", len(doc), maxDocument)
	}
	return doc, nil
}

// existing finds the tasks that stand in the way of those that were refused as duplicates. One that stood in the way
// and is gone meanwhile leaves the outcome as it is: refused, and worth another try.
func (s *Store) existing(ctx context.Context, tasks []task.Task, refused []int, out []store.CreateOutcome) error {
	if len(refused) == 0 {
		return nil
	}
	var ids, keys []string
	for _, i := range refused {
		ids = append(ids, tasks[i].ID)
		if key := tasks[i].IdempotencyKey; key != "" {
			keys = append(keys, key)
		}
	}
	byID, byKey := map[string]*task.Task{}, map[string]*task.Task{}
	keep := func(t task.Task) error {
		byID[t.ID] = &t
		if t.IdempotencyKey != "" {
			byKey[t.IdempotencyKey] = &t
		}
		return nil
	}
	if err := s.find(ctx, "look for existing tasks", bson.D{{Key: "id", Value: bson.D{{Key: "$in", Value: ids}}}}, nil, keep); err != nil {
		return err
	}
	if len(keys) > 0 {
		if err := s.find(ctx, "look for existing tasks", byKeys(keys), nil, keep); err != nil {
			return err
		}
	}
	for _, i := range refused {
		sameKey, sameID := byKey[tasks[i].IdempotencyKey], byID[tasks[i].ID]
		for j := i + 1; j < len(tasks) && sameKey != nil && sameID != nil; j++ {
			if tasks[j].ID == sameKey.ID && out[j].Status == store.CreateOK {
				sameKey = nil // stored later in this very batch: it was the id that stood in the way
			}
		}
		switch {
		case sameKey != nil:
			out[i] = store.CreateOutcome{Status: store.CreateSameKey, Existing: new(sameKey.Clone())}
		case sameID != nil:
			out[i] = store.CreateOutcome{Status: store.CreateExists, Existing: new(sameID.Clone())}
		}
	}
	return nil
}

// byKeys matches tasks with one of these idempotency keys. $exists lets servers that are strict about sparse indexes
// use this one.
func byKeys(keys []string) bson.D {
	return bson.D{{Key: "idempotencyKey", Value: bson.D{{Key: "$exists", Value: true}, {Key: "$in", Value: keys}}}}
}

// Known implements store.Tasks. It reads nothing but the indexes.
func (s *Store) Known(ctx context.Context, tasks []task.Task) ([]bool, error) {
	if err := store.CheckBatch(len(tasks)); err != nil {
		return nil, fmt.Errorf("mongodb: known: %w", err)
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	ids, keys := make([]string, len(tasks)), make([]string, 0, len(tasks))
	for i := range tasks {
		ids[i] = tasks[i].ID
		if key := tasks[i].IdempotencyKey; key != "" {
			keys = append(keys, key)
		}
	}
	there := map[string]map[string]bool{"id": {}, "idempotencyKey": {}}
	look := func(field string, filter bson.D) error {
		only := options.Find().SetBatchSize(pageSize).SetProjection(bson.D{{Key: "_id", Value: 0}, {Key: field, Value: 1}})
		return s.each(ctx, "look for known tasks", filter, only, func(doc bson.Raw) error {
			text, _ := doc.Lookup(field).StringValueOK()
			there[field][text] = true
			return nil
		})
	}
	if len(ids) > 0 {
		if err := look("id", bson.D{{Key: "id", Value: bson.D{{Key: "$in", Value: ids}}}}); err != nil {
			return nil, err
		}
	}
	if len(keys) > 0 {
		if err := look("idempotencyKey", byKeys(keys)); err != nil {
			return nil, err
		}
	}
	known := make([]bool, len(tasks))
	for i := range tasks {
		known[i] = there["id"][tasks[i].ID] || there["idempotencyKey"][tasks[i].IdempotencyKey]
	}
	return known, nil
}

// Apply implements store.Tasks. The server counts how many changes found their task as they must; a claim whose permit
// another task holds is refused by the unique indexes of the permits.
func (s *Store) Apply(ctx context.Context, changes []task.Change) (int, error) {
	if err := store.CheckChanges(changes); err != nil {
		return 0, fmt.Errorf("mongodb: apply: %w", err)
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	models := make([]mongo.WriteModel, 0, len(changes))
	index := make([]int, 0, len(changes))
	var refused []error
	for i := range changes {
		if changes[i].From == 0 {
			continue // applies to nothing
		}
		filter, update := translate(&changes[i])
		if len(update) > maxDocument {
			refused = append(refused, fmt.Errorf("task %q: the change has %d bytes: at most %d", changes[i].ID, len(update), maxDocument))
			continue
		}
		models, index = append(models, mongo.NewUpdateOneModel().SetFilter(filter).SetUpdate(update)), append(index, i)
	}
	n := 0
	if len(models) > 0 {
		result, err := s.tasks.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(false))
		var bulk mongo.BulkWriteException
		if err != nil && (!errors.As(err, &bulk) || unavailable(err)) {
			return 0, fail("apply changes", s.tasks, err)
		}
		n = int(result.MatchedCount)
		var keys, pools []string
		for _, e := range bulk.WriteErrors {
			c := &changes[index[e.Index]]
			if key, pool := store.Permits(c); e.Code == duplicateKey && (key != "" || pool != "") {
				keys, pools = append(keys, key), append(pools, pool)
				continue
			}
			refused = append(refused, fmt.Errorf("task %q: %w", c.ID, e))
		}
		if err := errors.Join(s.freeOrphanPermits(ctx, "keyPermit", keys), s.freeOrphanPermits(ctx, "poolPermit", pools)); err != nil {
			return n, err
		}
	}
	if len(refused) > 0 {
		return n, refuse("apply changes", s.tasks, fmt.Errorf("%d of %d refused for good: %w", len(refused), len(changes), errors.Join(refused...)))
	}
	return n, nil
}

// freeOrphanPermits removes the given permits from tasks that no node holds. They have one only where another program
// has changed their status. The next claim can get the permit then.
func (s *Store) freeOrphanPermits(ctx context.Context, field string, permits []string) error {
	if len(permits) == 0 {
		return nil
	}
	slices.Sort(permits)
	filter := bson.D{
		{Key: field, Value: bson.D{{Key: "$exists", Value: true}, {Key: "$in", Value: slices.Compact(permits)}}},
		{Key: "lifecycleStatus", Value: bson.D{{Key: "$nin", Value: []task.Status{task.Assigning, task.Running, task.Paused}}}},
	}
	if _, err := s.tasks.UpdateMany(ctx, filter, bson.D{{Key: "$unset", Value: bson.D{{Key: field, Value: ""}}}}); err != nil {
		return fail("free orphaned permits", s.tasks, err)
	}
	return nil
}

// ended matches tasks that have ended.
func ended() bson.E {
	return bson.E{Key: "lifecycleStatus", Value: bson.D{{Key: "$in", Value: task.Terminal.List()}}}
}

// Purge implements store.Tasks.
func (s *Store) Purge(ctx context.Context, id string) (bool, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	result, err := s.tasks.DeleteOne(ctx, bson.D{{Key: "id", Value: id}, ended()})
	if err != nil {
		return false, fail("purge", s.tasks, err)
	}
	return result.DeletedCount > 0, nil
}

// Expire implements store.Tasks. It looks for the oldest of each status, and removes those that are still as they were
// found.
func (s *Store) Expire(ctx context.Context, endedBefore int64, limit int) (int, error) {
	if err := store.CheckLimit(limit); err != nil {
		return 0, fmt.Errorf("mongodb: expire: %w", err)
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	old := bson.E{Key: "updateDateTime", Value: bson.D{{Key: "$lt", Value: endedBefore}}}
	type found struct {
		id bson.RawValue
		at int64
	}
	var all []found
	for _, status := range task.Terminal.List() {
		opts := options.Find().SetSort(bson.D{{Key: "updateDateTime", Value: 1}}).SetLimit(int64(limit)).SetBatchSize(int32(limit) + 1).
			SetProjection(bson.D{{Key: "updateDateTime", Value: 1}})
		err := s.each(ctx, "expire", bson.D{{Key: "lifecycleStatus", Value: status}, old}, opts, func(doc bson.Raw) error {
			at, _ := doc.Lookup("updateDateTime").AsInt64OK()
			all = append(all, found{copyValue(doc.Lookup("_id")), at})
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return int(min(max(a.at-b.at, -1), 1)) })
	all = all[:min(limit, len(all))]
	if len(all) == 0 {
		return 0, nil
	}
	ids := make(bson.A, len(all))
	for i := range all {
		ids[i] = all[i].id
	}
	result, err := s.tasks.DeleteMany(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}, ended(), old})
	if err != nil {
		return 0, fail("expire", s.tasks, err)
	}
	return int(result.DeletedCount), nil
}

// copyValue is a value that outlives the document it stands in.
func copyValue(v bson.RawValue) bson.RawValue {
	return bson.RawValue{Type: v.Type, Value: slices.Clone(v.Value)}
}
