package mongo

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/skalds-go/skalds/pkg/store"
)

// drainingID is the _id of the list of nodes that are drained: {_id, nodes: [id, ...]}.
const drainingID = "draining"

// Draining implements store.Settings.
func (s *Store) Draining(ctx context.Context) ([]string, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	doc, err := one(ctx, "read settings", s.settings, drainingID)
	if err != nil || doc == nil {
		return nil, err
	}
	var d struct{ Nodes []string }
	if err := bson.Unmarshal(doc, &d); err != nil {
		return nil, refuse("read settings", s.settings, fmt.Errorf("%w: remove the document %s, no node is drained then", err, drainingID))
	}
	slices.Sort(d.Nodes)
	return d.Nodes, nil
}

// SetDraining implements store.Settings. Where the list is full, the update matches nothing, and making the document
// anew is refused by the unique _id.
func (s *Store) SetDraining(ctx context.Context, node string, draining bool) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if !draining {
		if _, err := s.settings.UpdateOne(ctx, byID(drainingID), bson.D{{Key: "$pull", Value: bson.D{{Key: "nodes", Value: node}}}}); err != nil {
			return fail("save settings", s.settings, err)
		}
		return nil
	}
	var err error
	for range 2 { // two that make the document at once collide once
		notFull := append(byID(drainingID), bson.E{Key: "$or", Value: bson.A{
			bson.D{{Key: "nodes", Value: node}},
			bson.D{{Key: "nodes." + strconv.Itoa(store.MaxDraining-1), Value: bson.D{{Key: "$exists", Value: false}}}},
		}})
		_, err = s.settings.UpdateOne(ctx, notFull, bson.D{{Key: "$addToSet", Value: bson.D{{Key: "nodes", Value: node}}}}, options.UpdateOne().SetUpsert(true))
		if !mongo.IsDuplicateKeyError(err) {
			break
		}
	}
	switch {
	case mongo.IsDuplicateKeyError(err):
		return refuse("save settings", s.settings, fmt.Errorf("%w: %d nodes are drained", store.ErrTooMany, store.MaxDraining))
	case err != nil:
		return fail("save settings", s.settings, err)
	}
	return nil
}
