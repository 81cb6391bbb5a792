package mongo

import (
	"context"
	"encoding/json"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/skalds-go/skalds/pkg/store"
)

// dispatcherID is the _id of the dispatcher's settings: {_id, version, settings}. The settings are JSON in a string,
// since names of classes and pools, which are keys in it, may be what the server takes for no key. A document of an
// earlier version has a strategy instead, and counts as version 0.
const dispatcherID = "dispatcher"

// Dispatcher implements store.Settings.
func (s *Store) Dispatcher(ctx context.Context) (store.Dispatcher, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	const op = "read settings"
	doc, err := one(ctx, op, s.settings, dispatcherID)
	if err != nil || doc == nil {
		return store.Dispatcher{}, err
	}
	d, err := readDispatcher(doc)
	if err != nil {
		return store.Dispatcher{}, refuse(op, s.settings, fmt.Errorf("%w: remove the document %s, the configured values count then", err, dispatcherID))
	}
	return d, nil
}

func readDispatcher(doc bson.Raw) (d store.Dispatcher, err error) {
	settings := doc.Lookup("settings")
	if isNull(settings) {
		if strategy := doc.Lookup("strategy"); !isNull(strategy) {
			var ok bool
			if d.Strategy, ok = strategy.StringValueOK(); !ok {
				return d, fmt.Errorf("strategy %w", wrongType(strategy, "a string"))
			}
		}
	} else {
		text, ok := settings.StringValueOK()
		if !ok {
			return d, fmt.Errorf("settings %w", wrongType(settings, "JSON in a string"))
		}
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			return store.Dispatcher{}, fmt.Errorf("settings do not decode: %w", err)
		}
	}
	d.Version = 0
	if version := doc.Lookup("version"); !isNull(version) {
		var ok bool
		if d.Version, ok = whole(version); !ok {
			return store.Dispatcher{}, fmt.Errorf("version %w", wrongType(version, "a whole number"))
		}
	}
	return d, nil
}

// SwapDispatcher implements store.Settings. As in SwapLeader, two may both try to make the document.
func (s *Store) SwapDispatcher(ctx context.Context, next store.Dispatcher) (bool, error) {
	stored, err := next.Next()
	if err != nil {
		return false, fmt.Errorf("mongodb: settings: %w", err)
	}
	text, err := json.Marshal(stored)
	if err != nil {
		return false, fmt.Errorf("mongodb: settings: %w", err)
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	first := next.Version == 0
	version := any(next.Version)
	if first {
		version = bson.D{{Key: "$in", Value: bson.A{int64(0), nil}}}
	}
	filter := append(byID(dispatcherID), bson.E{Key: "version", Value: version})
	update := bson.D{
		{Key: "$set", Value: bson.D{{Key: "version", Value: stored.Version}, {Key: "settings", Value: string(text)}}},
		{Key: "$unset", Value: bson.D{{Key: "strategy", Value: ""}}},
	}
	result, err := s.settings.UpdateOne(ctx, filter, update, options.UpdateOne().SetUpsert(first))
	if first && mongo.IsDuplicateKeyError(err) {
		return false, nil
	}
	if err != nil {
		return false, fail("save settings", s.settings, err)
	}
	return result.MatchedCount > 0 || result.UpsertedCount > 0, nil
}
