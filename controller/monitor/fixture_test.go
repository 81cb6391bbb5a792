package monitor_test

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/skalds-go/skalds/pkg/store/memory"
	"github.com/skalds-go/skalds/pkg/task"
)

const (
	lostTimeout = 8800 * time.Millisecond
	resend      = 2 * time.Second
)

var n1 = fleet.Key{Node: "n1", Incarnation: "n1-1"}

// wire remembers what was sent.
type wire struct {
	tasks     []string
	commands  []events.Command
	drains    []bool
	fenced    []fleet.Target
	announced []int
	silent    bool // announcements do not arrive
	nowhere   bool // nor is there a partition for them
	err       error
	never     error         // no task fits into an event
	refuse    string        // a command for this task is an error
	ordered   chan struct{} // receives after each order, unless it is nil
}

func (w *wire) Fence(_ context.Context, _ int64, list []fleet.Target) error {
	w.fenced = append(w.fenced, list...)
	return w.err
}

func (w *wire) Announce(_ context.Context, _ int64, partitions []int) []error {
	errs := make([]error, len(partitions))
	for i, p := range partitions {
		if w.nowhere {
			errs[i] = fmt.Errorf("%w: %w", kafka.ErrNotSent, kafka.ErrUnknownTopic)
			continue
		}
		if w.silent {
			errs[i] = errors.New("no leader")
			continue
		}
		w.announced = append(w.announced, p)
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

func (w *wire) Control(_ context.Context, _ int64, list []transport.Commands) error {
	if w.ordered != nil {
		defer func() { w.ordered <- struct{}{} }()
	}
	for _, o := range list {
		w.commands = append(w.commands, o.Commands...)
		if slices.ContainsFunc(o.Commands, func(c events.Command) bool { return w.refuse != "" && c.ID == w.refuse }) {
			return errors.New("refused")
		}
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
	capacity int
	m        *monitor.Monitor
	counter  int64
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{
		store: memory.New(),
		fleet: fleet.New(fleet.Config{LostTimeout: lostTimeout, StaleAfter: 3 * time.Second, Protocol: 1}),
		wire:  &wire{}, tide: &tide{reached: true}, lease: &lease{},
		clock: clocktest.New(time.UnixMilli(1_700_000_000_000)),
	}
	b.registry = registrymemory.New(b.clock)
	b.m = monitor.New(monitor.Config{ResendAfter: resend, Compare: 5 * time.Second, Retention: time.Hour}, b.store, b.registry, b.fleet, b.wire,
		b.tide, b.tide, b.lease, b.clock, func() { b.capacity++ }, slog.New(slog.DiscardHandler))
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
	err := b.registry.Heartbeat(t.Context(), &registry.Node{ID: n1.Node, Incarnation: n1.Incarnation, Counter: b.counter, Mode: registry.ModeNode,
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
	b.clock.Advance(lostTimeout + time.Millisecond)
}
