package sqlite

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// TestKeptRowsAreBounded: what waits takes no more room than it may, what is on a node twice that, and nothing is lost
// for want of room.
func TestKeptRowsAreBounded(t *testing.T) {
	t.Parallel()
	r := newRecent()
	put := func(id string, status task.Status, bytes int) bool {
		row := &kept{is: task.Task{ID: id, LifecycleStatus: status}, bytes: bytes}
		r.put(&tx{rows: map[string]*kept{id: row}})
		return r.get(id) != nil
	}
	const part = maxRecent / 4
	for i, c := range []struct {
		status task.Status
		want   bool
	}{
		{task.Created, true}, {task.Created, true}, {task.Created, true}, {task.Created, true}, {task.Created, false}, {task.Running, true},
		{task.Assigning, true}, {task.Paused, true}, {task.Running, true}, {task.Running, false},
	} {
		if got := put(fmt.Sprint(i), c.status, part); got != c.want {
			t.Errorf("row %d: kept %t", i, got)
		}
	}
	r.put(&tx{rows: map[string]*kept{"0": nil}})
	if put("x", task.Running, part+1) || !put("x", task.Running, part) || r.bytes != 2*maxRecent {
		t.Errorf("%d bytes", r.bytes)
	}
	if put("1", task.Running, maxRecent) || r.get("1") != nil { // it grew
		t.Error("a row that does not fit any more is there as it was")
	}
}

// TestWeight: the texts of a task count.
func TestWeight(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1000)
	for name, tk := range map[string]task.Task{
		"description": {Description: long}, "error": {Error: long}, "attachments": {Attachments: []byte(long)}, "labels": {Labels: map[string]string{"a": long}},
		"history": {Attempts: []task.Run{{Error: long}}}, "dependencies": {Dependencies: []string{long}},
	} {
		if got := weight(&tk); got < rowBytes+len(long) {
			t.Errorf("%s: %d", name, got)
		}
	}
}

// TestWhatIsNotKeptIsRead: a task's life is the same whether its row is kept or not.
func TestWhatIsNotKeptIsRead(t *testing.T) {
	t.Parallel()
	lives := func(forget func(*Store)) (docs []task.Task) {
		s := fresh(t)
		see := func() {
			for _, queue := range []string{demoQueue, demoQueue + "|na=b"} {
				page, err := s.Waiting(t.Context(), queue, store.Place{}, 9)
				if err != nil {
					t.Fatal(err)
				}
				docs = append(docs, page.Tasks...)
			}
		}
		tasks := line(t, s, 2)
		large := waits(9)
		large.Attachments = []byte(`"` + strings.Repeat("x", 2*inlineBytes) + `"`)
		large.Labels, large.MaxAttempts = map[string]string{"a": "b"}, new(5)
		mustCreate(t, s, large)
		tasks = append(tasks, large)
		forget(s)
		see()
		claimed(t, s, &tasks[0], &tasks[2])
		forget(s)
		see()
		mustApply(t, s, task.Unclaim(tasks[2].ID, task.Assignment{Attempt: 1, ClaimID: tasks[2].ClaimID}, 6))
		forget(s)
		see()
		changes := []task.Change{finished(&tasks[0])}
		update := task.Change{ID: tasks[1].ID, From: task.Set(task.Created), To: task.Created, UpdatedAt: 7, Update: &task.Update{Attachments: large.Attachments}}
		mustApply(t, s, append(changes, update)...)
		forget(s)
		see()
		for i := range tasks {
			docs = append(docs, mustGet(t, s, tasks[i].ID))
		}
		return docs
	}
	kept, read := lives(func(*Store) {}), lives(func(s *Store) { s.alone(t) })
	if !reflect.DeepEqual(kept, read) || len(kept) != 3+1+2+2+3 {
		t.Errorf("%d documents\nkept %+v\nread %+v", len(kept), kept, read)
	}
}
