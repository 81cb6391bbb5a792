package mongo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// pageSize is how many documents a long read gets at a time.
const pageSize = 1000

// each calls yield for every document that matches. The document is valid only during the call.
func (s *Store) each(ctx context.Context, op string, filter any, opts *options.FindOptionsBuilder, yield func(bson.Raw) error) (err error) {
	if opts == nil {
		opts = options.Find().SetBatchSize(pageSize)
	}
	cursor, err := s.tasks.Find(ctx, filter, opts)
	if err != nil {
		return fail(op, s.tasks, err)
	}
	defer func() {
		if closeErr := cursor.Close(ctx); closeErr != nil && err == nil {
			err = fail(op, s.tasks, closeErr)
		}
	}()
	for cursor.Next(ctx) {
		if err := yield(cursor.Current); err != nil {
			return err
		}
	}
	if err := cursor.Err(); err != nil {
		return fail(op, s.tasks, err)
	}
	return nil
}

// find calls yield for every task that matches; one that cannot be read as a whole comes as far as it can be.
func (s *Store) find(ctx context.Context, op string, filter any, opts *options.FindOptionsBuilder, yield func(task.Task) error) error {
	return s.each(ctx, op, filter, opts, func(doc bson.Raw) error { return yield(read(doc)) })
}

// all returns every task that matches, each as far as it can be read.
func (s *Store) all(ctx context.Context, op string, filter any, opts *options.FindOptionsBuilder) (tasks []task.Task, err error) {
	err = s.find(ctx, op, filter, opts, func(t task.Task) error { tasks = append(tasks, t); return nil })
	return tasks, err
}

// Get implements store.Tasks.
func (s *Store) Get(ctx context.Context, ids []string) ([]task.Task, error) {
	if err := store.CheckBatch(len(ids)); err != nil {
		return nil, fmt.Errorf("mongodb: get: %w", err)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	return s.all(ctx, "get", bson.D{{Key: "id", Value: bson.D{{Key: "$in", Value: ids}}}}, nil)
}

// held matches tasks that a node may hold.
func held() bson.E {
	return bson.E{Key: "lifecycleStatus", Value: bson.D{{Key: "$in", Value: []task.Status{task.Assigning, task.Running, task.Paused}}}}
}

// unended matches tasks that have not ended.
func unended() bson.E {
	return bson.E{Key: "lifecycleStatus", Value: bson.D{{Key: "$in", Value: []task.Status{task.Created, task.Assigning, task.Running, task.Paused}}}}
}

// light leaves out what may be large.
func light() *options.FindOptionsBuilder {
	return options.Find().SetBatchSize(pageSize).SetProjection(bson.D{{Key: "attachments", Value: 0}, {Key: "result", Value: 0}})
}

// Active implements store.Tasks. The whole may take longer than store.OpTimeout, each page of it not.
func (s *Store) Active(ctx context.Context, yield func(*task.Task) error) error {
	return s.find(ctx, "read what is active", bson.D{held()}, light(), func(t task.Task) error {
		if t.ID == "" {
			return nil // nobody can act on it
		}
		return yield(&t)
	})
}

// Desired implements store.Tasks.
func (s *Store) Desired(ctx context.Context, limit int) ([]task.Task, error) {
	if err := store.CheckLimit(limit); err != nil {
		return nil, fmt.Errorf("mongodb: desired: %w", err)
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	filter := bson.D{{Key: "desired", Value: bson.D{{Key: "$exists", Value: true}, {Key: "$gt", Value: ""}}}, unended()}
	return s.all(ctx, "read desired states", filter, light().SetLimit(int64(limit)))
}

// Counts implements store.Tasks. One count for each status is a walk over that part of an index, without a document.
func (s *Store) Counts(ctx context.Context) (map[task.Status]int64, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	counts := map[task.Status]int64{}
	for _, status := range task.All() {
		n, err := s.tasks.CountDocuments(ctx, bson.D{{Key: "lifecycleStatus", Value: status}})
		if err != nil {
			return nil, fail("count", s.tasks, err)
		}
		counts[status] = n
	}
	return counts, nil
}

// List implements store.Tasks.
func (s *Store) List(ctx context.Context, f store.Filter) (store.ListPage, error) {
	if err := f.Check(); err != nil {
		return store.ListPage{}, fmt.Errorf("mongodb: list: %w", err)
	}
	match := listFilter(&f)
	paged := match
	if f.Cursor != "" {
		at, id, err := store.ParseCursor(f.Cursor)
		if err != nil {
			return store.ListPage{}, fmt.Errorf("mongodb: list: %w", err)
		}
		paged = append(slices.Clip(paged), bson.E{Key: "$or", Value: bson.A{
			bson.D{{Key: "createDateTime", Value: bson.D{{Key: "$lt", Value: at}}}},
			bson.D{{Key: "createDateTime", Value: at}, {Key: "id", Value: bson.D{{Key: "$lt", Value: id}}}},
		}})
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	opts := options.Find().SetSort(bson.D{{Key: "createDateTime", Value: -1}, {Key: "id", Value: -1}}).
		SetSkip(int64(f.Skip)).SetLimit(int64(f.Limit) + 1).SetBatchSize(int32(f.Limit) + 2)
	var page store.ListPage
	err := s.find(ctx, "list", paged, opts, func(t task.Task) error {
		if len(page.Tasks) == f.Limit {
			page.NextCursor = store.Cursor(&page.Tasks[f.Limit-1])
			return nil
		}
		page.Tasks = append(page.Tasks, t)
		return nil
	})
	if err != nil {
		return store.ListPage{}, err
	}
	if f.Total {
		if page.Total, err = s.tasks.CountDocuments(ctx, match); err != nil {
			return store.ListPage{}, fail("count a list", s.tasks, err)
		}
	}
	return page, nil
}

// lastRune is the greatest in the order of strings.
const lastRune = "\U0010ffff"

func listFilter(f *store.Filter) bson.D {
	match := bson.D{}
	if len(f.Status) > 0 {
		match = append(match, bson.E{Key: "lifecycleStatus", Value: bson.D{{Key: "$in", Value: f.Status}}})
	}
	if f.ClassName != "" {
		match = append(match, bson.E{Key: "className", Value: f.ClassName})
	}
	if f.Executor != "" {
		match = append(match, bson.E{Key: "executor", Value: f.Executor})
	}
	if prefix := strings.ToValidUTF8(f.IDPrefix, ""); prefix != "" {
		match = append(match, bson.E{Key: "id", Value: bson.D{{Key: "$gte", Value: prefix}, {Key: "$lt", Value: prefix + lastRune}}})
	}
	return match
}
