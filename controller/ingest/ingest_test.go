package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/ingest"
	"github.com/skalds-go/skalds/controller/transport"
	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/bustest"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/store/memory"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var n1 = fleet.Key{Node: "n1", Incarnation: "n1-1"}

// faulty is a store whose Apply can fail.
type faulty struct {
	*memory.Store
	mu      sync.Mutex
	fails   int
	refuses string // id of a task whose results it refuses
	deaf    bool   // it refuses everything
	hangs   bool   // it stores no positions, and says nothing
	largest int    // bytes of results in one call, at most
}

var errRefused = errors.New("refused for good")

func (f *faulty) Apply(ctx context.Context, changes []task.Change) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fails > 0 {
		f.fails--
		return 0, store.ErrUnavailable
	}
	bytes := 0
	for _, c := range changes {
		bytes += len(c.Result)
	}
	f.largest = max(f.largest, bytes)
	for _, c := range changes {
		if f.deaf || c.ID == f.refuses && c.Result != nil {
			return 0, errRefused
		}
	}
	return f.Store.Apply(ctx, changes)
}

func (f *faulty) SavePositions(ctx context.Context, topic string, at map[int]store.Position) error {
	if f.hangs {
		<-ctx.Done()
		return store.ErrUnavailable
	}
	return f.Store.SavePositions(ctx, topic, at)
}

// shelf remembers what was quarantined.
type shelf struct {
	mu      sync.Mutex
	offsets []int64
}

func (s *shelf) Quarantine(_ context.Context, r kafka.Record, _ string, reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reason == nil {
		panic("no reason")
	}
	s.offsets = append(s.offsets, r.Offset)
}

// teller remembers what nodes were told.
type teller struct {
	told      chan transport.Settlement
	confirmed chan transport.Confirmation
}

func (s *teller) Confirm(_ context.Context, _ int64, list []transport.Confirmation) error {
	for _, one := range list {
		s.confirmed <- one
	}
	return nil
}

func (s *teller) Settle(_ context.Context, _ int64, list []transport.Settlement) error {
	for _, one := range list {
		s.told <- one
	}
	return nil
}

type bundle struct {
	store  *faulty
	fleet  *fleet.Fleet
	shelf  *shelf
	bus    *bustest.Bus
	teller *teller
	hooks  map[string]int
	ingest *ingest.Ingest
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{
		store:  &faulty{Store: memory.New()},
		fleet:  fleet.New(fleet.Config{GiveAwayAfter: time.Minute, StaleAfter: time.Hour, Protocol: 1}),
		shelf:  &shelf{},
		bus:    bustest.Skalds(2),
		teller: &teller{told: make(chan transport.Settlement, 100), confirmed: make(chan transport.Confirmation, 100)},
		hooks:  make(map[string]int),
	}
	b.fleet.Observe(registry.Snapshot{RunID: "r", Nodes: []registry.Node{{ID: "n1", Incarnation: "n1-1", Counter: 1, Mode: registry.ModeNode,
		State: registry.Online, Classes: []string{"a"}, Capacity: 100, Protocol: 1}}}, 0, 0)
	count := func(name string) func() { return func() { b.hooks[name]++ } }
	retry := ingest.Retry{Policy: task.Policy{MaxAttempts: 2, Backoff: task.Backoff{BaseMs: 1000, Factor: 2, MaxMs: 5000}}, Jitter: func() float64 { return 0.5 }}
	b.ingest = ingest.New(retry, b.store, b.fleet, b.shelf, clock.System{}, ingest.Hooks{Again: func() {}, Room: count("room"), Nodes: count("nodes"), Tasks: count("tasks"), Times: count("times")},
		ingest.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
	return b
}

// assigned stores n tasks and claims them for n1.
func (b *bundle) assigned(t *testing.T, n int) []task.Task {
	t.Helper()
	tasks := make([]task.Task, n)
	for i := range tasks {
		tasks[i] = task.Task{ID: fmt.Sprintf("t%04d", i), ClassName: "a", Mode: task.ModePassive, LifecycleStatus: task.Created}
	}
	for page := range slices.Chunk(tasks, store.MaxBatch) {
		if _, err := b.store.Create(t.Context(), page); err != nil {
			t.Fatal(err)
		}
		var changes []task.Change
		for i := range page {
			c := task.Claim(&page[i], n1.Node, n1.Incarnation, "c-"+page[i].ID, 1)
			changes = append(changes, c)
			b.fleet.Reserve([]fleet.Claim{{Key: n1, TaskID: page[i].ID, Attempt: 1, ID: "c-" + page[i].ID, Class: "a"}}, 0)
			c.Apply(&page[i])
		}
		if k, err := b.store.Store.Apply(t.Context(), changes); err != nil || k != len(page) {
			t.Fatal(k, err)
		}
	}
	return tasks
}

func report(t *task.Task, kind task.Kind) task.Report {
	return task.Report{ID: t.ID, Attempt: t.Attempt, ClaimID: t.ClaimID, Kind: kind, StartedAt: 10, FinishedAt: 20}
}

func record(t *testing.T, s events.Status) kafka.Record {
	t.Helper()
	s.Node, s.Incarnation = n1.Node, n1.Incarnation
	values, err := events.EncodeStatus(s, events.DefaultMaxBytes)
	if err != nil || len(values) != 1 {
		t.Fatal(len(values), err)
	}
	return kafka.Record{Key: values[0].Key, Value: values[0].Value}
}

func (b *bundle) status(t *testing.T, id string) task.Status {
	t.Helper()
	list, err := b.store.Get(t.Context(), []string{id})
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	return list[0].LifecycleStatus
}

func TestStartAndEndFoldIntoOneUpdate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tasks := b.assigned(t, 1)
	started, finished := report(&tasks[0], task.ReportStarted), report(&tasks[0], task.ReportFinished)
	err := b.ingest.Round(t.Context(), []kafka.Record{
		record(t, events.Status{Reports: []task.Report{started}}), record(t, events.Status{Reports: []task.Report{finished}}),
	})
	if err != nil {
		t.Fatal(err)
	}
	list, _ := b.store.Get(t.Context(), []string{tasks[0].ID})
	if got := list[0]; got.LifecycleStatus != task.Finished || got.StartDateTime != 10 || got.FinishDateTime != 20 {
		t.Fatalf("task %+v", got)
	}
	if _, claims := b.fleet.Size(); claims != 0 || b.hooks["room"] != 1 {
		t.Errorf("%d claims held, told of room %d times", claims, b.hooks["room"])
	}
	told := b.ingest.TakeSettled()
	if len(told) != 1 || told[0].To.Key != n1 || !slices.Equal(told[0].Claims, []string{tasks[0].ClaimID}) {
		t.Errorf("settled %+v", told)
	}
	if again := b.ingest.TakeSettled(); len(again) != 0 {
		t.Errorf("settled twice: %+v", again)
	}
}

func TestAStaleReportChangesNothingAndIsSettled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tasks := b.assigned(t, 1)
	stale := report(&tasks[0], task.ReportFinished)
	stale.ClaimID = "older"
	if err := b.ingest.Round(t.Context(), []kafka.Record{record(t, events.Status{Reports: []task.Report{stale}})}); err != nil {
		t.Fatal(err)
	}
	if got := b.status(t, tasks[0].ID); got != task.Assigning {
		t.Errorf("a stale report made the task %s", got)
	}
	if told := b.ingest.TakeSettled(); len(told) != 1 || told[0].Claims[0] != "older" {
		t.Errorf("settled %+v: its node would report it for ever", told)
	}
}

func TestNothingIsSettledBeforeTheStoreHasIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tasks := b.assigned(t, 1)
	records := []kafka.Record{record(t, events.Status{Reports: []task.Report{report(&tasks[0], task.ReportFinished)}})}
	b.store.fails = 1
	if err := b.ingest.Round(t.Context(), records); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("error %v", err)
	}
	if told := b.ingest.TakeSettled(); len(told) != 0 {
		t.Fatalf("settled %+v though the store does not have it", told)
	}
	if err := b.ingest.Round(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	if told := b.ingest.TakeSettled(); len(told) != 1 || b.status(t, tasks[0].ID) != task.Finished {
		t.Fatalf("settled %+v, task %s", told, b.status(t, tasks[0].ID))
	}
}

func TestRejectedAndReleasedWaitAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tasks := b.assigned(t, 2)
	err := b.ingest.Round(t.Context(), []kafka.Record{record(t, events.Status{Reports: []task.Report{
		report(&tasks[0], task.ReportRejected), report(&tasks[1], task.ReportReleased),
	}})})
	if err != nil {
		t.Fatal(err)
	}
	for i := range tasks {
		list, _ := b.store.Get(t.Context(), []string{tasks[i].ID})
		if got := list[0]; got.LifecycleStatus != task.Created || got.Executor != "" || got.Attempt != 1 {
			t.Errorf("task %+v, want it to wait again with its fence", got)
		}
	}
}

func TestC80_OneBadEventAmongAThousandIsQuarantined(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tasks := b.assigned(t, 999)
	var records []kafka.Record
	for i := range tasks {
		r := record(t, events.Status{Reports: []task.Report{report(&tasks[i], task.ReportFinished)}})
		r.Offset = int64(len(records))
		records = append(records, r)
		if i == 500 {
			records = append(records, kafka.Record{Offset: int64(len(records)), Value: []byte(`{"version":1,"reports":[{"id":`)})
		}
	}
	if err := b.ingest.Round(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	counts, _ := b.store.Counts(t.Context())
	if counts[task.Finished] != 999 || !slices.Equal(b.shelf.offsets, []int64{501}) {
		t.Fatalf("%d finished, quarantined %v", counts[task.Finished], b.shelf.offsets)
	}
}

func TestAResultThatNoStoreHoldsFailsItsTaskAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tasks := b.assigned(t, 2)
	bad, good := report(&tasks[0], task.ReportFinished), report(&tasks[1], task.ReportFinished)
	bad.Result = []byte(`{"a\u0000b":1}`)
	never := 1
	set := task.Change{ID: bad.ID, From: task.Set(task.Assigning), Attempt: 1, ClaimID: bad.ClaimID, To: task.Assigning, Counts: &task.Counts{Failures: never}}
	if n, err := b.store.Store.Apply(t.Context(), []task.Change{set}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if err := b.ingest.Round(t.Context(), []kafka.Record{record(t, events.Status{Reports: []task.Report{bad, good}})}); err != nil {
		t.Fatal(err)
	}
	if x, y := b.status(t, tasks[0].ID), b.status(t, tasks[1].ID); x != task.Failed || y != task.Finished {
		t.Errorf("%s and %s, want Failed and Finished", x, y)
	}
}

func TestAReportThatTheStoreRefusesKeepsNoOtherFromBeingWritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tasks := b.assigned(t, 3)
	var reports []task.Report
	for i := range tasks {
		r := report(&tasks[i], task.ReportFinished)
		r.Result = []byte("1")
		reports = append(reports, r)
	}
	b.store.refuses = tasks[1].ID
	if err := b.ingest.Round(t.Context(), []kafka.Record{record(t, events.Status{Reports: reports})}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []task.Status{task.Finished, task.Failed, task.Finished} {
		if got := b.status(t, tasks[i].ID); got != want {
			t.Errorf("task %d is %s, want %s", i, got, want)
		}
	}
	if told := b.ingest.TakeSettled(); len(told) != 1 || len(told[0].Claims) != 3 {
		t.Errorf("settled %+v", told)
	}
}

func TestWhatTheStoreRefusesAltogetherIsNotSettled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tasks := b.assigned(t, 1)
	b.store.deaf = true // such as a user that may not write
	records := []kafka.Record{record(t, events.Status{Reports: []task.Report{report(&tasks[0], task.ReportFinished)}})}
	if err := b.ingest.Round(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	if told := b.ingest.TakeSettled(); len(told) != 0 {
		t.Fatalf("settled %+v: the report would be lost", told)
	}
	b.store.deaf = false
	if err := b.ingest.Round(t.Context(), records); err != nil || b.status(t, tasks[0].ID) != task.Finished {
		t.Fatal(err, b.status(t, tasks[0].ID))
	}
}

// A call of the store has a few seconds. With as many large results as reports fit into a page it would never be done, and tried for ever.
func TestOneCallOfTheStoreCarriesFewBytes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tasks := b.assigned(t, 100)
	large := []byte(`"` + strings.Repeat("x", 256<<10-2) + `"`)
	var records []kafka.Record
	for i := range tasks {
		r := report(&tasks[i], task.ReportFinished)
		r.Result = large
		records = append(records, record(t, events.Status{Reports: []task.Report{r}}))
	}
	if err := b.ingest.Round(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	counts, _ := b.store.Counts(t.Context())
	if counts[task.Finished] != 100 || b.store.largest > 4<<20 {
		t.Errorf("%d finished, %d bytes in one call", counts[task.Finished], b.store.largest)
	}
}

func TestAFailureIsTriedAgainUntilItsAttemptsAreUsedUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tasks := b.assigned(t, 2)
	again, never := report(&tasks[0], task.ReportFailed), report(&tasks[1], task.ReportFailed)
	again.Error, never.Permanent = "boom", true
	began := time.Now().UnixMilli()
	if err := b.ingest.Round(t.Context(), []kafka.Record{record(t, events.Status{Reports: []task.Report{again, never}})}); err != nil {
		t.Fatal(err)
	}
	list, _ := b.store.Get(t.Context(), []string{tasks[0].ID})
	if got := list[0]; got.LifecycleStatus != task.Created || got.Failures != 1 || got.NotBefore < began+500 || got.Executor != "" || got.Error != "boom" ||
		len(got.Attempts) != 1 || got.Attempts[0].Executor != "n1" {
		t.Errorf("%+v", got)
	}
	if got := b.status(t, tasks[1].ID); got != task.Failed {
		t.Errorf("one that says not to retry is %s", got)
	}
	if b.hooks["times"] != 1 {
		t.Errorf("told of times %d times", b.hooks["times"])
	}
	if told := b.ingest.TakeSettled(); len(told) != 1 || len(told[0].Claims) != 2 {
		t.Errorf("settled %+v", told)
	}
	// A copy of the report changes nothing.
	if err := b.ingest.Round(t.Context(), []kafka.Record{record(t, events.Status{Reports: []task.Report{again}})}); err != nil {
		t.Fatal(err)
	}
	if list, _ := b.store.Get(t.Context(), []string{tasks[0].ID}); list[0].Failures != 1 {
		t.Errorf("counted twice: %+v", list[0])
	}
}

func TestNotices(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, n := range []events.Notice{events.NoticeJoined, events.NoticeLeft, events.NoticeSubmitted, "of a later version"} {
		if err := b.ingest.Round(t.Context(), []kafka.Record{record(t, events.Status{Notice: n})}); err != nil {
			t.Fatal(err)
		}
	}
	if b.hooks["nodes"] != 2 || b.hooks["tasks"] != 1 || b.hooks["room"] != 0 {
		t.Errorf("hooks %v", b.hooks)
	}
	if nodes, _ := b.fleet.View(0); len(nodes) != 0 {
		t.Error("a node that left takes work")
	}
}

func (b *bundle) service() *ingest.Service {
	return ingest.NewService(b.ingest, b.teller, 1, b.bus, func(partition int, from kafka.Position) ingest.Reader {
		return b.bus.Reader(events.TopicStatus, partition, from)
	})
}

// run starts the service and gives what stops it.
func run(t *testing.T, s *ingest.Service) (stop func()) {
	t.Helper()
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	return func() { cancel(); <-done }
}

func TestTheServiceGoesOnWhereTheLastOneStopped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tasks := b.assigned(t, 3)
	publish := func(partition, i int) {
		r := record(t, events.Status{Reports: []task.Report{report(&tasks[i], task.ReportFinished)}})
		if err := b.bus.Publish(t.Context(), events.TopicStatus, partition, []kafka.Record{r}); err != nil {
			t.Fatal(err)
		}
	}
	publish(0, 0)
	publish(1, 1)
	b.store.fails = 2 // it tries until the store takes it
	s := b.service()
	stop := run(t, s)
	told := map[string]bool{}
	for len(told) < 2 {
		for _, c := range (<-b.teller.told).Claims {
			told[c] = true
		}
	}
	stop()
	ends, _ := b.bus.Offsets(t.Context(), events.TopicStatus, []int{0, 1})
	if !s.Progress().Reached(ends) {
		t.Error("the progress does not show what was taken in")
	}
	publish(0, 2)
	ends, _ = b.bus.Offsets(t.Context(), events.TopicStatus, []int{0, 1})
	if s.Progress().Reached(ends) {
		t.Error("the progress claims more than was taken in")
	}
	positions, err := b.store.Positions(t.Context(), events.TopicStatus)
	if err != nil || positions[0].Offset != 1 || positions[1].Offset != 1 {
		t.Fatalf("stored positions %v %v", positions, err)
	}
	stop = run(t, b.service())
	defer stop()
	if got := <-b.teller.told; !slices.Equal(got.Claims, []string{tasks[2].ClaimID}) {
		t.Errorf("settled %v, want only what came after the stored position", got.Claims)
	}
}
