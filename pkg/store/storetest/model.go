package storetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// model is what a store must hold, as a plain map that Change.Apply works on.
type model struct {
	s     store.Store
	tasks map[string]*task.Task
	late  []task.Change
	now   int64
	claim int
}

// runModel drives a store and a map with the same random calls, and compares all that can be read.
func runModel(t *testing.T, open func(t *testing.T) store.Store) {
	rapid.Check(t, func(r *rapid.T) {
		m := &model{s: open(t), tasks: map[string]*task.Task{}, now: base}
		r.Repeat(map[string]func(*rapid.T){
			"create":            m.create,
			"apply":             m.apply,
			"purge":             m.purge,
			"expire":            m.expire,
			"promote":           m.promote,
			"compare the reads": m.compare,
		})
		m.compare(r)
		if err := m.s.Close(r.Context()); err != nil {
			r.Fatalf("close: %v", err)
		}
	})
}

func (m *model) create(r *rapid.T) {
	tasks := make([]task.Task, rapid.IntRange(1, 6).Draw(r, "n"))
	for i := range tasks {
		m.now++
		tk := fresh(fmt.Sprintf("%c%d", rapid.RuneFrom([]rune("ab")).Draw(r, "prefix"), rapid.IntRange(0, 12).Draw(r, "id")), rapid.Int64Range(0, 3).Draw(r, "at"))
		tk.Priority = rapid.IntRange(0, 2).Draw(r, "priority")
		tk.ClassName = rapid.SampledFrom([]string{"x", "y"}).Draw(r, "class")
		tk.Name = strconv.FormatInt(m.now, 10)
		if key := rapid.IntRange(0, 6).Draw(r, "key"); key < 3 {
			tk.IdempotencyKey = fmt.Sprintf("k%d", key)
		}
		if rapid.IntRange(0, 5).Draw(r, "later") == 0 {
			tk.NotBefore = rapid.Int64Range(base, base+3).Draw(r, "not before")
		}
		if rapid.IntRange(0, 3).Draw(r, "selects") == 0 {
			tk.Labels = map[string]string{"zone": rapid.SampledFrom([]string{"north", "?"}).Draw(r, "zone")} // one can never run
		}
		if rapid.IntRange(0, 9).Draw(r, "edge") == 0 {
			tk.Mode = task.ModeActive
		}
		tasks[i] = tk
	}
	out, err := m.s.Create(r.Context(), tasks)
	if err != nil || len(out) != len(tasks) {
		r.Fatalf("create: %v, %v", out, err)
	}
	for i := range tasks {
		want, existing := m.admit(&tasks[i])
		if out[i].Status != want {
			r.Fatalf("create %+v: status %d; want %d", tasks[i], out[i].Status, want)
		}
		if existing != nil {
			same(r, *out[i].Existing, *existing)
		}
	}
}

// admit is Create of one task on the map.
func (m *model) admit(t *task.Task) (store.CreateStatus, *task.Task) {
	if t.IdempotencyKey != "" {
		for _, old := range m.tasks {
			if old.IdempotencyKey == t.IdempotencyKey {
				return store.CreateSameKey, old
			}
		}
	}
	if old, ok := m.tasks[t.ID]; ok {
		return store.CreateExists, old
	}
	m.tasks[t.ID] = new(t.Clone())
	return store.CreateOK, nil
}

// apply makes changes of some tasks, and carries out some of them and some that were made before.
func (m *model) apply(r *rapid.T) {
	var changes []task.Change
	for _, tk := range m.sorted(func(a, b *task.Task) int { return cmp.Compare(a.ID, b.ID) }, func(*task.Task) bool { return true }) {
		if rapid.IntRange(0, 2).Draw(r, "touch "+tk.ID) != 0 {
			continue
		}
		m.now++
		switch made := m.change(r, tk); rapid.IntRange(0, 3).Draw(r, "when") {
		case 0:
			m.late = append(m.late, made...)
		default:
			changes = append(changes, made...)
		}
	}
	if len(m.late) > 0 && rapid.Bool().Draw(r, "late") {
		changes = append(changes, rapid.SampledFrom(m.late).Draw(r, "which"))
	}
	// The order within a batch is not defined: one change of a task at a time, and none that wants what another may
	// free or take.
	batch, seen := []task.Change{}, map[string]bool{}
	for _, c := range changes {
		if m.disputed(batch, &c) {
			continue
		}
		if !seen[c.ID] || len(batch) > 0 && batch[len(batch)-1].ID == c.ID && batch[len(batch)-1].From&c.From == 0 {
			batch = append(batch, c)
		}
		seen[c.ID] = true
	}
	want := 0
	for i := range batch {
		if tk, ok := m.tasks[batch[i].ID]; ok && !m.taken(&batch[i]) && batch[i].Apply(tk) {
			want++
		}
	}
	if n, err := m.s.Apply(r.Context(), batch); err != nil || n != want {
		r.Fatalf("apply %+v: %d, error %v; want %d", batch, n, err, want)
	}
}

// taken reports whether another task has a permit that c would give.
func (m *model) taken(c *task.Change) bool {
	key, pool := store.Permits(c)
	for _, tk := range m.tasks {
		if tk.ID != c.ID && (key != "" && tk.KeyPermit == key || pool != "" && tk.PoolPermit == pool) {
			return true
		}
	}
	return false
}

// disputed reports whether what becomes of c may depend on whether it comes before or after those of the batch, for the
// sake of permits.
func (m *model) disputed(batch []task.Change, c *task.Change) bool {
	permits := func(c *task.Change) [2][]string {
		key, pool := store.Permits(c)
		found := [2][]string{{key}, {pool}}
		if tk, ok := m.tasks[c.ID]; ok {
			found[0], found[1] = append(found[0], tk.KeyPermit), append(found[1], tk.PoolPermit)
		}
		return found
	}
	mine := permits(c)
	for i := range batch {
		if batch[i].ID == c.ID {
			continue
		}
		for kind, others := range permits(&batch[i]) {
			for _, permit := range others {
				if permit != "" && slices.Contains(mine[kind], permit) {
					return true
				}
			}
		}
	}
	return false
}

func (m *model) change(r *rapid.T, tk *task.Task) []task.Change {
	one := func(c task.Change, ok bool) []task.Change {
		if !ok {
			return nil
		}
		return []task.Change{c}
	}
	switch what := rapid.SampledFrom([]string{"claim", "claim", "report", "report", "report", "lose", "cancel", "pause", "resume", "apply desired", "retry", "refuse", "back off", "adopt", "unclaim"}).Draw(r, "what"); what {
	case "claim":
		m.claim++
		node := rapid.SampledFrom([]string{"n1", "n2"}).Draw(r, "node")
		c := task.Claim(tk, node, "i-"+node, fmt.Sprintf("c%d", m.claim), m.now)
		c.Assign.KeyPermit = rapid.SampledFrom([]string{"", "a", "b"}).Draw(r, "key permit")
		c.Assign.PoolPermit = rapid.SampledFrom([]string{"", "", "a"}).Draw(r, "pool permit")
		return one(c, true)
	case "lose":
		return one(task.Lose(tk, task.LossSilent, task.DefaultPolicy(), m.now))
	case "cancel":
		return one(task.Cancel(tk, m.now))
	case "pause":
		return one(task.Pause(tk, m.now))
	case "resume":
		return one(task.Resume(tk, m.now))
	case "apply desired":
		return one(task.ApplyDesired(tk, m.now))
	case "retry":
		return one(task.Retry(tk, m.now))
	case "back off":
		return one(task.Change{ID: tk.ID, From: task.Set(task.Created, task.Assigning, task.Running), Attempt: tk.Attempt, ClaimID: tk.ClaimID, To: task.Created,
			UpdatedAt: m.now, Unassign: true, NotBefore: rapid.Int64Range(base, base+3).Draw(r, "until")}, true)
	case "adopt":
		return one(task.Adopt(tk, m.now), true)
	case "unclaim":
		a := tk.Assignment()
		a.At -= rapid.SampledFrom([]int64{0, 0, 1}).Draw(r, "adopted since")
		return one(task.Unclaim(tk.ID, a, m.now), true)
	case "refuse":
		return one(task.Refuse(tk, "no", m.now), true)
	default:
		rep := task.Report{ID: tk.ID, Attempt: tk.Attempt, ClaimID: tk.ClaimID, StartedAt: m.now, Kind: rapid.SampledFrom([]task.Kind{
			task.ReportStarted, task.ReportProgress, task.ReportFinished, task.ReportFailed, task.ReportCancelled, task.ReportRejected, task.ReportReleased,
			task.ReportPaused, task.ReportResumed,
		}).Draw(r, "kind")}
		if rapid.Bool().Draw(r, "with") {
			rep.Result, rep.Error, rep.Progress = json.RawMessage(`{"r":[1.0]}`), "e", &task.Progress{Percent: 1}
		}
		return rep.Changes(m.now)
	}
}

func (m *model) purge(r *rapid.T) {
	id := fmt.Sprintf("a%d", rapid.IntRange(0, 12).Draw(r, "id"))
	tk, ok := m.tasks[id]
	want := ok && tk.LifecycleStatus.Terminal()
	if want {
		delete(m.tasks, id)
	}
	if got, err := m.s.Purge(r.Context(), id); err != nil || got != want {
		r.Fatalf("purge %s: %t, error %v; want %t", id, got, err, want)
	}
}

func (m *model) expire(r *rapid.T) {
	before := rapid.Int64Range(base, m.now+1).Draw(r, "before")
	old := m.sorted(func(a, b *task.Task) int { return cmp.Compare(a.ID, b.ID) }, func(t *task.Task) bool {
		return t.LifecycleStatus.Terminal() && t.UpdateDateTime < before
	})
	for _, tk := range old {
		delete(m.tasks, tk.ID)
	}
	if n, err := m.s.Expire(r.Context(), before, 100); err != nil || n != len(old) {
		r.Fatalf("expire before %d: %d, error %v; want %d", before, n, err, len(old))
	}
}

func (m *model) promote(r *rapid.T) {
	now := rapid.Int64Range(base-1, base+4).Draw(r, "now")
	want, next := 0, int64(0)
	for _, tk := range m.tasks {
		switch {
		case tk.LifecycleStatus != task.Created || tk.NotBefore == 0:
		case tk.NotBefore <= now && tk.Mode == task.ModePassive:
			tk.NotBefore = 0
			want++
		case tk.Mode == task.ModePassive && (next == 0 || tk.NotBefore < next):
			next = tk.NotBefore
		}
	}
	if n, at, err := m.s.Promote(r.Context(), now, 1000); err != nil || n != want || at != next {
		r.Fatalf("promote by %d: %d, next %d, error %v; want %d, next %d", now, n, at, err, want, next)
	}
}

// sorted are the model's tasks that match, in an order.
func (m *model) sorted(order func(a, b *task.Task) int, match func(*task.Task) bool) []*task.Task {
	var out []*task.Task
	for _, tk := range m.tasks {
		if match(tk) {
			out = append(out, tk)
		}
	}
	slices.SortFunc(out, order)
	return out
}

func sameList(r *rapid.T, what string, got []task.Task, want []*task.Task) {
	if len(got) != len(want) {
		r.Fatalf("%s: %v; want %d tasks", what, ids(got), len(want))
	}
	for i := range got {
		same(r, got[i], *want[i])
	}
}

func (m *model) compare(r *rapid.T) {
	urgent := func(a, b *task.Task) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.CreateDateTime, b.CreateDateTime), cmp.Compare(a.ID, b.ID))
	}
	newest := func(a, b *task.Task) int {
		return cmp.Or(cmp.Compare(b.CreateDateTime, a.CreateDateTime), cmp.Compare(b.ID, a.ID))
	}
	limit := rapid.IntRange(3, 9).Draw(r, "limit")
	waits := m.sorted(urgent, func(t *task.Task) bool {
		return t.LifecycleStatus == task.Created && t.Mode == task.ModePassive && t.NotBefore == 0
	})
	sameList(r, "pending", drain(r, m.s, limit), waits)
	m.compareQueues(r, waits, limit)

	f := store.Filter{Limit: limit, ClassName: rapid.SampledFrom([]string{"", "", "x"}).Draw(r, "class"),
		Executor: rapid.SampledFrom([]string{"", "", "n1"}).Draw(r, "executor"), IDPrefix: rapid.SampledFrom([]string{"", "", "a"}).Draw(r, "prefix")}
	if rapid.Bool().Draw(r, "by status") {
		f.Status = rapid.SliceOfNDistinct(rapid.SampledFrom(task.All()), 1, 3, rapid.ID).Draw(r, "statuses")
	}
	sameList(r, "list", listAll(r, m.s, f), m.sorted(newest, func(t *task.Task) bool {
		return (len(f.Status) == 0 || slices.Contains(f.Status, t.LifecycleStatus)) && (f.ClassName == "" || t.ClassName == f.ClassName) &&
			(f.Executor == "" || t.Executor == f.Executor) && (f.IDPrefix == "" || t.ID[:1] == f.IDPrefix)
	}))

	want := map[task.Status]int64{}
	var held, steered []string
	for _, tk := range m.tasks {
		want[tk.LifecycleStatus]++
		if tk.LifecycleStatus.Active() {
			held = append(held, tk.ID)
		}
		if tk.Desired != "" && !tk.LifecycleStatus.Terminal() {
			steered = append(steered, tk.ID)
		}
	}
	slices.Sort(held)
	slices.Sort(steered)
	counts(r, m.s, want)
	equal(r, "active", active(r, m.s), held)
	checkDesired(r, m.s, 100, steered...)
}

// compareQueues compares the queues with what waits, the most urgent first.
func (m *model) compareQueues(r *rapid.T, waits []*task.Task, limit int) {
	want := map[string][]*task.Task{}
	for _, tk := range waits {
		want[tk.Queue()] = append(want[tk.Queue()], tk)
	}
	got := lines(r, m.s, limit)
	equal(r, "queues", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	for name, list := range want {
		sameList(r, "queue "+name, got[name], list)
	}
}
