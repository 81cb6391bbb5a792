package mongo

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
	"github.com/skalds-go/skalds/test/services"
)

// script is a document of a script, with some fields set otherwise; nil takes a field away.
func script(id any, pairs ...any) bson.D {
	doc := bson.D{{Key: "id", Value: id}, {Key: "className", Value: "resize"}, {Key: "mode", Value: "Passive"},
		{Key: "createDateTime", Value: 1796010393269.0}, {Key: "lifecycleStatus", Value: "Created"}, {Key: "priority", Value: 0}}
	for i := 0; i < len(pairs); i += 2 {
		key, _ := pairs[i].(string)
		doc = slices.DeleteFunc(doc, func(e bson.E) bool { return e.Key == key })
		if pairs[i+1] != nil {
			doc = append(doc, bson.E{Key: key, Value: pairs[i+1]})
		}
	}
	return doc
}

// insert writes documents as another program does.
func insert(t *testing.T, s *Store, docs ...any) {
	t.Helper()
	for part := range slices.Chunk(docs, 1000) {
		if _, err := s.tasks.InsertMany(t.Context(), part); err != nil {
			t.Fatal(err)
		}
	}
}

// all reads all that waits, the most urgent first, once every document has a queue.
func all(t *testing.T, s *Store, limit int) (tasks []task.Task, bad []store.BadDocument) {
	t.Helper()
	fillable := int64(1)
	for calls := 0; fillable > 0; calls++ {
		if calls == 100 {
			t.Fatalf("%d documents are never filled", fillable)
		}
		queues, err := s.Queues(t.Context(), "", 1)
		if err != nil {
			t.Fatal(err)
		}
		bad, fillable = append(bad, queues.Bad...), 0
		for _, filter := range unfilled() {
			n, err := s.tasks.CountDocuments(t.Context(), filter)
			if err != nil {
				t.Fatal(err)
			}
			fillable += n
		}
	}
	after, more := "", true
	for more {
		queues, err := s.Queues(t.Context(), after, limit)
		if err != nil {
			t.Fatal(err)
		}
		bad, more = append(bad, queues.Bad...), queues.More
		for _, name := range queues.Names {
			after = name
			var at store.Place
			for more := true; more; {
				page, err := s.Waiting(t.Context(), name, at, limit)
				if err != nil {
					t.Fatal(err)
				}
				tasks, bad, more = append(tasks, page.Tasks...), append(bad, page.Bad...), page.More
				if n := len(page.Tasks); n > 0 {
					at = store.After(&page.Tasks[n-1])
				}
			}
		}
	}
	slices.SortFunc(tasks, func(a, b task.Task) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.CreateDateTime, b.CreateDateTime), cmp.Compare(a.ID, b.ID))
	})
	return tasks, bad
}

func mustGet(t *testing.T, s *Store, id string) task.Task {
	t.Helper()
	got, err := s.Get(t.Context(), []string{id})
	if err != nil || len(got) != 1 {
		t.Fatalf("get %q: %v, %v", id, got, err)
	}
	return got[0]
}

// TestIntegrationC80_OneBadAmongAThousand: the bad one is marked with the reason, the other 999 run.
func TestIntegrationC80_OneBadAmongAThousand(t *testing.T) {
	t.Parallel()
	s := open(t, services.Mongo(t))
	var docs []any
	for i := range 1000 {
		doc := script(fmt.Sprintf("t%03d", i), "createDateTime", i)
		if i == 500 {
			doc = script("t500", "createDateTime", i, "progress", "halfway")
		}
		docs = append(docs, doc)
	}
	insert(t, s, docs...)
	tasks, bad := all(t, s, 100)
	if len(tasks) != 999 || len(bad) != 1 || bad[0].ID != "t500" || !strings.Contains(bad[0].Reason, `progress is "halfway"`) {
		t.Fatalf("%d tasks, bad %v", len(tasks), bad)
	}
	got := mustGet(t, s, "t500")
	if got.LifecycleStatus != task.Failed || got.Error != bad[0].Reason || got.FinishDateTime == 0 || got.ClassName != "resize" {
		t.Errorf("it is now %+v", got)
	}
	if tasks, bad := all(t, s, 1000); len(tasks) != 999 || len(bad) != 0 {
		t.Errorf("once more: %d tasks, bad %v", len(tasks), bad)
	}
}

// TestIntegrationC80_GarbageOfEveryKind: no document is lost from sight, whatever it holds and however small the pages
// are.
func TestIntegrationC80_GarbageOfEveryKind(t *testing.T) {
	t.Parallel()
	s := open(t, services.Mongo(t))
	docs := []any{script("good-1"), script("good-2", "priority", 5), script("good-3", "priority", -1)}
	fields := badFields()
	for _, name := range []string{"status unknown", "status missing", "status a number", "mode unknown", "mode missing"} {
		docs = append(docs, nil)
		switch name {
		case "status unknown":
			docs[len(docs)-1] = script(name, "lifecycleStatus", "created")
		case "status missing":
			docs[len(docs)-1] = script(name, "lifecycleStatus", nil)
		case "status a number":
			docs[len(docs)-1] = script(name, "lifecycleStatus", 1)
		case "mode unknown":
			docs[len(docs)-1] = script(name, "mode", "passive")
		case "mode missing":
			docs[len(docs)-1] = script(name, "mode", nil)
		}
	}
	for name, bad := range fields {
		if bad.key == "id" && bad.v == nil {
			docs = append(docs, script(nil))
			continue
		}
		if bad.key == "id" {
			docs = append(docs, script(bad.v))
			continue
		}
		docs = append(docs, script(name, bad.key, bad.v))
	}
	insert(t, s, docs...)
	want := len(fields) + 5
	tasks, bad := all(t, s, 1)
	if got := fmt.Sprint(ids(tasks)); got != "[good-2 good-1 good-3]" || len(bad) != want {
		t.Errorf("tasks %s, %d bad, want %d: %v", got, len(bad), want, bad)
	}
	for _, b := range bad {
		if b.ID == "" {
			t.Errorf("a bad document without a name: %+v", b)
			continue
		}
		got := mustGet(t, s, b.ID)
		if got.LifecycleStatus != task.Failed || got.Error != b.Reason {
			t.Errorf("%s is now %+v", b.ID, got)
		}
	}
	page, err := s.List(t.Context(), store.Filter{Status: []task.Status{task.Failed}, Limit: 100})
	if err != nil || len(page.Tasks) != want {
		t.Errorf("%d are listed as failed, error %v", len(page.Tasks), err)
	}
	if ok, err := s.Purge(t.Context(), bad[0].ID); err != nil || !ok {
		t.Errorf("a marked one cannot be purged: %t, %v", ok, err)
	}
}

func ids(tasks []task.Task) []string {
	out := make([]string, len(tasks))
	for i := range tasks {
		out[i] = tasks[i].ID
	}
	return out
}

// TestIntegrationLacksWhatItIsSortedBy: such a document counts as 0, hides behind no place, and is found again in its
// new place.
func TestIntegrationLacksWhatItIsSortedBy(t *testing.T) {
	t.Parallel()
	for limit := 1; limit <= 8; limit++ {
		t.Run(fmt.Sprintf("pages of %d", limit), func(t *testing.T) {
			t.Parallel()
			s := open(t, services.Mongo(t))
			insert(t, s, script("a", "priority", nil), script("b", "priority", nil, "createDateTime", nil), script("c", "createDateTime", nil),
				script("d", "createDateTime", 0), script("e", "priority", 1), script("f", "priority", 1, "createDateTime", nil), script("g", "priority", -1))
			first, bad := all(t, s, limit)
			seen := map[string]bool{}
			for _, tk := range first {
				seen[tk.ID] = true
			}
			if len(seen) != 7 || len(bad) != 0 {
				t.Errorf("seen %v, bad %v", seen, bad)
			}
			again, _ := all(t, s, limit)
			if got := fmt.Sprint(ids(again)); got != "[f e b c d a g]" {
				t.Errorf("then %s", got)
			}
		})
	}
}

// TestIntegrationScriptDocumentsLive: documents with only the fields of the Python Skalds go through a whole life, and
// what is not ours stays.
func TestIntegrationScriptDocumentsLive(t *testing.T) {
	t.Parallel()
	s := open(t, services.Mongo(t))
	python, err := os.ReadFile("testdata/python.task.created.bson")
	if err != nil {
		t.Fatal(err)
	}
	insert(t, s, bson.Raw(python), script("script-1", "_id", "my own id", "attempt", 0.0, "claimId", "", "heartbeat", 7))
	tasks, bad := all(t, s, 10)
	if len(tasks) != 2 || len(bad) != 0 {
		t.Fatalf("tasks %v, bad %v", ids(tasks), bad)
	}
	for _, tk := range tasks {
		claim := task.Claim(&tk, "n1", "i1", "c1", 9)
		report := task.Report{ID: tk.ID, Attempt: 1, ClaimID: "c1", Kind: task.ReportFinished, Result: []byte(`{"ok":true}`)}
		for _, changes := range [][]task.Change{{claim}, report.Changes(10)} {
			if n, err := s.Apply(t.Context(), changes); err != nil || n != 1 {
				t.Fatalf("%s: %d applied, error %v", tk.ID, n, err)
			}
		}
		got := mustGet(t, s, tk.ID)
		if got.LifecycleStatus != task.Finished || string(got.Result) != `{"ok":true}` || string(got.Attachments) != string(tk.Attachments) {
			t.Errorf("it is now %+v", got)
		}
	}
	var doc bson.M
	if err := s.tasks.FindOne(t.Context(), bson.D{{Key: "_id", Value: "my own id"}}).Decode(&doc); err != nil || doc["heartbeat"] != int32(7) {
		t.Errorf("the script's document is now %v, error %v", doc, err)
	}
}

// TestIntegrationBadDocumentsOnNodes: Active and List give what can be read of them.
func TestIntegrationBadDocumentsOnNodes(t *testing.T) {
	t.Parallel()
	s := open(t, services.Mongo(t))
	insert(t, s, script("r1", "lifecycleStatus", "Running", "executor", "n1", "progress", "halfway"), script(5, "lifecycleStatus", "Running"))
	var seen []task.Task
	if err := s.Active(t.Context(), func(tk *task.Task) error { seen = append(seen, *tk); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 1 || seen[0].ID != "r1" || seen[0].Executor != "n1" || !strings.Contains(seen[0].Error, "progress") {
		t.Errorf("active: %+v", seen)
	}
	page, err := s.List(t.Context(), store.Filter{Limit: 10})
	if err != nil || len(page.Tasks) != 2 || page.Tasks[0].Error == "" || page.Tasks[1].Error == "" {
		t.Errorf("list: %+v, %v", page, err)
	}
}

// TestIntegrationOpen: again and again, on what is there, and not on documents that share an id.
func TestIntegrationOpen(t *testing.T) {
	t.Parallel()
	uri := services.Mongo(t)
	s := open(t, uri)
	name := s.tasks.Database().Name()
	for range 2 {
		again, err := Open(t.Context(), uri, name)
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := s.tasks.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	insert(t, s, script("same"), script("same"))
	_, err := Open(t.Context(), uri, name)
	if err == nil || errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("documents that share an id: error %v", err)
	}
	for _, part := range []string{"collection tasks", name, "keep one of each"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
}

func TestIntegrationTooLarge(t *testing.T) {
	t.Parallel()
	s := open(t, services.Mongo(t))
	large := []byte(`"` + strings.Repeat("x", maxDocument) + `"`)
	tk := task.Task{ID: "t1", ClassName: "x", LifecycleStatus: task.Created, Mode: task.ModePassive}
	big := tk
	big.ID, big.Attachments = "t2", large
	out, err := s.Create(t.Context(), []task.Task{big, tk})
	if err != nil || out[0].Status != store.CreateFailed || out[1].Status != store.CreateOK {
		t.Fatalf("create: %v, %v", out, err)
	}
	claim := task.Claim(&tk, "n1", "i1", "c1", 1)
	huge := task.Change{ID: "t1", From: task.Set(task.Created), To: task.Finished, Result: large}
	n, err := s.Apply(t.Context(), []task.Change{huge, claim})
	if n != 1 || err == nil || errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "t1") {
		t.Errorf("apply: %d, %v", n, err)
	}
}

func TestSweepIsNotDueTwice(t *testing.T) {
	t.Parallel()
	var s sweeper
	now := time.Unix(1000, 0)
	if !s.due(now) || s.due(now) || s.due(now.Add(sweepInterval-1)) || !s.due(now.Add(sweepInterval)) {
		t.Error("not due once in each interval")
	}
}
