package delayed_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/skalds-go/skalds/controller/delayed"
	"github.com/skalds-go/skalds/pkg/clock/clocktest"
	"github.com/skalds-go/skalds/pkg/loop"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/store/memory"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const grace = 5 * time.Second

type lease struct{ over bool }

func (l *lease) Valid() bool { return !l.over }

// faulty is a store that can be away.
type faulty struct {
	*memory.Store
	away bool
}

func (f *faulty) Promote(ctx context.Context, now int64, limit int) (int, int64, error) {
	if f.away {
		return 0, 0, store.ErrUnavailable
	}
	return f.Store.Promote(ctx, now, limit)
}

// lists are the task lists of nodes.
type lists struct {
	nodes map[string][]registry.HeldTask
	err   error
}

func (l *lists) Node(_ context.Context, id string) (registry.Node, bool, error) {
	tasks, ok := l.nodes[id]
	return registry.Node{ID: id, Tasks: tasks}, ok, l.err
}

type bundle struct {
	store *faulty
	nodes *lists
	lease *lease
	clock *clocktest.Fake
	work  chan struct{}
	a     *delayed.Promoter
	base  int64
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{store: &faulty{Store: memory.New()}, nodes: &lists{}, lease: &lease{}, clock: clocktest.New(time.UnixMilli(1_700_000_000_000)), work: make(chan struct{}, 100)}
	b.base = b.clock.Now().UnixMilli()
	b.a = delayed.New(b.store, b.nodes, b.lease, b.clock, grace, func() { b.work <- struct{}{} }, slog.New(slog.DiscardHandler))
	return b
}

func (b *bundle) create(t *testing.T, id string, change func(*task.Task)) {
	t.Helper()
	tk := task.Task{ID: id, ClassName: "a", Mode: task.ModePassive, LifecycleStatus: task.Created}
	change(&tk)
	if out, err := b.store.Create(t.Context(), []task.Task{tk}); err != nil || out[0].Status != store.CreateOK {
		t.Fatal(out, err)
	}
}

func (b *bundle) status(t *testing.T, id string) task.Status {
	t.Helper()
	list, err := b.store.Get(t.Context(), []string{id})
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	return list[0].LifecycleStatus
}

func (b *bundle) pending(t *testing.T) int {
	t.Helper()
	depths, err := b.store.Depths(t.Context(), "", store.MaxBatch)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, depth := range depths {
		n += int(depth)
	}
	return n
}

func (b *bundle) round(t *testing.T) int64 {
	t.Helper()
	next, err := b.a.Round(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func TestARoundDoesWhatIsDueAndSaysWhatIsNext(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.create(t, "later", func(tk *task.Task) { tk.NotBefore = b.base + 100 })
	b.create(t, "late", func(tk *task.Task) { tk.DeadlineDateTime = b.base + 50 })
	if next := b.round(t); next != b.base+50 || b.pending(t) != 1 {
		t.Fatalf("next %d, %d wait", next-b.base, b.pending(t))
	}
	b.clock.Advance(50 * time.Millisecond)
	if next := b.round(t); next != b.base+100 || b.status(t, "late") != task.Failed {
		t.Fatalf("next %d, late is %s", next-b.base, b.status(t, "late"))
	}
	b.clock.Advance(50 * time.Millisecond)
	if next := b.round(t); next != 0 || b.pending(t) != 1 || len(b.work) == 0 {
		t.Fatalf("next %d, %d wait", next, b.pending(t))
	}
}

func TestAHeldTaskIsItsNodesToEndWithinTheGrace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.create(t, "held", func(tk *task.Task) {
		tk.DeadlineDateTime, tk.LifecycleStatus, tk.Executor, tk.Attempt, tk.ClaimID = b.base, task.Running, "n1", 1, "c"
	})
	if next := b.round(t); next != b.base+grace.Milliseconds() || b.status(t, "held") != task.Running {
		t.Fatalf("next %d, it is %s", next-b.base, b.status(t, "held"))
	}
	b.clock.Advance(grace)
	if b.round(t); b.status(t, "held") != task.Failed {
		t.Fatal("its node did not end it, and nobody else does")
	}
}

// A task that was assigned after its deadline has the same grace: its node may be about to end it, or to give it up.
func TestTheGraceBeginsWithTheAssignmentIfThatIsLater(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.create(t, "held", func(tk *task.Task) {
		tk.DeadlineDateTime, tk.LifecycleStatus, tk.Executor, tk.Attempt, tk.ClaimID = b.base-time.Hour.Milliseconds(), task.Running, "n1", 2, "c"
		tk.AssignedDateTime = b.base
	})
	if next := b.round(t); next != b.base+grace.Milliseconds() || b.status(t, "held") != task.Running {
		t.Fatalf("next %d, it is %s", next-b.base, b.status(t, "held"))
	}
	b.clock.Advance(grace)
	if b.round(t); b.status(t, "held") != task.Failed {
		t.Fatal("its node did not end it, and nobody else does")
	}
}

// What its node lists as ended has a report that is on its way, for as long as Kafka is away; the run may have been in
// time.
func TestWhatItsNodeListsAsEndedIsNotEndedHere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tasks []registry.HeldTask
		err   error
		want  task.Status
		fails bool
	}{
		"it has ended":                 {[]registry.HeldTask{{ID: "held", ClaimID: "c", State: task.ReportFinished}}, nil, task.Running, false},
		"it runs":                      {[]registry.HeldTask{{ID: "held", ClaimID: "c", State: task.ReportStarted}}, nil, task.Failed, false},
		"an earlier one has ended":     {[]registry.HeldTask{{ID: "held", ClaimID: "b", State: task.ReportFinished}}, nil, task.Failed, false},
		"it is not listed":             {[]registry.HeldTask{}, nil, task.Failed, false},
		"the node is gone":             {nil, nil, task.Failed, false},
		"the list says nothing":        {nil, registry.ErrIncomplete, task.Failed, false},
		"the registry does not answer": {nil, registry.ErrUnavailable, task.Running, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.create(t, "held", func(tk *task.Task) {
				tk.DeadlineDateTime, tk.LifecycleStatus, tk.Executor, tk.Attempt, tk.ClaimID = b.base, task.Running, "n1", 1, "c"
			})
			b.create(t, "waits", func(tk *task.Task) { tk.DeadlineDateTime = b.base })
			if b.nodes.err = c.err; c.tasks != nil {
				b.nodes.nodes = map[string][]registry.HeldTask{"n1": c.tasks}
			}
			b.clock.Advance(grace)
			if _, err := b.a.Round(t.Context()); (err != nil) != c.fails || c.fails && !errors.Is(err, c.err) {
				t.Error(err)
			}
			if got := b.status(t, "held"); got != c.want {
				t.Errorf("it is %s, want %s", got, c.want)
			}
			if b.status(t, "waits") != task.Failed {
				t.Error("what no node holds waits for the registry")
			}
		})
	}
}

func TestWithoutALeaseNothingIsDone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.create(t, "late", func(tk *task.Task) { tk.DeadlineDateTime = 1 })
	b.lease.over = true
	if b.round(t); b.status(t, "late") != task.Created {
		t.Fatal("ended without a lease")
	}
}

func TestWhatDoesNotNeedTheOtherIsDone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.create(t, "late", func(tk *task.Task) { tk.DeadlineDateTime = 1 })
	b.store.away = true
	if _, err := b.a.Round(t.Context()); !errors.Is(err, store.ErrUnavailable) || b.status(t, "late") != task.Failed {
		t.Fatal(err, b.status(t, "late"))
	}
}

func TestRunIsThereWhenATaskIsDue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.create(t, "later", func(tk *task.Task) { tk.NotBefore = b.base + 700 })
	ctx, cancel := context.WithCancel(t.Context())
	due, done := make(loop.Wake), make(chan struct{})
	go func() {
		defer close(done)
		loop.NewRunner(b.clock, slog.New(slog.DiscardHandler)).Run(ctx, b.a.Loop(due))
	}()
	b.clock.BlockUntil(1)
	b.clock.Advance(10 * time.Millisecond) // the gap
	b.clock.BlockUntil(1)
	// One that is due earlier comes with a signal.
	b.create(t, "sooner", func(tk *task.Task) { tk.NotBefore = b.base + 100 })
	due <- struct{}{}
	b.clock.BlockUntil(1)
	b.clock.Advance(10 * time.Millisecond)
	b.clock.BlockUntil(1)
	b.clock.Advance(80 * time.Millisecond)
	<-b.work
	if n := b.pending(t); n != 1 {
		t.Errorf("%d wait at 100 ms", n)
	}
	b.clock.BlockUntil(1)
	b.clock.Advance(10 * time.Millisecond)
	b.clock.BlockUntil(1)
	b.clock.Advance(590 * time.Millisecond)
	<-b.work
	if n := b.pending(t); n != 2 {
		t.Errorf("%d wait at 700 ms", n)
	}
	cancel()
	<-done
}
