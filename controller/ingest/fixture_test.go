package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
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

func (s *shelf) Put(_ context.Context, r *kafka.Record, _ string, reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reason == nil {
		panic("no reason")
	}
	s.offsets = append(s.offsets, r.Offset)
}

// teller remembers what nodes were told.
type teller struct {
	told      chan transport.Acknowledgement
	confirmed chan transport.Confirmation
}

func (s *teller) Confirm(_ context.Context, _ int64, list []transport.Confirmation) error {
	for _, one := range list {
		s.confirmed <- one
	}
	return nil
}

func (s *teller) Acknowledge(_ context.Context, _ int64, list []transport.Acknowledgement) error {
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
		fleet:  fleet.New(fleet.Config{LostTimeout: time.Minute, StaleAfter: time.Hour, Protocol: 1}),
		shelf:  &shelf{},
		bus:    bustest.Skalds(2),
		teller: &teller{told: make(chan transport.Acknowledgement, 100), confirmed: make(chan transport.Confirmation, 100)},
		hooks:  make(map[string]int),
	}
	b.fleet.Observe(registry.Snapshot{RunID: "r", Nodes: []registry.Node{{ID: "n1", Incarnation: "n1-1", Counter: 1, Mode: registry.ModeNode,
		State: registry.Online, Classes: []string{"a"}, Capacity: 100, Protocol: 1}}}, 0, 0)
	count := func(name string) func() { return func() { b.hooks[name]++ } }
	retry := ingest.Retry{Policy: task.Policy{MaxAttempts: 2, Backoff: task.Backoff{BaseMs: 1000, Factor: 2, MaxMs: 5000}}, Jitter: func() float64 { return 0.5 }}
	b.ingest = ingest.New(retry, b.store, b.fleet, b.shelf, clock.System{}, ingest.Hooks{
		Stored: func() {}, Capacity: count("capacity"), Membership: count("membership"), Submitted: count("submitted"), Due: count("due"),
	},
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
