package storetest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// of is a task that waits in the queue of a class and a priority.
func of(class string, priority int, id string, at int64) task.Task {
	return with(fresh(id, at), func(t *task.Task) { t.ClassName, t.Priority = class, priority })
}

// queueNames reads the names of all queues, in pages of that size.
func queueNames(t tester, s store.Queues, limit int) []string {
	t.Helper()
	var all []string
	after := ""
	for {
		page, err := s.Queues(t.Context(), after, limit)
		if err != nil {
			t.Fatalf("queues after %q: %v", after, err)
		}
		if len(page.Names) > limit || len(page.Bad) > 0 {
			t.Fatalf("queues after %q: a page of %d, bad %v; limit %d", after, len(page.Names), page.Bad, limit)
		}
		for _, name := range page.Names {
			if name <= after {
				t.Fatalf("queues after %q: %q comes", after, name)
			}
			after = name
		}
		all = append(all, page.Names...)
		if !page.More {
			return all
		}
		if len(page.Names) == 0 {
			t.Fatalf("queues after %q: an empty page has a next one", after)
		}
	}
}

// line reads all that waits in a queue, in pages of that size.
func line(t tester, s store.Queues, queue string, limit int) []task.Task {
	t.Helper()
	var all []task.Task
	var at store.Place
	for {
		page, err := s.Waiting(t.Context(), queue, at, limit)
		if err != nil {
			t.Fatalf("waiting in %q: %v", queue, err)
		}
		if len(page.Tasks) > limit || len(page.Bad) > 0 {
			t.Fatalf("waiting in %q: a page of %d, bad %v; limit %d", queue, len(page.Tasks), page.Bad, limit)
		}
		all = append(all, page.Tasks...)
		if !page.More {
			return all
		}
		if len(page.Tasks) == 0 {
			t.Fatalf("waiting in %q: an empty page behind %+v that is not the last", queue, at)
		}
		at = store.After(&page.Tasks[len(page.Tasks)-1])
	}
}

// lines reads all that waits, by queue, and checks what the reads of queues must say together.
func lines(t tester, s store.Store, limit int) map[string][]task.Task {
	t.Helper()
	found := map[string][]task.Task{}
	depths := map[string]int64{}
	for _, name := range queueNames(t, s, limit) {
		found[name] = line(t, s, name, limit)
		depths[name] = int64(len(found[name]))
		for i := range found[name] {
			if tk := &found[name][i]; tk.Queue() != name {
				t.Errorf("task %s of queue %q waits in %q", tk.ID, tk.Queue(), name)
			}
		}
		if len(found[name]) == 0 {
			t.Errorf("queue %q is listed, and nothing waits in it", name)
		}
	}
	got, err := s.Depths(t.Context(), "", store.MaxBatch)
	if err != nil || !maps.Equal(got, depths) {
		t.Errorf("depths %v, error %v; want %v", got, err, depths)
	}
	return found
}

// urgency is the order of tasks of all queues together.
func urgency(a, b task.Task) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.CreateDateTime, b.CreateDateTime), cmp.Compare(a.ID, b.ID))
}

// waitIn checks which tasks wait in which queues: "queue: ids" for each, in the order of the names.
func waitIn(t tester, s store.Store, what string, want ...string) {
	t.Helper()
	found := lines(t, s, 10)
	got := make([]string, 0, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		got = append(got, fmt.Sprint(name, ": ", ids(found[name])))
	}
	equal(t, what, got, want)
}

var queueCases = map[string]func(*testing.T, store.Store){
	"queues/by the byte order of their names": func(t *testing.T, s store.Store) {
		classes := []string{"b", "a", "B", "aa", "a.b", "a b", "a|b", "a~", "é", "ж", "a\x00", "a!"}
		want := make([]string, 0, len(classes))
		for i, class := range classes {
			tk := of(class, i%3*5, fmt.Sprintf("t%d", i), 0)
			create(t, s, tk)
			want = append(want, tk.Queue())
		}
		slices.Sort(want)
		for _, limit := range []int{1, 2, 5, len(want), len(want) + 1, store.MaxBatch} {
			equal(t, fmt.Sprintf("in pages of %d", limit), queueNames(t, s, limit), want)
		}
	},
	"queues/what a task asks for": func(t *testing.T, s store.Store) {
		ask := func(id string, set func(*task.Task)) task.Task { return with(fresh(id, 0), set) }
		tasks := []task.Task{
			fresh("plain", 0), ask("plain too", func(t *task.Task) { t.Slots, t.Strategy, t.StickyKey = 1, "RANDOM", "s" }),
			ask("slots", func(t *task.Task) { t.Slots = 2 }), ask("pool", func(t *task.Task) { t.Pool = "p" }),
			ask("key", func(t *task.Task) { t.ConcurrencyKey = "k" }), ask("key 2", func(t *task.Task) { t.ConcurrencyKey, t.ConcurrencyLimit = "k", 2 }),
			ask("anti", func(t *task.Task) { t.AntiAffinityKey = "k" }), ask("space", func(t *task.Task) { t.Namespace = "n" }),
			ask("labels", func(t *task.Task) { t.Labels = map[string]string{"a": "1"} }), ask("selector", func(t *task.Task) { t.Selector = " a = 1" }),
			ask("bad selector", func(t *task.Task) { t.Selector = "a b" }), ask("bad selector too", func(t *task.Task) { t.Selector = "a b" }),
		}
		create(t, s, tasks...)
		want := map[string][]string{}
		for i := range tasks {
			want[tasks[i].Queue()] = append(want[tasks[i].Queue()], tasks[i].ID)
		}
		if len(want) != 10 {
			t.Fatalf("queues %v", want)
		}
		got := lines(t, s, 10)
		equal(t, "names", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		for name := range want {
			slices.Sort(want[name])
			equal(t, name, ids(got[name]), want[name])
		}
	},
	"queues/only what waits for the controller": func(t *testing.T, s store.Store) {
		create(t, s, of("w", 0, "waits", 0), with(of("e", 0, "edge", 0), func(t *task.Task) { t.Mode = task.ModeActive }),
			with(of("l", 0, "later", 0), func(t *task.Task) { t.NotBefore = base }), with(of("w", 0, "later too", 0), func(t *task.Task) { t.NotBefore = base }))
		for i, status := range task.All()[1:] {
			create(t, s, with(of("x", 0, fmt.Sprintf("x%d", i), 0), func(t *task.Task) { t.LifecycleStatus = status }))
		}
		waitIn(t, s, "waiting", "0||w: [waits]")
	},
	"queues/of an empty store": func(t *testing.T, s store.Store) {
		page, err := s.Queues(t.Context(), "", 10)
		if err != nil || len(page.Names) != 0 || len(page.Bad) != 0 || page.More {
			t.Errorf("queues %+v, error %v", page, err)
		}
		for _, after := range []store.Place{{}, {Set: true, CreateDateTime: 3, ID: "x"}} {
			page, err := s.Waiting(t.Context(), "nobody's", after, 10)
			if err != nil || len(page.Tasks) != 0 || len(page.Bad) != 0 || page.More {
				t.Errorf("waiting behind %+v: %+v, error %v", after, page, err)
			}
		}
		if depths, err := s.Depths(t.Context(), "", 10); err != nil || len(depths) != 0 {
			t.Errorf("depths %v, error %v", depths, err)
		}
	},
	"queues/limits, and an ended context": func(t *testing.T, s store.Store) {
		ended := cancelled(t)
		for _, limit := range []int{-1, 0, store.MaxBatch + 1} {
			if _, err := s.Queues(t.Context(), "", limit); err == nil {
				t.Errorf("Queues takes the limit %d", limit)
			}
			if _, err := s.Waiting(t.Context(), "q", store.Place{}, limit); err == nil {
				t.Errorf("Waiting takes the limit %d", limit)
			}
			if _, err := s.Depths(t.Context(), "", limit); err == nil {
				t.Errorf("Depths takes the limit %d", limit)
			}
		}
		if _, err := s.Queues(ended, "", 1); err == nil {
			t.Error("Queues: an ended context is no error")
		}
		if _, err := s.Waiting(ended, "q", store.Place{}, 1); err == nil {
			t.Error("Waiting: an ended context is no error")
		}
		if _, err := s.Depths(ended, "", 1); err == nil {
			t.Error("Depths: an ended context is no error")
		}
	},
	"queues/depths by pages": func(t *testing.T, s store.Store) {
		for i := range 5 {
			for j := range i + 1 {
				create(t, s, of(fmt.Sprintf("c%d", i), 0, fmt.Sprintf("t%d-%d", i, j), 0))
			}
		}
		for _, c := range []struct {
			after string
			limit int
			want  map[string]int64
		}{
			{"", 2, map[string]int64{"0||c0": 1, "0||c1": 2}},
			{"0||c1", 2, map[string]int64{"0||c2": 3, "0||c3": 4}},
			{"0||c2x", 1000, map[string]int64{"0||c3": 4, "0||c4": 5}},
			{"0||c4", 1, map[string]int64{}},
		} {
			if got, err := s.Depths(t.Context(), c.after, c.limit); err != nil || !maps.Equal(got, c.want) {
				t.Errorf("%d after %q: %v, error %v; want %v", c.limit, c.after, got, err, c.want)
			}
		}
	},
	"queues/more does not come without need": func(t *testing.T, s store.Store) {
		create(t, s, of("a", 0, "a", 0), of("b", 0, "b", 0), of("b", 0, "b2", 1))
		for after, want := range map[string]bool{"": true, "0||a": false, "0||b": false, "0||aa": false} {
			if page, err := s.Queues(t.Context(), after, 1); err != nil || !want && page.More && len(page.Names) == 0 || want && !page.More {
				t.Errorf("queues after %q: %+v, error %v", after, page, err)
			}
		}
	},
	"waiting/order": func(t *testing.T, s store.Store) {
		create(t, s, of("x", 5, "e", 3), of("x", 5, "d", 9), of("x", 5, "c", 2), of("x", 5, "b", 2), of("x", 5, "a", -7), of("x", 6, "f", 0), of("y", 5, "g", 0),
			of("x", 5, "b\x00", 2), of("x", 5, "é", 2), of("x", 5, "B", 2))
		want := []string{"a", "B", "b", "b\x00", "c", "é", "e", "d"}
		for _, limit := range []int{1, 2, 3, 7, 8, 9, store.MaxBatch} {
			equal(t, fmt.Sprintf("in pages of %d", limit), ids(line(t, s, "5||x", limit)), want)
		}
	},
	"waiting/behind a place that is gone, and between places": func(t *testing.T, s store.Store) {
		create(t, s, many(4)...)
		tasks := line(t, s, "0||resize", 10)
		claim(t, s, "t0001")
		place := func(at int64, id string) store.Place {
			return store.Place{Set: true, CreateDateTime: base + at, ID: id}
		}
		for _, c := range []struct {
			name  string
			after store.Place
			want  []string
		}{
			{"gone", store.After(&tasks[1]), []string{"t0002", "t0003"}},
			{"between", place(2, "t0001x"), []string{"t0002", "t0003"}},
			{"between, by the time", place(1, "z"), []string{"t0002", "t0003"}},
			{"before the head", place(-1, "z"), []string{"t0000", "t0002", "t0003"}},
			{"at the end", place(3, "t0003"), nil},
			{"past the end", place(4, ""), nil},
		} {
			page, err := s.Waiting(t.Context(), "0||resize", c.after, 10)
			if err != nil || page.More {
				t.Errorf("%s: %+v, error %v", c.name, page, err)
			}
			equal(t, c.name, ids(page.Tasks), c.want)
		}
	},
	"waiting/paging while others come and go": func(t *testing.T, s store.Store) {
		create(t, s, many(10)...)
		first, err := s.Waiting(t.Context(), "0||resize", store.Place{}, 4)
		if err != nil || !first.More {
			t.Fatalf("first page: %+v, %v", first, err)
		}
		create(t, s, of("resize", 9, "urgent", 50), fresh("t0000x", 0), fresh("t0003x", 3), fresh("t0009x", 9))
		claim(t, s, "t0005")
		rest, err := s.Waiting(t.Context(), "0||resize", store.After(&first.Tasks[3]), 100)
		if err != nil || rest.More {
			t.Fatalf("rest: %+v, %v", rest, err)
		}
		equal(t, "first page", ids(first.Tasks), []string{"t0000", "t0001", "t0002", "t0003"})
		equal(t, "rest", ids(rest.Tasks), []string{"t0003x", "t0004", "t0006", "t0007", "t0008", "t0009", "t0009x"})
	},
	"waiting/comes whole, and is not shared": func(t *testing.T, s store.Store) {
		want := with(fresh("x", 0), func(t *task.Task) {
			t.Labels, t.Attempts = map[string]string{"a": "1"}, []task.Run{{Attempt: 1, Outcome: "lost"}}
		})
		create(t, s, want)
		for range 2 {
			got := line(t, s, want.Queue(), 1)
			if len(got) != 1 {
				t.Fatalf("%v wait", ids(got))
			}
			same(t, got[0], want)
			got[0].Labels["a"] = "2"
		}
	},
	// Every way into a queue and out of it.
	"waiting/after every change": func(t *testing.T, s store.Store) {
		create(t, s, of("x", 1, "a", 0), of("x", 1, "b", 1), of("y", 0, "c", 0))
		a := claim(t, s, "a")
		waitIn(t, s, "claimed", "0||y: [c]", "1||x: [b]")
		apply(t, s, 1, task.Unclaim("a", a, base))
		waitIn(t, s, "given back", "0||y: [c]", "1||x: [a b]")
		claim(t, s, "c")
		waitIn(t, s, "a queue without tasks", "1||x: [a b]")
		a = claim(t, s, "a")
		apply(t, s, 1, task.Change{ID: "a", From: task.Set(task.Assigning), Attempt: a.Attempt, ClaimID: a.ClaimID, To: task.Created, UpdatedAt: base,
			Unassign: true, NotBefore: base + 50})
		waitIn(t, s, "failed, with a time", "1||x: [b]")
		promote(t, s, base+50, 10, 1, 0)
		waitIn(t, s, "due", "1||x: [a b]")
		now := func(id string) *task.Task { return new(get(t, s, id)) }
		hold, _ := task.Pause(now("b"), base)
		apply(t, s, 1, hold)
		waitIn(t, s, "held", "1||x: [a]")
		resume, _ := task.Resume(now("b"), base)
		apply(t, s, 1, resume)
		waitIn(t, s, "resumed", "1||x: [a b]")
		cancel, _ := task.Cancel(now("a"), base)
		apply(t, s, 1, cancel)
		apply(t, s, 1, task.Refuse(now("b"), "no", base))
		waitIn(t, s, "cancelled and refused")
		retry, _ := task.Retry(now("a"), base)
		apply(t, s, 1, retry)
		waitIn(t, s, "retried", "1||x: [a]")
		lose, _ := task.Lose(now("c"), task.LossSilent, task.DefaultPolicy(), base)
		apply(t, s, 1, lose)
		waitIn(t, s, "lost", "0||y: [c]", "1||x: [a]")
		cancel, _ = task.Cancel(now("a"), base)
		apply(t, s, 1, cancel)
		for _, id := range []string{"a", "b"} {
			if ok, err := s.Purge(t.Context(), id); err != nil || !ok {
				t.Fatalf("purge: %t, %v", ok, err)
			}
		}
		create(t, s, of("x", 2, "a", 0))
		waitIn(t, s, "the id once more, in another queue", "0||y: [c]", "2||x: [a]")
	},
}
