package mongo

import (
	"context"
	"errors"
	"flag"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.uber.org/goleak"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/store/storetest"
	"github.com/skalds-go/skalds/test/services"
)

// TestMain keeps the model test of the conformance suite short: each of its steps is many round trips here.
func TestMain(m *testing.M) {
	flag.Parse()
	if !isSet("rapid.checks") {
		_ = flag.Set("rapid.checks", "15")
	}
	goleak.VerifyTestMain(m)
}

func isSet(name string) bool {
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

// open is a store in a database of its own, which goes with the test.
func open(t *testing.T, uri string) *Store {
	t.Helper()
	s, err := Open(t.Context(), uri, "test-"+bson.NewObjectID().Hex())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := bounded(context.Background())
		defer cancel()
		if err := errors.Join(s.tasks.Database().Drop(ctx), s.Close(ctx)); err != nil && !errors.Is(err, mongo.ErrClientDisconnected) {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func TestIntegrationConformance(t *testing.T) {
	t.Parallel()
	uri := services.Mongo(t)
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, uri) })
}
