package mongo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// judge decodes a waiting document, and reports why it can never run.
func judge(doc bson.Raw, t *task.Task) error {
	if err := decode(doc, t); err != nil {
		return err
	}
	switch {
	case t.ID == "":
		return errors.New("id is missing: give the document one")
	case t.ClassName == "":
		return errors.New("className is missing: it names what is to run")
	}
	return store.CheckKnown(t)
}

// unfilled matches documents that wait and lack what they are found by, whatever they have instead; one filter for each
// range of the index.
func unfilled() []bson.D {
	return []bson.D{
		append(ready(), bson.E{Key: "notBefore", Value: nil}),
		append(ready(), bson.E{Key: "notBefore", Value: int64(0)}, not("queue", "$gte", "")),
	}
}

const (
	// fillPage is how many documents are filled at a time.
	fillPage = 500
	// fillFor bounds how long one call of Queues goes on with it.
	fillFor = time.Second
)

// findUnfilled fills the documents of other programs, and marks those that can never run. The attachments are left to
// Waiting, which reads them anyway.
func (s *Store) findUnfilled(ctx context.Context, r *repair) error {
	start := time.Now()
	for _, filter := range unfilled() {
		for time.Since(start) < fillFor {
			n := 0
			opts := light().SetLimit(fillPage).SetBatchSize(fillPage + 1)
			err := s.each(ctx, "look for documents without a queue", filter, opts, func(doc bson.Raw) error {
				n++
				_ = r.examine(doc, new(task.Task))
				return nil
			})
			if err != nil {
				return err
			}
			done, err := s.carryOut(ctx, r)
			if err != nil {
				return err
			}
			if n < fillPage || done == 0 {
				break
			}
		}
	}
	return nil
}

// sweepInterval is how often the store looks for documents that no page shows: of no known status, or that wait in no
// known mode.
const sweepInterval = 10 * time.Second

// maxOrphans is how many of them are read at a time.
const maxOrphans = 100

// sweeper tells when the next search is due.
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

// findOrphans repairs or fails documents that no page shows.
func (s *Store) findOrphans(ctx context.Context, r *repair) error {
	modes := []task.Mode{task.ModePassive, task.ModeActive}
	for _, filter := range []bson.D{
		{{Key: "lifecycleStatus", Value: bson.D{{Key: "$nin", Value: task.All()}}}},
		{{Key: "lifecycleStatus", Value: task.Created}, {Key: "mode", Value: bson.D{{Key: "$nin", Value: modes}}}},
		{{Key: "lifecycleStatus", Value: task.Created}, {Key: "notBefore", Value: notNumber}},
		append(ready(), bson.E{Key: "queue", Value: bson.D{{Key: "$type", Value: "array"}}}), // which compares by its elements
	} {
		opts := options.Find().SetLimit(maxOrphans).SetBatchSize(maxOrphans + 1)
		err := s.each(ctx, "look for documents that nobody reads", filter, opts, func(doc bson.Raw) error {
			_ = r.examine(doc, new(task.Task))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// repair collects changes to documents that other programs wrote.
type repair struct {
	now    int64
	bad    []store.BadDocument
	models []mongo.WriteModel
}

// examine reads a waiting document into t, and collects what repairs it. It reports false for one that can never run.
func (r *repair) examine(doc bson.Raw, t *task.Task) bool {
	if err := judge(doc, t); err != nil {
		r.mark(doc, t, reason(err))
		return false
	}
	r.fill(doc, t)
	return true
}

// mark makes a document a failed task, if its status is still the one that was read, so that it can be looked at and
// purged like any other.
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
	r.update(doc, bson.D{{Key: "$set", Value: set}, {Key: "$unset", Value: bson.D{{Key: "desired", Value: ""}}}}, set[:1])
}

// fill gives a document that waits what it is found and sorted by and lacks, and its right queue, compare-and-set.
func (r *repair) fill(doc bson.Raw, t *task.Task) {
	var set bson.D
	for _, name := range []string{"priority", "createDateTime", "notBefore"} {
		if isNull(doc.Lookup(name)) {
			set = append(set, bson.E{Key: name, Value: int64(0)})
		}
	}
	if queue := t.Queue(); queueOf(doc) != queue {
		set = append(set, bson.E{Key: "queue", Value: queue})
	}
	if len(set) > 0 {
		r.update(doc, bson.D{{Key: "$set", Value: set}}, set)
	}
}

// queueOf is what a document has for its queue; empty if that is none.
func queueOf(doc bson.Raw) string {
	name, _ := doc.Lookup("queue").StringValueOK()
	return name
}

// update changes the document, if the fields still are as they were read.
func (r *repair) update(doc bson.Raw, update, fields bson.D) {
	filter := make(bson.D, 0, 1+len(fields))
	id := bson.A{copyValue(doc.Lookup("_id"))} // in a list, so that no value is taken for an operator
	filter = append(filter, bson.E{Key: "_id", Value: bson.D{{Key: "$in", Value: id}}})
	for _, f := range fields {
		was := any(copyValue(doc.Lookup(f.Key)))
		if isNull(doc.Lookup(f.Key)) {
			was = nil
		}
		filter = append(filter, bson.E{Key: f.Key, Value: bson.D{{Key: "$eq", Value: was}}})
	}
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

// carryOut writes what was collected, and returns how many documents it changed. What the server refuses is in Bad.
func (s *Store) carryOut(ctx context.Context, r *repair) (int, error) {
	if len(r.models) == 0 {
		return 0, nil
	}
	models := r.models
	r.models = nil
	result, err := s.tasks.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(false))
	var bulk mongo.BulkWriteException
	if err != nil && (!errors.As(err, &bulk) || unavailable(err)) {
		return 0, fail("repair documents", s.tasks, err)
	}
	for _, e := range bulk.WriteErrors {
		r.bad = append(r.bad, store.BadDocument{ID: fmt.Sprintf("update %d", e.Index), Reason: "the server does not let it be marked: " + e.Message})
	}
	return int(result.MatchedCount), nil
}
