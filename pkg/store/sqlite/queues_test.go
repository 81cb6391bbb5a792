package sqlite

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// TestQueuesPassOverWhatIsTaken: claims that are only noted count, and are not written for it.
func TestQueuesPassOverWhatIsTaken(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	var tasks []task.Task
	for i := range 12 {
		tk := waits(i)
		tk.ClassName = fmt.Sprintf("c%d", i/3)
		tasks = append(tasks, tk)
	}
	mustCreate(t, s, tasks...)
	claimed(t, s, &tasks[0], &tasks[1], &tasks[2], &tasks[4], &tasks[6], &tasks[9], &tasks[10], &tasks[11])
	put := s.recent.late()
	for _, c := range []struct {
		after string
		limit int
		want  []string
		more  bool
	}{
		{"", 1, []string{"0||c1"}, true}, {"", 2, []string{"0||c1", "0||c2"}, false}, {"", 9, []string{"0||c1", "0||c2"}, false}, {"0||c1", 1, []string{"0||c2"}, false},
	} {
		page, err := s.Queues(t.Context(), c.after, c.limit)
		if err != nil || !slices.Equal(page.Names, c.want) || page.More != c.more {
			t.Errorf("%d after %q: %+v, error %v; want %v, more %t", c.limit, c.after, page, err, c.want, c.more)
		}
	}
	for queue, want := range map[string][]task.Task{"0||c0": nil, "0||c1": {tasks[3], tasks[5]}, "0||c2": {tasks[7], tasks[8]}, "0||c3": nil} {
		page, err := s.Waiting(t.Context(), queue, store.Place{}, 9)
		if err != nil || ids(page.Tasks) != ids(want) || page.More {
			t.Errorf("%s: %s, more %t, error %v; want %s", queue, ids(page.Tasks), page.More, err, ids(want))
		}
	}
	if put != 8 || s.recent.late() != put {
		t.Errorf("%d put off, then %d", put, s.recent.late())
	}
	if got, err := s.Depths(t.Context(), "", 9); err != nil || fmt.Sprint(got) != "map[0||c1:2 0||c2:2]" {
		t.Errorf("depths %v, error %v", got, err)
	}
}

func permitted(tk *task.Task, key, pool string) task.Change {
	c := task.Claim(tk, "n1", "i1", "claim-"+tk.ID, 5)
	c.Assign.KeyPermit, c.Assign.PoolPermit = key, pool
	return c
}

// TestPermitsOverARestart: what a task holds is in the file.
func TestPermitsOverARestart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "skalds.db")
	a, b := waits(1), waits(2)
	s := openTest(t, path)
	mustCreate(t, s, a, b)
	applied(t, s, 1, permitted(&a, "k#0", "p#0"))
	closeTest(t, s)
	s = openTest(t, path)
	applied(t, s, 0, permitted(&b, "k#0", ""))
	applied(t, s, 0, permitted(&b, "", "p#0"))
	a = mustGet(t, s, a.ID)
	applied(t, s, 1, task.Unclaim(a.ID, task.Assignment{Attempt: a.Attempt, ClaimID: a.ClaimID}, 6))
	applied(t, s, 1, permitted(&b, "k#0", "p#0"))
}

func applied(t *testing.T, s *Store, want int, changes ...task.Change) {
	t.Helper()
	if n, err := s.Apply(t.Context(), changes); err != nil || n != want {
		t.Fatalf("%d applied, error %v; want %d", n, err, want)
	}
}

// TestPermitsInOneCall: a call that frees a permit and gives it to another is carried out in the order of its changes,
// whatever is written first.
func TestPermitsInOneCall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		changes func(back, claim, touch task.Change) []task.Change
		want    int
		holder  int
	}{
		"freed before":                           {func(back, claim, _ task.Change) []task.Change { return []task.Change{back, claim} }, 2, 1},
		"freed after":                            {func(back, claim, _ task.Change) []task.Change { return []task.Change{claim, back} }, 1, -1},
		"freed before, the other touched before": {func(back, claim, touch task.Change) []task.Change { return []task.Change{touch, back, claim} }, 3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fresh(t)
			tasks := []task.Task{waits(0), waits(1)}
			mustCreate(t, s, tasks...)
			first := permitted(&tasks[0], "k#0", "p#0")
			applied(t, s, 1, first)
			touch := task.Change{ID: tasks[1].ID, From: task.Set(task.Created), To: task.Created, UpdatedAt: 7}
			applied(t, s, c.want, c.changes(task.Unclaim(tasks[0].ID, *first.Assign, 6), permitted(&tasks[1], "k#0", "p#0"), touch)...)
			for i := range tasks {
				if got := mustGet(t, s, tasks[i].ID); (got.KeyPermit == "k#0") != (i == c.holder) || (got.PoolPermit == "p#0") != (i == c.holder) {
					t.Errorf("task %d: %+v", i, got)
				}
			}
		})
	}
}

// TestWaitingBehindManyThatAreTaken: however many of the first are, the page is full if there are as many that wait.
func TestWaitingBehindManyThatAreTaken(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	const all, taken = 4*leastPart + 5, 3 * leastPart
	tasks := line(t, s, all)
	var first []*task.Task
	for i := range taken {
		first = append(first, &tasks[i])
	}
	claimed(t, s, first...)
	for _, c := range []struct {
		limit, want int
		more        bool
	}{{1, 1, true}, {10, 10, true}, {leastPart, leastPart, true}, {all - taken, all - taken, false}, {all - taken + 1, all - taken, false}, {store.MaxBatch, all - taken, false}} {
		page, err := s.Waiting(t.Context(), tasks[0].Queue(), store.Place{}, c.limit)
		if err != nil || ids(page.Tasks) != ids(tasks[taken:taken+c.want]) || page.More != c.more {
			t.Errorf("limit %d: %s, more %t, error %v; want %d, more %t", c.limit, ids(page.Tasks), page.More, err, c.want, c.more)
		}
	}
	if s.recent.late() != taken {
		t.Errorf("%d put off", s.recent.late())
	}
}
