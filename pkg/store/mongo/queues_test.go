package mongo

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
	"github.com/skalds-go/skalds/test/services"
)

// names reads the names of all queues.
func names(t *testing.T, s *Store) []string {
	t.Helper()
	page, err := s.Queues(t.Context(), "", store.MaxBatch)
	if err != nil || len(page.Bad) > 0 || page.More {
		t.Fatalf("queues %+v, error %v", page, err)
	}
	return page.Names
}

// line reads what waits in a queue.
func line(t *testing.T, s *Store, queue string) []string {
	t.Helper()
	page, err := s.Waiting(t.Context(), queue, store.Place{}, store.MaxBatch)
	if err != nil || len(page.Bad) > 0 {
		t.Fatalf("waiting in %q: %+v, error %v", queue, page, err)
	}
	return ids(page.Tasks)
}

func equal(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q; want %q", what, got, want)
	}
}

// change changes a document as another program does.
func change(t *testing.T, s *Store, id, op string, fields bson.D) {
	t.Helper()
	if r, err := s.tasks.UpdateOne(t.Context(), bson.D{{Key: "id", Value: id}}, bson.D{{Key: op, Value: fields}}); err != nil || r.MatchedCount != 1 {
		t.Fatalf("%s %v of %s: %+v, %v", op, fields, id, r, err)
	}
}

// TestIntegrationFillsDocuments: a document of another program is in its queue with the first call of Queues, whatever
// it has for a queue.
func TestIntegrationFillsDocuments(t *testing.T) {
	t.Parallel()
	s := open(t, services.Mongo(t))
	insert(t, s, script("plain"), script("urgent", "priority", 7.0), script("null", "queue", nil, "notBefore", nil), script("zero", "notBefore", 0.0),
		script("number", "queue", 5), script("list", "queue", bson.A{"0||resize"}), script("document", "queue", bson.D{{Key: "a", Value: 1}}),
		script("empty", "queue", ""), script("binary", "queue", bson.Binary{Data: []byte("x")}), script("NaN", "queue", math.NaN()),
		script("selects", "labels", "zone=north"), script("cannot", "labels", "a b"), script("later", "notBefore", 5.0), script("past", "notBefore", -5),
		script("edge", "mode", "Active"), script("ran", "lifecycleStatus", "Finished"))
	equal(t, "queues", names(t, s), "0||resize", "0||resize|nzone=north", "0||resize|xcannot", "7||resize")
	equal(t, "plain ones", line(t, s, "0||resize"), "NaN", "binary", "document", "empty", "list", "null", "number", "plain", "zero")
	equal(t, "one that selects", line(t, s, "0||resize|nzone=north"), "selects")
	if n, next, err := s.Promote(t.Context(), 4, 10); n != 1 || next != 5 || err != nil {
		t.Errorf("promoted %d, next %d, error %v", n, next, err)
	}
	if n, next, err := s.Promote(t.Context(), 5, 10); n != 1 || next != 0 || err != nil {
		t.Errorf("then %d, next %d, error %v", n, next, err)
	}
	names(t, s)
	equal(t, "with those that are due", line(t, s, "0||resize"), "NaN", "binary", "document", "empty", "later", "list", "null", "number", "past", "plain", "zero")
}

// TestIntegrationFillsMany: more documents than fit a page are filled, in as many calls as a slow server needs.
func TestIntegrationFillsMany(t *testing.T) {
	t.Parallel()
	s := open(t, services.Mongo(t))
	var docs []any
	for i := range fillPage*3 + 10 {
		docs = append(docs, script(fmt.Sprintf("t%04d", i), "className", fmt.Sprintf("c%d", i%3)))
	}
	insert(t, s, docs...)
	for range docs {
		got := names(t, s)
		depths, err := s.Depths(t.Context(), "", 10)
		if err != nil {
			t.Fatal(err)
		}
		if total := depths["0||c0"] + depths["0||c1"] + depths["0||c2"]; total == int64(len(docs)) {
			equal(t, "queues", got, "0||c0", "0||c1", "0||c2")
			return
		}
	}
	t.Error("they are never filled")
}

// TestIntegrationDeepQueues: queues with more tasks than a window, next to shallow ones. Not beside the other tests:
// the server here has no index for it, and what it looks at for one page is all that it has time for.
func TestIntegrationDeepQueues(t *testing.T) { //nolint:paralleltest // see above
	s := open(t, services.Mongo(t))
	var docs []any
	var want []string
	for i := range 20 {
		for j := range []int{1, window - 1, window, window + 1}[i%4] {
			docs = append(docs, encode(&task.Task{ID: fmt.Sprintf("%d-%d", i, j), ClassName: fmt.Sprintf("c%02d", i), Mode: task.ModePassive, LifecycleStatus: task.Created}))
		}
		want = append(want, fmt.Sprintf("0||c%02d", i))
	}
	insert(t, s, docs...)
	equal(t, "in one page", names(t, s), want...)
	for limit := 1; limit <= len(want)+1; limit++ {
		var got []string
		after, more := "", true
		for more {
			page, err := s.Queues(t.Context(), after, limit)
			if err != nil || len(page.Names) > limit || page.More && len(page.Names) == 0 {
				t.Fatalf("%+v, error %v", page, err)
			}
			got, more = append(got, page.Names...), page.More
			after = got[len(got)-1]
		}
		equal(t, fmt.Sprintf("in pages of %d", limit), got, want...)
	}
}

// TestIntegrationChangedByOthers: a document that another program changed while it waited is put into its right queue
// when it is read, and does not run out of a wrong one.
func TestIntegrationChangedByOthers(t *testing.T) {
	t.Parallel()
	s := open(t, services.Mongo(t))
	insert(t, s, script("a"), script("b"), script("c"), script("d"), script("e"))
	equal(t, "queues", names(t, s), "0||resize")
	change(t, s, "a", "$set", bson.D{{Key: "priority", Value: 9}})
	change(t, s, "b", "$set", bson.D{{Key: "labels", Value: "gpu"}})
	change(t, s, "c", "$unset", bson.D{{Key: "queue", Value: ""}})
	change(t, s, "d", "$unset", bson.D{{Key: "notBefore", Value: ""}, {Key: "createDateTime", Value: ""}})
	equal(t, "read", line(t, s, "0||resize"), "e")
	equal(t, "queues, then", names(t, s), "0||resize", "0||resize|ngpu", "9||resize")
	equal(t, "plain, then", line(t, s, "0||resize"), "d", "c", "e")
	equal(t, "labelled", line(t, s, "0||resize|ngpu"), "b")
	equal(t, "urgent", line(t, s, "9||resize"), "a")
	// A page of nothing but such documents is not the last.
	for _, id := range []string{"c", "d"} {
		change(t, s, id, "$set", bson.D{{Key: "priority", Value: 9}})
	}
	page, err := s.Waiting(t.Context(), "0||resize", store.Place{}, 2)
	if err != nil || len(page.Tasks) != 0 || !page.More {
		t.Fatalf("%+v, error %v", page, err)
	}
	equal(t, "what was behind it", line(t, s, "0||resize"), "e")
}

// TestIntegrationBadInAQueue: a document that went bad while it waited hides behind no place, and is marked when it is
// read.
func TestIntegrationBadInAQueue(t *testing.T) {
	t.Parallel()
	s := open(t, services.Mongo(t))
	for name, bad := range badFields() {
		if bad.key == "id" {
			continue
		}
		insert(t, s, script(name))
	}
	insert(t, s, script("good"))
	equal(t, "queues", names(t, s), "0||resize")
	want := map[string]bool{}
	for name, bad := range badFields() {
		if bad.key != "id" {
			change(t, s, name, "$set", bson.D{{Key: bad.key, Value: bad.v}})
			want[name] = true
		}
	}
	tasks, bad := all(t, s, 1)
	for _, b := range bad {
		if !want[b.ID] {
			t.Errorf("bad: %+v", b)
		}
		delete(want, b.ID)
		if got := mustGet(t, s, b.ID); got.LifecycleStatus != task.Failed || got.Error != b.Reason {
			t.Errorf("%s is now %+v", b.ID, got)
		}
	}
	if got := ids(tasks); len(want) > 0 || !slices.Equal(got, []string{"good"}) {
		t.Errorf("not marked: %v; tasks %v", want, got)
	}
}

// TestIntegrationOrphanedPermits: a permit that another program left on a task that no node holds is in nobody's way
// for long.
func TestIntegrationOrphanedPermits(t *testing.T) {
	t.Parallel()
	s := open(t, services.Mongo(t))
	tasks := make([]task.Task, 4)
	for i := range tasks {
		tasks[i] = task.Task{ID: fmt.Sprint(i), ClassName: "c", Mode: task.ModePassive, LifecycleStatus: task.Created}
	}
	if _, err := s.Create(t.Context(), tasks); err != nil {
		t.Fatal(err)
	}
	claim := func(i, want int, key, pool string) {
		t.Helper()
		c := task.Claim(&tasks[i], "n1", "i1", fmt.Sprint("c", i), 5)
		c.Assign.KeyPermit, c.Assign.PoolPermit = key, pool
		if n, err := s.Apply(t.Context(), []task.Change{c}); err != nil || n != want {
			t.Fatalf("claim of %d with %s and %s: %d applied, error %v; want %d", i, key, pool, n, err, want)
		}
	}
	claim(0, 1, "k#0", "")
	claim(1, 1, "", "p#0")
	claim(2, 0, "k#0", "p#0")
	change(t, s, "0", "$set", bson.D{{Key: "lifecycleStatus", Value: "Cancelled"}})
	change(t, s, "1", "$set", bson.D{{Key: "lifecycleStatus", Value: "Running"}})
	claim(2, 0, "k#0", "p#0")
	claim(3, 0, "", "p#0")
	claim(3, 1, "k#0", "")
	change(t, s, "1", "$set", bson.D{{Key: "lifecycleStatus", Value: "Failed"}})
	claim(2, 0, "", "p#0")
	claim(2, 1, "", "p#0")
}

// TestIntegrationIndexesOfOthersStay: Open makes its own indexes and drops none.
func TestIntegrationIndexesOfOthersStay(t *testing.T) {
	t.Parallel()
	uri := services.Mongo(t)
	s := open(t, uri)
	own := mongo.IndexModel{Keys: bson.D{{Key: "source", Value: 1}}}
	if _, err := s.tasks.Indexes().CreateOne(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	again, err := Open(t.Context(), uri, s.tasks.Database().Name())
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(t.Context()); err != nil {
		t.Error(err)
	}
	there, err := s.tasks.Indexes().ListSpecifications(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, index := range there {
		got = append(got, index.Name)
	}
	slices.Sort(got)
	if len(got) != len(indexes())+2 || !slices.Contains(got, "source_1") {
		t.Errorf("indexes:\n%s", strings.Join(got, "\n"))
	}
}

// TestWaitingFilter: one branch for each range of the index.
func TestWaitingFilter(t *testing.T) {
	t.Parallel()
	const waits = `"lifecycleStatus":"Created","mode":"Passive","notBefore":0,"queue":"q"`
	for _, c := range []struct {
		after store.Place
		want  string
	}{
		{store.Place{}, `{` + waits + `}`},
		{store.Place{Set: true, CreateDateTime: 5, ID: "x"}, `{"$or":[{` + waits + `,"createDateTime":{"$not":{"$lte":5}}},{` + waits + `,"createDateTime":5,"id":{"$not":{"$lte":"x"}}}]}`},
	} {
		got, err := bson.MarshalExtJSON(waitingFilter("q", c.after), false, false)
		if err != nil || string(got) != c.want {
			t.Errorf("got  %s, error %v\nwant %s", got, err, c.want)
		}
	}
}
