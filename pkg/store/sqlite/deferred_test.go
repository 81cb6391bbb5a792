package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

func ids(tasks []task.Task) string {
	var list []string
	for i := range tasks {
		list = append(list, tasks[i].ID)
	}
	return fmt.Sprint(list)
}

func mustApply(tb testing.TB, s *Store, changes ...task.Change) {
	tb.Helper()
	if n, err := s.Apply(tb.Context(), changes); err != nil || n != len(changes) {
		tb.Fatalf("%d of %d applied, error %v", n, len(changes), err)
	}
}

// line creates tasks that wait.
func line(tb testing.TB, s *Store, n int) []task.Task {
	tb.Helper()
	tasks := make([]task.Task, n)
	for i := range tasks {
		tasks[i] = waits(i)
	}
	for from := 0; from < n; from += store.MaxBatch {
		mustCreate(tb, s, tasks[from:min(from+store.MaxBatch, n)]...)
	}
	return tasks
}

// claimed claims a task in the store and in the document.
func claimed(tb testing.TB, s *Store, tasks ...*task.Task) {
	tb.Helper()
	changes := make([]task.Change, len(tasks))
	for i, tk := range tasks {
		changes[i] = task.Claim(tk, "n1", "i1", fmt.Sprintf("c%d-%s", tk.Attempt, tk.ID), 5)
	}
	mustApply(tb, s, changes...)
	for i := range changes {
		changes[i].Apply(tasks[i])
	}
}

func finished(tk *task.Task) task.Change {
	r := task.Report{ID: tk.ID, Attempt: tk.Attempt, ClaimID: tk.ClaimID, Kind: task.ReportFinished, StartedAt: 6, FinishedAt: 7, Result: []byte(`{}`)}
	return r.Changes(8)[0]
}

func inFile(tb testing.TB, s *Store, sql string) (n int64) {
	tb.Helper()
	c := <-s.idle
	defer func() { s.idle <- c }()
	n, err := c.number(sql)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// afterCrash opens what a process that is killed now would leave.
func afterCrash(tb testing.TB, s *Store) *Store {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "skalds.db")
	for _, suffix := range []string{"", "-wal"} {
		raw, err := os.ReadFile(s.path + suffix)
		if err == nil {
			err = os.WriteFile(path+suffix, raw, 0o600)
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	return openTest(tb, path)
}

// TestAClaimIsFirstNoted: the tasks' rows are written with the next change, or when somebody looks at them.
func TestAClaimIsFirstNoted(t *testing.T) {
	t.Parallel()
	const active, notes = "SELECT count(*) FROM tasks WHERE status = 1", "SELECT count(*) FROM claims"
	s := fresh(t)
	tasks := line(t, s, 3)
	claimed(t, s, &tasks[0], &tasks[1], &tasks[2])
	if inFile(t, s, active) != 0 || inFile(t, s, notes) != 1 {
		t.Errorf("%d rows and %d notes in the file", inFile(t, s, active), inFile(t, s, notes))
	}
	mustApply(t, s, finished(&tasks[0]))
	if inFile(t, s, active) != 0 || inFile(t, s, "SELECT count(*) FROM tasks WHERE status = 4 AND attempt = 1 AND executor = 'n1' AND assigned = 5") != 1 {
		t.Error("the end did not write the claim, too, or it wrote those of others")
	}
	for name, read := range map[string]func() (int, error){
		"get":     func() (int, error) { got, err := s.Get(t.Context(), []string{tasks[1].ID}); return len(got), err },
		"desired": func() (int, error) { got, err := s.Desired(t.Context(), 9); return len(got) + 1, err },
		"overdue": func() (int, error) {
			got, _, err := s.Overdue(t.Context(), 9, 9)
			return len(got) + 1, err
		},
		"active": func() (n int, err error) {
			err = s.Active(t.Context(), func(*task.Task) error { n++; return nil })
			return n - 1, err
		},
		"list": func() (int, error) {
			page, err := s.List(t.Context(), store.Filter{Executor: "n1", Status: []task.Status{task.Assigning}, Limit: 9})
			return len(page.Tasks) - 1, err
		},
	} {
		if n, err := read(); err != nil || n != 1 {
			t.Errorf("%s: %d, %v", name, n, err)
		}
		if inFile(t, s, active) != 2 || inFile(t, s, notes) != 0 || s.recent.late() != 0 {
			t.Errorf("%s: %d rows and %d notes in the file", name, inFile(t, s, active), inFile(t, s, notes))
		}
		for i := range tasks[1:] {
			mustApply(t, s, task.Unclaim(tasks[1+i].ID, task.Assignment{Attempt: tasks[1+i].Attempt, ClaimID: tasks[1+i].ClaimID}, 6))
			tasks[1+i].LifecycleStatus = task.Created
		}
		claimed(t, s, &tasks[1], &tasks[2])
		if s.recent.late() != 2 {
			t.Errorf("%s: %d put off", name, s.recent.late())
		}
	}
}

// TestWhatIsNotedOutlivesACrash: a process that is killed loses nothing, wherever its claims stood.
func TestWhatIsNotedOutlivesACrash(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	tasks := line(t, s, 6)
	claimed(t, s, &tasks[0], &tasks[1], &tasks[2], &tasks[3])
	mustApply(t, s, finished(&tasks[0]), task.Unclaim(tasks[1].ID, task.Assignment{Attempt: 1, ClaimID: tasks[1].ClaimID}, 6),
		task.Unclaim(tasks[2].ID, task.Assignment{Attempt: 1, ClaimID: tasks[2].ClaimID}, 6))
	tasks[2].LifecycleStatus = task.Created
	claimed(t, s, &tasks[2]) // again
	if s.recent.late() != 2 {
		t.Fatalf("%d put off", s.recent.late())
	}
	after := afterCrash(t, s)
	for i := range tasks {
		if got, want := mustGet(t, after, tasks[i].ID), mustGet(t, s, tasks[i].ID); !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
	if got := mustGet(t, after, tasks[2].ID); got.LifecycleStatus != task.Assigning || got.Attempt != 2 || got.Executor != "n1" {
		t.Errorf("%+v", got)
	}
	if n := inFile(t, after, "SELECT count(*) FROM claims"); n != 0 {
		t.Errorf("%d notes are left", n)
	}

	s = fresh(t)
	tk := line(t, s, 1)[0]
	claimed(t, s, &tk)
	if n, err := afterCrash(t, s).Counts(t.Context()); err != nil || n[task.Created] != 0 || n[task.Assigning] != 1 {
		t.Errorf("counts %v, error %v", n, err)
	}
}

// TestANoteIsOfItsTaskAlone: a new task of the id of one that was claimed and removed is not taken for it.
func TestANoteIsOfItsTaskAlone(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	tk := line(t, s, 1)[0]
	claimed(t, s, &tk)
	mustApply(t, s, finished(&tk))
	if gone, err := s.Purge(t.Context(), tk.ID); err != nil || !gone {
		t.Fatal(gone, err)
	}
	line(t, s, 1)
	if got := mustGet(t, afterCrash(t, s), tk.ID); got.LifecycleStatus != task.Created || got.Attempt != 0 {
		t.Errorf("%+v", got)
	}
}

// TestNotesAreBounded: neither many claims nor many small batches of them gather.
func TestNotesAreBounded(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"many": 400, "small": 5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fresh(t)
			tasks := line(t, s, 4*maxDeferred)
			most := 0
			for from := 0; from+size <= len(tasks) && from < size*(maxNotes+20); from += size {
				batch := make([]*task.Task, size)
				for i := range batch {
					batch[i] = &tasks[from+i]
				}
				claimed(t, s, batch...)
				most = max(most, s.recent.late())
				if n := inFile(t, s, "SELECT count(*) FROM claims"); n > maxNotes || s.recent.late() > maxDeferred {
					t.Fatalf("%d notes of %d claims", n, s.recent.late())
				}
			}
			if most < size*2 {
				t.Errorf("only %d were ever put off", most)
			}
		})
	}
}

// TestOnlyAClaimIsPutOff fails when a change gets a field that a note does not keep.
func TestOnlyAClaimIsPutOff(t *testing.T) {
	t.Parallel()
	tk := waits(1)
	tk.Attempt, tk.ClaimID = 3, "c3"
	want := task.Claim(&tk, "n1", "i1", "c4", 5)
	noted, ok := claimOf(&want)
	if got := noted.change(); !ok || !reflect.DeepEqual(got, want) {
		t.Fatalf("%t, got %+v\nwant %+v", ok, got, want)
	}
	kept := []string{"ID", "Attempt", "ClaimID", "UpdatedAt", "Assign"}
	for field := range reflect.TypeFor[task.Change]().Fields() {
		c := want
		fill(t, reflect.ValueOf(&c).Elem().FieldByIndex(field.Index))
		if _, ok := claimOf(&c); ok && !slices.Contains(kept, field.Name) {
			t.Errorf("with another %s it is put off: see to it that a note keeps the field, or that claimOf asks for it", field.Name)
		}
	}
	for _, permit := range []task.Assignment{{KeyPermit: "k#0"}, {PoolPermit: "p#0"}} {
		c := want
		c.Assign = &permit
		if _, ok := claimOf(&c); ok {
			t.Errorf("a claim with the permits %+v is put off", permit)
		}
	}
}

// TestOddClaimsAreWritten: what is not kept in memory is in the file.
func TestOddClaimsAreWritten(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*task.Task){
		"a result before the run":  func(tk *task.Task) { tk.Result = []byte(`1`) },
		"a time that has not come": func(tk *task.Task) { tk.NotBefore = 1 << 60 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fresh(t)
			tk := waits(1)
			change(&tk)
			mustCreate(t, s, tk)
			claimed(t, s, &tk)
			if n := inFile(t, s, "SELECT count(*) FROM tasks WHERE status = 1"); n != 1 || s.recent.late() != 0 {
				t.Errorf("%d rows are written, %d are put off", n, s.recent.late())
			}
			if got := mustGet(t, s, tk.ID); !reflect.DeepEqual(got, tk) {
				t.Errorf("got  %+v\nwant %+v", got, tk)
			}
		})
	}
}

// TestWaitingPassesOverWhatIsTaken: the file does not say so yet.
func TestWaitingPassesOverWhatIsTaken(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	tasks := line(t, s, 6)
	claimed(t, s, &tasks[0], &tasks[1], &tasks[3])
	for _, c := range []struct {
		limit int
		want  string
		more  bool
	}{
		{1, ids([]task.Task{tasks[2]}), true},
		{2, ids([]task.Task{tasks[2], tasks[4]}), true},
		{4, ids([]task.Task{tasks[2], tasks[4], tasks[5]}), false},
	} {
		page, err := s.Waiting(t.Context(), demoQueue, store.Place{}, c.limit)
		if err != nil || ids(page.Tasks) != c.want || page.More != c.more {
			t.Errorf("limit %d: %s, more %t, error %v; want %s, %t", c.limit, ids(page.Tasks), page.More, err, c.want, c.more)
		}
		rest, err := s.Waiting(t.Context(), demoQueue, store.After(&page.Tasks[len(page.Tasks)-1]), 9)
		if err != nil || len(page.Tasks)+len(rest.Tasks) != 3 || rest.More {
			t.Errorf("limit %d: behind it %s, more %t, error %v", c.limit, ids(rest.Tasks), rest.More, err)
		}
	}
	if s.recent.late() != 3 {
		t.Errorf("%d put off", s.recent.late())
	}
}

// TestWhoWaits: a line is read at one moment, and what is kept says more, or was said before.
func TestWhoWaits(t *testing.T) {
	t.Parallel()
	row := func(id string, status task.Status, notBefore int64) waiter {
		return waiter{at: store.Place{ID: id}, kept: &kept{is: task.Task{ID: id, LifecycleStatus: status, NotBefore: notBefore}}}
	}
	read := func(id string) waiter { return waiter{at: store.Place{ID: id}} }
	taken := map[string]struct{}{"ended": {}, "claimed": {}, "back": {}}
	all := []waiter{
		read("a"), read("ended"), row("claimed", task.Assigning, 0), row("back", task.Created, 0), row("later", task.Created, 9), row("new", task.Assigning, 0),
		row("b", task.Created, 0), read("c"),
	}
	for limit, c := range []struct {
		want string
		seen int
	}{{"[]", 0}, {"[a]", 1}, {"[a back]", 4}, {"[a back b]", 7}, {"[a back b c]", 8}, {"[a back b c]", 8}} {
		line, seen := waiting(all, taken, limit)
		got := make([]string, 0, limit)
		for i := range line {
			got = append(got, line[i].at.ID)
		}
		if fmt.Sprint(got) != c.want || seen != c.seen {
			t.Errorf("limit %d: %v of %d; want %s of %d", limit, got, seen, c.want, c.seen)
		}
	}
}
