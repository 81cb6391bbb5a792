package mongo

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/test/services"
)

// TestIntegrationSettingsOfBefore: a document of an earlier version counts, and makes room for the new one.
func TestIntegrationSettingsOfBefore(t *testing.T) {
	t.Parallel()
	s := open(t, services.Mongo(t))
	if _, err := s.settings.InsertOne(t.Context(), bson.D{{Key: "_id", Value: dispatcherID}, {Key: "strategy", Value: "RANDOM"}}); err != nil {
		t.Fatal(err)
	}
	d, err := s.Dispatcher(t.Context())
	if err != nil || d.Strategy != "RANDOM" || d.Version != 0 {
		t.Fatalf("%+v, error %v", d, err)
	}
	d.Strategy = ""
	for _, want := range []bool{true, false} {
		if ok, err := s.SwapDispatcher(t.Context(), d); ok != want || err != nil {
			t.Errorf("swap: %t, error %v; want %t", ok, err, want)
		}
	}
	if d, err := s.Dispatcher(t.Context()); err != nil || d.Strategy != "" || d.Version != 1 {
		t.Errorf("then %+v, error %v", d, err)
	}
}

func TestReadDispatcher(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		doc  bson.D
		want store.Dispatcher
		err  string
	}{
		{"nothing", bson.D{}, store.Dispatcher{}, ""},
		{"nulls", bson.D{{Key: "version", Value: nil}, {Key: "settings", Value: nil}, {Key: "strategy", Value: nil}}, store.Dispatcher{}, ""},
		{"by the shell", bson.D{{Key: "version", Value: 3.0}, {Key: "settings", Value: `{"strategy":"X","new":1,"version":9}`}}, store.Dispatcher{Version: 3, Strategy: "X"}, ""},
		{"strategy of another type", bson.D{{Key: "strategy", Value: 1}}, store.Dispatcher{}, "strategy is 1"},
		{"settings of another type", bson.D{{Key: "settings", Value: bson.D{}}}, store.Dispatcher{}, "settings is {}"},
		{"settings that are no JSON", bson.D{{Key: "settings", Value: "{"}}, store.Dispatcher{}, "settings do not decode"},
		{"version of another type", bson.D{{Key: "version", Value: "1"}}, store.Dispatcher{}, `version is "1"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			doc, err := bson.Marshal(c.doc)
			if err != nil {
				t.Fatal(err)
			}
			got, err := readDispatcher(doc)
			if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) || c.err == "" && err != nil || got.Strategy != c.want.Strategy || got.Version != c.want.Version {
				t.Errorf("%+v, error %v; want %+v, %q", got, err, c.want, c.err)
			}
		})
	}
}

// FuzzReadDispatcher: whatever a document holds, there are settings or an error, and no panic.
func FuzzReadDispatcher(f *testing.F) {
	for _, d := range []bson.D{
		{{Key: "version", Value: int64(3)}, {Key: "settings", Value: `{"rate":{"perSecond":1.5,"burst":2},"pools":{"gpu":1}}`}}, {{Key: "strategy", Value: "RANDOM"}},
		{{Key: "settings", Value: `{"pools":[]}`}},
	} {
		doc, err := bson.Marshal(d)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		if bson.Raw(doc).Validate() != nil {
			return // the driver gives no such document
		}
		if d, err := readDispatcher(doc); err != nil && (d.Version != 0 || d.Strategy != "") {
			t.Errorf("%+v beside the error %v", d, err)
		}
	})
}
