package mongo

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/skalds-go/skalds/pkg/store"
)

// byID matches a document of the collections beside the tasks.
func byID(id string) bson.D { return bson.D{{Key: "_id", Value: id}} }

// one reads a document of the collections beside the tasks; nil if there is none.
func one(ctx context.Context, op string, c *mongo.Collection, id string) (bson.Raw, error) {
	doc, err := c.FindOne(ctx, byID(id)).Raw()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return nil, nil
	}
	if err != nil {
		return nil, fail(op, c, err)
	}
	return doc, nil
}

// leaderID is the _id of the leader's document.
const leaderID = "leader"

// leaderFields are the fields of the leader's document, as they are compared and set.
func leaderFields(l store.Leader) bson.D {
	return bson.D{
		{Key: "holder", Value: l.Holder}, {Key: "address", Value: l.Address}, {Key: "mode", Value: l.Mode},
		{Key: "term", Value: l.Term}, {Key: "counter", Value: l.Counter},
	}
}

// Leader implements store.Leases.
func (s *Store) Leader(ctx context.Context) (store.Leader, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	doc, err := one(ctx, "read the leader", s.leader, leaderID)
	if err != nil || doc == nil {
		return store.Leader{}, err
	}
	var l store.Leader
	if err := bson.Unmarshal(doc, &l); err != nil {
		return store.Leader{}, refuse("read the leader", s.leader, fmt.Errorf("%w: remove the document %s, it is made anew", err, leaderID))
	}
	return l, nil
}

// SwapLeader implements store.Leases. Where there is no document yet, two contenders may both try to make it; the
// second one is refused by the unique _id.
func (s *Store) SwapLeader(ctx context.Context, old, next store.Leader) (bool, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	filter := byID(leaderID)
	for _, f := range leaderFields(old) {
		if f.Value == "" || f.Value == int64(0) {
			f.Value = bson.D{{Key: "$in", Value: bson.A{f.Value, nil}}} // a controller of another version may not know the field
		}
		filter = append(filter, f)
	}
	none := old == store.Leader{}
	result, err := s.lease.UpdateOne(ctx, filter, bson.D{{Key: "$set", Value: leaderFields(next)}}, options.UpdateOne().SetUpsert(none))
	if none && mongo.IsDuplicateKeyError(err) {
		return false, nil
	}
	if err != nil {
		return false, fail("swap the leader", s.lease, err)
	}
	return result.MatchedCount > 0 || result.UpsertedCount > 0, nil
}

// A topic's positions are one document: {_id: topic, partitions: {"0": {offset, check}, ...}}.

// Positions implements store.Positions.
func (s *Store) Positions(ctx context.Context, topic string) (map[int]store.Position, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	doc, err := one(ctx, "read positions", s.positions, topic)
	if err != nil || doc == nil {
		return nil, err
	}
	var found struct {
		Partitions map[string]struct {
			Offset int64
			Check  int64
		}
	}
	positions := map[int]store.Position{}
	err = bson.Unmarshal(doc, &found)
	for key, p := range found.Partitions {
		n, keyErr := strconv.Atoi(key)
		err = errors.Join(err, keyErr)
		positions[n] = store.Position{Offset: p.Offset, Check: uint64(p.Check)}
	}
	if err != nil {
		return nil, refuse("read positions", s.positions, fmt.Errorf("%w: remove the document %q, reading begins at the earliest record then", err, topic))
	}
	return positions, nil
}

// SavePositions implements store.Positions.
func (s *Store) SavePositions(ctx context.Context, topic string, positions map[int]store.Position) error {
	if len(positions) == 0 {
		return nil
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	set := make(bson.D, 0, len(positions))
	for n, p := range positions {
		at := bson.D{{Key: "offset", Value: p.Offset}, {Key: "check", Value: int64(p.Check)}}
		set = append(set, bson.E{Key: "partitions." + strconv.Itoa(n), Value: at})
	}
	return s.upsert(ctx, "save positions", s.positions, topic, set)
}

// upsert sets fields of a document, which is made if it is not there. Two that make it at once collide once.
func (s *Store) upsert(ctx context.Context, op string, c *mongo.Collection, id string, set bson.D) error {
	var err error
	for range 2 {
		_, err = c.UpdateOne(ctx, byID(id), bson.D{{Key: "$set", Value: set}}, options.UpdateOne().SetUpsert(true))
		if !mongo.IsDuplicateKeyError(err) {
			break
		}
	}
	if err != nil {
		return fail(op, c, err)
	}
	return nil
}
