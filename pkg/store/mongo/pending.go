package mongo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
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
		r.fill(doc)
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
	waits := bson.D{{Key: "lifecycleStatus", Value: task.Created}, {Key: "mode", Value: task.ModePassive}, {Key: "notBefore", Value: nil}}
	if !after.Set {
		return waits
	}
	not := func(field, op string, v any) bson.E {
		return bson.E{Key: field, Value: bson.D{{Key: "$not", Value: bson.D{{Key: op, Value: v}}}}}
	}
	branch := func(more ...bson.E) bson.D { return append(slices.Clone(waits), more...) }
	priority, created := bson.E{Key: "priority", Value: after.Priority}, bson.E{Key: "createDateTime", Value: after.CreateDateTime}
	return bson.D{{Key: "$or", Value: bson.A{
		branch(not("priority", "$gte", after.Priority)),
		branch(priority, not("createDateTime", "$lte", after.CreateDateTime)),
		branch(priority, created, not("id", "$lte", after.ID)),
	}}}
}

// judge reads a document that waits, and says why it can never run.
func judge(doc bson.Raw, t *task.Task) error {
	if err := decode(doc, t); err != nil {
		return err
	}
	switch {
	case t.ID == "":
		return errors.New("id is missing: give the document one")
	case t.ClassName == "":
		return errors.New("className is missing: it names what is to run")
	case task.Set(t.LifecycleStatus) == 0:
		return fmt.Errorf("lifecycleStatus is %q: must be one of %v", t.LifecycleStatus, task.All())
	case t.Mode != task.ModePassive && t.Mode != task.ModeActive:
		return fmt.Errorf("mode is %q: must be %s or %s", t.Mode, task.ModePassive, task.ModeActive)
	}
	return nil
}

// sweepInterval is how often the store looks for documents that no page shows: of no known status, or that wait in no known mode.
const sweepInterval = 10 * time.Second

// maxStrays is how many of them it takes at a time.
const maxStrays = 100

// sweeper says when it is time to look again.
type sweeper struct {
	mu   sync.Mutex
	next time.Time
}

func (s *sweeper) due(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Before(s.next) {
		return false
	}
	s.next = now.Add(sweepInterval)
	return true
}

// notNumber matches what is there and is no number: comparisons look at values of their own type only.
var notNumber = bson.D{{Key: "$ne", Value: nil}, {Key: "$not", Value: bson.D{{Key: "$lte", Value: int64(math.MaxInt64)}}}}

// findStrays marks documents that no page shows.
func (s *Store) findStrays(ctx context.Context, r *repair) error {
	modes := []task.Mode{task.ModePassive, task.ModeActive}
	for _, filter := range []bson.D{
		{{Key: "lifecycleStatus", Value: bson.D{{Key: "$nin", Value: task.All()}}}},
		{{Key: "lifecycleStatus", Value: task.Created}, {Key: "mode", Value: bson.D{{Key: "$nin", Value: modes}}}},
		{{Key: "lifecycleStatus", Value: task.Created}, {Key: "notBefore", Value: notNumber}},
	} {
		opts := options.Find().SetLimit(maxStrays).SetBatchSize(maxStrays + 1)
		err := s.each(ctx, "look for documents that nobody reads", filter, opts, func(doc bson.Raw) error {
			var t task.Task
			if err := judge(doc, &t); err != nil {
				r.mark(doc, &t, reason(err))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// repair collects what is to be done to documents that other programs wrote.
type repair struct {
	now    int64
	bad    []store.BadDocument
	models []mongo.WriteModel
}

// mark makes a document a failed task, if its status is still the one that was read, so that it can be looked at and purged like any other.
func (r *repair) mark(doc bson.Raw, t *task.Task, why string) {
	id := t.ID
	set := bson.D{
		{Key: "lifecycleStatus", Value: task.Failed}, {Key: "error", Value: why},
		{Key: "finishDateTime", Value: r.now}, {Key: "updateDateTime", Value: r.now},
	}
	if id == "" {
		id = nameOf(doc)
		set = append(set, bson.E{Key: "id", Value: id})
	}
	if _, ok := whole(doc.Lookup("createDateTime")); !ok {
		set = append(set, bson.E{Key: "createDateTime", Value: r.now})
	}
	if _, ok := whole(doc.Lookup("priority")); !ok {
		set = append(set, bson.E{Key: "priority", Value: 0})
	}
	r.bad = append(r.bad, store.BadDocument{ID: id, Reason: why})
	r.update(doc, "lifecycleStatus", bson.D{{Key: "$set", Value: set}, {Key: "$unset", Value: bson.D{{Key: "desired", Value: ""}}}})
}

// fill gives a document the numbers that it is sorted by and lacks.
func (r *repair) fill(doc bson.Raw) {
	for _, name := range []string{"priority", "createDateTime"} {
		if isNull(doc.Lookup(name)) {
			r.update(doc, name, bson.D{{Key: "$set", Value: bson.D{{Key: name, Value: int64(0)}}}})
		}
	}
}

// update changes the document, if the field still is as it was read.
func (r *repair) update(doc bson.Raw, field string, update bson.D) {
	was := any(copyValue(doc.Lookup(field)))
	if isNull(doc.Lookup(field)) {
		was = nil
	}
	filter := bson.D{{Key: "_id", Value: bson.D{{Key: "$eq", Value: copyValue(doc.Lookup("_id"))}}}, {Key: field, Value: bson.D{{Key: "$eq", Value: was}}}}
	r.models = append(r.models, mongo.NewUpdateOneModel().SetFilter(filter).SetUpdate(update))
}

// nameOf is an id for a document that has none, made of its _id.
func nameOf(doc bson.Raw) string {
	v := doc.Lookup("_id")
	if oid, ok := v.ObjectIDOK(); ok {
		return "bad-" + oid.Hex()
	}
	text, err := writeJSON(nil, v, 0)
	if err != nil {
		text = nil
	}
	return "bad-" + cut(string(text), 100)
}

// carryOut does what was collected, and says to how many documents. What the server refuses to change is said in Bad.
func (s *Store) carryOut(ctx context.Context, r *repair) (int, error) {
	if len(r.models) == 0 {
		return 0, nil
	}
	result, err := s.tasks.BulkWrite(ctx, r.models, options.BulkWrite().SetOrdered(false))
	var bulk mongo.BulkWriteException
	if err != nil && (!errors.As(err, &bulk) || unavailable(err)) {
		return 0, fail("mark bad documents", s.tasks, err)
	}
	for _, e := range bulk.WriteErrors {
		r.bad = append(r.bad, store.BadDocument{ID: fmt.Sprintf("update %d", e.Index), Reason: "the server does not let it be marked: " + e.Message})
	}
	return int(result.MatchedCount), nil
}
