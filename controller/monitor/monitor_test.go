package monitor_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/monitor"
	"github.com/skalds-go/skalds/controller/transport"
	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/clock/clocktest"
	"github.com/skalds-go/skalds/pkg/registry"
	registrymemory "github.com/skalds-go/skalds/pkg/registry/memory"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/store/memory"
	"github.com/skalds-go/skalds/pkg/task"
)

const (
	giveAway = 8800 * time.Millisecond
	resend   = 2 * time.Second
)

var n1 = fleet.Key{Node: "n1", Incarnation: "n1-1"}

// wire remembers what was sent.
type wire struct {
	tasks    []string
	commands []events.Command
	drains   []bool
	fenced   []fleet.Target
	told     []int
	mute     bool // announcements do not arrive
	err      error
	never    error // no task fits into an event
}

func (w *wire) Fence(_ context.Context, _ int64, list []fleet.Target) error {
	w.fenced = append(w.fenced, list...)
	return w.err
}

func (w *wire) Tell(_ context.Context, _ int64, partitions []int) []error {
	errs := make([]error, len(partitions))
	for i, p := range partitions {
		if w.mute {
			errs[i] = errors.New("no leader")
			continue
		}
		w.told = append(w.told, p)
	}
	return errs
}

func (w *wire) Assign(_ context.Context, _ int64, batches []transport.Batch) []transport.Result {
	results := make([]transport.Result, len(batches))
	for i, b := range batches {
		results[i] = transport.Result{Outcomes: make([]transport.Outcome, len(b.Tasks)), Err: w.err}
		for j := range b.Tasks {
			if w.never != nil {
				results[i].Outcomes[j], results[i].Never = transport.NotSent, map[int]error{j: w.never}
				continue
			}
			w.tasks = append(w.tasks, b.Tasks[j].ClaimID)
		}
	}
	return results
}

func (w *wire) Control(_ context.Context, _ int64, list []transport.Orders) error {
	for _, o := range list {
		w.commands = append(w.commands, o.Commands...)
		if o.Drain != nil {
			w.drains = append(w.drains, *o.Drain)
		}
	}
	return w.err
}

// tide is the ends of task.status and how far ingest has come.
type tide struct {
	reached bool
	err     error
}

func (t *tide) StatusEnds(context.Context) (map[int]kafka.Range, error) {
	return map[int]kafka.Range{0: {End: 5}}, t.err
}
func (t *tide) Reached(map[int]kafka.Range) bool { return t.reached }

type lease struct{ over bool }

func (l *lease) Term() int64 { return 1 }
func (l *lease) Valid() bool { return !l.over }

type bundle struct {
	store    *memory.Store
	registry *registrymemory.Registry
	fleet    *fleet.Fleet
	wire     *wire
	tide     *tide
	lease    *lease
	clock    *clocktest.Fake
	room     int
	m        *monitor.Monitor
	counter  int64
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{
		store: memory.New(),
		fleet: fleet.New(fleet.Config{GiveAwayAfter: giveAway, StaleAfter: 3 * time.Second, Protocol: 1}),
		wire:  &wire{}, tide: &tide{reached: true}, lease: &lease{},
		clock: clocktest.New(time.UnixMilli(1_700_000_000_000)),
	}
	b.registry = registrymemory.New(b.clock)
	b.m = monitor.New(monitor.Config{ResendAfter: resend, Compare: 5 * time.Second, Retention: time.Hour}, b.store, b.registry, b.fleet, b.wire,
		b.tide, b.tide, b.lease, b.clock, func() { b.room++ }, slog.New(slog.DiscardHandler))
	b.beat(t)
	b.prime(t)
	return b
}

func (b *bundle) prime(t *testing.T) {
	t.Helper()
	if err := b.m.Prime(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (b *bundle) beat(t *testing.T) {
	t.Helper()
	b.counter++
	err := b.registry.Beat(t.Context(), &registry.Node{ID: n1.Node, Incarnation: n1.Incarnation, Counter: b.counter, Mode: registry.ModeNode,
		State: registry.Online, Classes: []string{"a"}, Capacity: 10, Protocol: 1})
	if err != nil {
		t.Fatal(err)
	}
}

func (b *bundle) round(t *testing.T) (soon bool) {
	t.Helper()
	soon, err := b.m.Round(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return soon
}

// assigned stores a task, claims it for n1 in the store and, if the leader knows of it, in its picture.
func (b *bundle) assigned(t *testing.T, id string, known bool) task.Task {
	t.Helper()
	tk := task.Task{ID: id, ClassName: "a", Mode: task.ModePassive, LifecycleStatus: task.Created}
	if _, err := b.store.Create(t.Context(), []task.Task{tk}); err != nil {
		t.Fatal(err)
	}
	c := task.Claim(&tk, n1.Node, n1.Incarnation, "c-"+id, 1)
	b.apply(t, c)
	c.Apply(&tk)
	if known {
		b.fleet.Reserve([]fleet.Claim{{Key: n1, TaskID: id, Attempt: 1, ID: "c-" + id, Class: "a"}}, b.clock.Boot())
		b.fleet.Sent([]string{"c-" + id}, b.clock.Boot())
	}
	return tk
}

func (b *bundle) apply(t *testing.T, c task.Change) {
	t.Helper()
	if n, err := b.store.Apply(t.Context(), []task.Change{c}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
}

func (b *bundle) get(t *testing.T, id string) task.Task {
	t.Helper()
	list, err := b.store.Get(t.Context(), []string{id})
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	return list[0]
}

func started(tk *task.Task) task.Change {
	r := task.Report{ID: tk.ID, Attempt: tk.Attempt, ClaimID: tk.ClaimID, Kind: task.ReportStarted, StartedAt: 1}
	return r.Changes(1)[0]
}

// silence lets the wait for a silent node pass.
func (b *bundle) silence(t *testing.T) {
	t.Helper()
	b.round(t)
	b.clock.Advance(giveAway + time.Millisecond)
}

func TestTheWorkOfASilentNodeIsGivenAway(t *testing.T) {
	t.Parallel()
	b := setup(t)
	running, waiting := b.assigned(t, "running", true), b.assigned(t, "waiting", true)
	b.apply(t, started(&running))
	b.silence(t)
	b.round(t)
	for _, id := range []string{running.ID, waiting.ID} {
		if got := b.get(t, id); got.LifecycleStatus != task.Created || got.Executor != "" || got.Attempt != 1 || got.Failures != 0 {
			t.Errorf("%s: %+v, want it to wait again, nothing counted against it", id, got)
		}
	}
	if _, claims := b.fleet.Size(); claims != 0 || b.room == 0 {
		t.Errorf("%d claims held, dispatcher woken %d times", claims, b.room)
	}
	snap, _ := b.registry.Snapshot(t.Context())
	if len(snap.Nodes) != 0 {
		t.Error("the dead node keeps its id from its successor")
	}
}

func TestABeatingNodeKeepsItsWorkForAnHour(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tk := b.assigned(t, "t", true)
	b.apply(t, started(&tk))
	for range 3600 {
		b.beat(t)
		b.round(t)
		b.clock.Advance(time.Second)
	}
	if got := b.get(t, "t"); got.LifecycleStatus != task.Running || got.Attempt != 1 {
		t.Fatalf("%+v", got)
	}
}

func TestReportsUnderWayCountBeforeWorkIsGivenAway(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tk := b.assigned(t, "t", true)
	b.silence(t)
	b.tide.reached = false
	if !b.round(t) {
		t.Error("the next round does not come soon though one waits for ingest")
	}
	if got := b.get(t, "t"); got.LifecycleStatus != task.Assigning {
		t.Fatalf("given away before ingest had read what the node said: %s", got.LifecycleStatus)
	}
	// Ingest takes in the node's last word: it had finished.
	r := task.Report{ID: tk.ID, Attempt: 1, ClaimID: tk.ClaimID, Kind: task.ReportFinished, FinishedAt: 1}
	b.apply(t, r.Changes(1)[0])
	b.fleet.Reported(n1, &r)
	b.tide.reached = true
	b.round(t)
	if got := b.get(t, "t"); got.LifecycleStatus != task.Finished {
		t.Fatalf("a finished task became %s", got.LifecycleStatus)
	}
}

func TestWithoutKnowingTheEndsNothingIsGivenAway(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.assigned(t, "t", true)
	b.silence(t)
	b.tide.err = errors.New("kafka down")
	if _, err := b.m.Round(t.Context()); err == nil {
		t.Error("no error")
	}
	if got := b.get(t, "t"); got.LifecycleStatus != task.Assigning {
		t.Fatalf("task is %s", got.LifecycleStatus)
	}
}

func TestAfterItsLeaseALeaderTakesNothingBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.assigned(t, "t", true)
	b.silence(t)
	b.lease.over = true
	b.round(t)
	if got := b.get(t, "t"); got.LifecycleStatus != task.Assigning {
		t.Fatalf("task is %s", got.LifecycleStatus)
	}
}

func TestACancelledTaskOfADeadNodeEnds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tk := b.assigned(t, "t", true)
	b.apply(t, started(&tk))
	tk = b.get(t, "t")
	c, _ := task.Cancel(&tk, 1)
	b.apply(t, c)
	b.silence(t)
	b.round(t)
	if got := b.get(t, "t"); got.LifecycleStatus != task.Cancelled {
		t.Fatalf("task is %s, want Cancelled", got.LifecycleStatus)
	}
}

func TestS3_AClaimThatWasNeverPublishedIsSent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tk := b.assigned(t, "t", false) // the leader died between the claim and the publish; this one does not know of it
	b.clock.Advance(5 * time.Second)
	b.beat(t)
	b.round(t)
	if !slices.Equal(b.wire.tasks, []string{tk.ClaimID}) {
		t.Fatalf("sent %v, want the same claim %s", b.wire.tasks, tk.ClaimID)
	}
	b.round(t)
	if len(b.wire.tasks) != 1 {
		t.Error("sent again at once")
	}
	b.clock.Advance(resend)
	b.beat(t)
	b.round(t)
	if len(b.wire.tasks) != 2 {
		t.Errorf("sent %d times after another %s without a word, want 2", len(b.wire.tasks), resend)
	}
	b.fleet.Reported(n1, &task.Report{ID: "t", ClaimID: tk.ClaimID, Kind: task.ReportStarted})
	b.clock.Advance(resend)
	b.beat(t)
	b.round(t)
	if len(b.wire.tasks) != 2 {
		t.Error("sent again though the node has reported it")
	}
}

func TestAClaimThatWasNeverWrittenIsForgotten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.store.Create(t.Context(), []task.Task{{ID: "t", ClassName: "a", Mode: task.ModePassive, LifecycleStatus: task.Created}}); err != nil {
		t.Fatal(err)
	}
	b.fleet.Reserve([]fleet.Claim{{Key: n1, TaskID: "t", Attempt: 1, ID: "lost"}}, b.clock.Boot())
	b.fleet.Sent([]string{"lost"}, b.clock.Boot())
	b.clock.Advance(resend)
	b.beat(t)
	b.round(t)
	if _, claims := b.fleet.Size(); claims != 0 || len(b.wire.tasks) != 0 || b.room == 0 {
		t.Fatalf("%d claims held, sent %v", claims, b.wire.tasks)
	}
}

// A claim that fits into no event cannot be sent again: that is neither a failure of the round nor the silence of its node.
func TestANodeIsNotMuteForWhatCannotBeSent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.assigned(t, "t", true)
	b.wire.never = errors.New("too large")
	for range 10 {
		b.clock.Advance(resend)
		b.beat(t)
		b.round(t)
	}
	if a, aside := b.fleet.IsAside(n1.Node, b.clock.Boot()); aside || !b.takes() {
		t.Errorf("its node takes no work: %+v", a)
	}
	if b.get(t, "t").LifecycleStatus != task.Assigning {
		t.Error("it is taken from its node, which may have it")
	}
}

func TestClaimsAreSentAgainOnlyWhenIngestHasCaughtUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.assigned(t, "t", true)
	b.clock.Advance(resend)
	b.beat(t)
	b.tide.reached = false
	b.round(t)
	if len(b.wire.tasks) != 0 {
		t.Fatal("sent again though a report may be under way")
	}
	b.tide.reached = true
	b.round(t)
	if len(b.wire.tasks) != 1 {
		t.Fatal("not sent again")
	}
}

func TestRedisDownStopsOnlyWhatNeedsIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tk := b.assigned(t, "t", true)
	c, _ := task.Cancel(&tk, 1)
	b.apply(t, c)
	b.registry.SetDown(true)
	b.clock.Advance(giveAway + resend)
	if _, err := b.m.Round(t.Context()); !errors.Is(err, registry.ErrUnavailable) {
		t.Fatalf("error %v", err)
	}
	if len(b.wire.commands) != 1 || len(b.wire.tasks) != 1 {
		t.Errorf("%d commands, %d claims sent again, want 1 of each", len(b.wire.commands), len(b.wire.tasks))
	}
	b.registry.SetDown(false)
	b.round(t)
	if got := b.get(t, "t"); got.LifecycleStatus != task.Assigning {
		t.Fatalf("Redis came back and the task is %s at once", got.LifecycleStatus)
	}
}

func TestEndedTasksAreRemovedAfterTheirRetention(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var page []task.Task
	for i := range store.MaxBatch {
		page = append(page, task.Task{ID: "old-" + string(rune('a'+i%26)) + time.Duration(i).String(), Mode: task.ModePassive, LifecycleStatus: task.Finished, UpdateDateTime: 1})
	}
	if _, err := b.store.Create(t.Context(), page); err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.Create(t.Context(), []task.Task{{ID: "young", Mode: task.ModePassive, LifecycleStatus: task.Finished, UpdateDateTime: b.clock.Now().UnixMilli()}}); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(time.Minute)
	b.beat(t)
	b.round(t)
	b.round(t)
	counts, _ := b.store.Counts(t.Context())
	if counts[task.Finished] != 1 {
		t.Fatalf("%d ended tasks are left, want the young one", counts[task.Finished])
	}
}

func TestRunLooksAtOnceWhenItIsTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tk := b.assigned(t, "t", true)
	ctx, cancel := context.WithCancel(t.Context())
	nodes, wishes, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() { defer close(done); b.m.Run(ctx, nodes, wishes, time.Hour) }()
	nodes <- struct{}{}
	c, _ := task.Cancel(&tk, 1)
	b.apply(t, c)
	wishes <- struct{}{} // taken when the round before it is over
	b.clock.BlockUntil(2)
	cancel()
	<-done
	if len(b.wire.commands) == 0 {
		t.Error("the wish was not passed on")
	}
}
