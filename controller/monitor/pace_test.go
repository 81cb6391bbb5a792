package monitor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/monitor"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/node/nodetest"
	"github.com/skalds-go/skalds/pkg/loop"
	"github.com/skalds-go/skalds/pkg/registry"
	registrymemory "github.com/skalds-go/skalds/pkg/registry/memory"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/store/memory"
	"github.com/skalds-go/skalds/pkg/task"
)

// counting counts what is asked of a registry and of Kafka.
type counting struct {
	*registrymemory.Registry
	snapshots, ends atomic.Int64
}

func (c *counting) Snapshot(ctx context.Context) (registry.Snapshot, error) {
	c.snapshots.Add(1)
	return c.Registry.Snapshot(ctx)
}

func (c *counting) StatusEnds(context.Context) (map[int]kafka.Range, error) {
	c.ends.Add(1)
	return map[int]kafka.Range{0: {End: 5}}, nil
}

// While a reassignment waits for ingest, which stands still, or for the registry, which is down, the rounds do not
// follow each other as fast as they can: a snapshot of 10,000 nodes is not cheap.
func TestWaitingForIngestIsNotBusy(t *testing.T) {
	t.Parallel()
	for name, down := range map[string]bool{"ingest stands still": false, "and the registry is down": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				clock := nodetest.NewClock()
				reg := &counting{Registry: registrymemory.New(clock)}
				f := fleet.New(fleet.Config{LostTimeout: lostTimeout, StaleAfter: 3 * time.Second, Protocol: 1})
				m := monitor.New(monitor.Config{ResendAfter: resend, Compare: 5 * time.Second, Retention: time.Hour}, memory.New(), reg, f, &wire{},
					reg, &tide{}, &lease{}, clock, func() {}, slog.New(slog.DiscardHandler))
				f.Reserve([]fleet.Claim{{Key: n1, TaskID: "t", Attempt: 1, ID: "c", Class: "a"}}, clock.Boot()) // of a node that was never seen
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					loop.NewRunner(clock, slog.New(slog.DiscardHandler)).Run(ctx, m.Loop(nil, nil, time.Second))
				}()
				<-time.After(20 * time.Second)
				reg.SetDown(down)
				before := reg.snapshots.Load()
				<-time.After(60 * time.Second)
				if n := reg.snapshots.Load() - before; n < 30 || n > 90 {
					t.Errorf("%d rounds in a minute", n)
				}
				cancel()
				<-done
			})
		})
	}
}

// When many nodes are gone at once, the ends of task.status are asked for once a round.
func TestTheEndsAreAskedForOnceForAllLostNodes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	reg := &counting{Registry: b.registry}
	m := monitor.New(monitor.Config{ResendAfter: resend, Compare: time.Hour, Retention: time.Hour}, b.store, reg, b.fleet, b.wire,
		reg, b.tide, b.lease, b.clock, func() {}, slog.New(slog.DiscardHandler))
	var claims []fleet.Claim
	for i := range 100 {
		claims = append(claims, fleet.Claim{Key: fleet.Key{Node: fmt.Sprint("n", i), Incarnation: "x"}, TaskID: "t", Attempt: 1, ID: fmt.Sprint("c", i)})
	}
	b.fleet.Reserve(claims, b.clock.Boot())
	for range 2 {
		if _, err := m.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.clock.Advance(lostTimeout + time.Second)
	}
	if n := reg.ends.Load(); n > 2 {
		t.Errorf("asked %d times in two rounds", n)
	}
}

// refusing is a store that will never take a change of some tasks.
type refusing struct {
	*memory.Store
	ids []string
}

func (r *refusing) Apply(ctx context.Context, changes []task.Change) (int, error) {
	rest := slices.DeleteFunc(slices.Clone(changes), func(c task.Change) bool { return slices.Contains(r.ids, c.ID) })
	n, err := r.Store.Apply(ctx, rest)
	if err == nil && len(rest) < len(changes) {
		err = errors.New("refused for good")
	}
	return n, err
}

// A node whose task cannot be taken back does not keep the work of others from being reassigned.
func TestANodeWhoseTaskCannotBeTakenBackHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := &refusing{Store: b.store}
	m := monitor.New(monitor.Config{ResendAfter: resend, Compare: time.Hour, Retention: time.Hour}, r, b.registry, b.fleet, b.wire,
		b.tide, b.tide, b.lease, b.clock, func() {}, slog.New(slog.DiscardHandler))
	for i := range 20 {
		id := fmt.Sprint("t", i)
		k := fleet.Key{Node: fmt.Sprint("gone", i), Incarnation: "x"}
		tk := task.Task{ID: id, ClassName: "a", Mode: task.ModePassive, LifecycleStatus: task.Created}
		if _, err := b.store.Create(t.Context(), []task.Task{tk}); err != nil {
			t.Fatal(err)
		}
		b.apply(t, task.Claim(&tk, k.Node, k.Incarnation, "c-"+id, 1))
		b.fleet.Reserve([]fleet.Claim{{Key: k, TaskID: id, Attempt: 1, ID: "c-" + id, Class: "a"}}, b.clock.Boot())
		b.fleet.Sent([]string{"c-" + id}, b.clock.Boot())
		if i%2 == 0 {
			r.ids = append(r.ids, id)
		}
	}
	_, _ = m.Round(t.Context())
	b.clock.Advance(lostTimeout + time.Second)
	if _, err := m.Round(t.Context()); err == nil {
		t.Error("no error")
	}
	for i := range 20 {
		want := task.Created
		if i%2 == 0 {
			want = task.Assigning
		}
		if got := b.get(t, fmt.Sprint("t", i)); got.LifecycleStatus != want {
			t.Errorf("task %d is %s, want %s", i, got.LifecycleStatus, want)
		}
	}
}

// An edge node runs its own tasks (mode Active): the controller does not take them away, whether or not it knows the
// node.
func TestAnEdgeNodesOwnTasksAreLeftAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	own := task.Task{ID: "own", ClassName: "a", Mode: task.ModeActive, LifecycleStatus: task.Running, Executor: "edge-1"}
	if _, err := b.store.Create(t.Context(), []task.Task{own}); err != nil {
		t.Fatal(err)
	}
	for range 60 {
		b.beat(t)
		b.clock.Advance(time.Second)
		b.round(t)
	}
	if got := b.get(t, "own"); got.LifecycleStatus != task.Running || got.Executor != "edge-1" {
		t.Errorf("it is %s on %q", got.LifecycleStatus, got.Executor)
	}
}

// ordered is a store that shows requests in the order of their ids, as an index does.
type ordered struct{ *memory.Store }

func (o *ordered) Desired(ctx context.Context, limit int) ([]task.Task, error) {
	var all []task.Task
	err := o.Active(ctx, func(t *task.Task) error {
		if t.Desired != "" {
			all = append(all, *t)
		}
		return nil
	})
	slices.SortFunc(all, func(a, b task.Task) int { return strings.Compare(a.ID, b.ID) })
	return all[:min(limit, len(all))], err
}

// Requests that nobody carries out, such as those for handlers that do not stop, do not hide others.
func TestManyRequestsHideNone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const n = store.MaxBatch + 500
	for i := range n {
		tk := b.assigned(t, fmt.Sprintf("t%05d", i), false)
		c, _ := task.Cancel(&tk, 1)
		b.apply(t, c)
	}
	m := monitor.New(monitor.Config{ResendAfter: time.Hour, Compare: 5 * time.Second, Retention: time.Hour}, &ordered{b.store}, b.registry, b.fleet,
		b.wire, b.tide, b.tide, b.lease, b.clock, func() {}, slog.New(slog.DiscardHandler))
	told := map[string]bool{}
	for range 7 {
		if _, err := m.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, c := range b.wire.commands {
			told[c.ID] = true
		}
		b.beat(t)
		b.clock.Advance(time.Second)
	}
	if len(told) != n {
		t.Errorf("%d of %d requests were forwarded", len(told), n)
	}
}

// desiredReads counts the reads of desired states.
type desiredReads struct {
	*memory.Store
	n atomic.Int64
}

func (d *desiredReads) Desired(ctx context.Context, limit int) ([]task.Task, error) {
	d.n.Add(1)
	return d.Store.Desired(ctx, limit)
}

// While the registry is down every round fails. What people ask for does not wait for the next one.
func TestDesiredStatesDoNotWaitForARegistryThatIsDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		clock := nodetest.NewClock()
		reg := registrymemory.New(clock)
		reg.SetDown(true)
		s := &desiredReads{Store: memory.New()}
		f := fleet.New(fleet.Config{LostTimeout: time.Minute, StaleAfter: 3 * time.Second, Protocol: 1})
		m := monitor.New(monitor.Config{ResendAfter: resend, Compare: time.Hour, Retention: time.Hour}, s, reg, f, &wire{},
			&counting{Registry: reg}, &tide{}, &lease{}, clock, func() {}, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done, desired := make(chan struct{}), loop.NewWake()
		go func() {
			defer close(done)
			loop.NewRunner(clock, slog.New(slog.DiscardHandler)).Run(ctx, m.Loop(nil, desired, time.Hour))
		}()
		synctest.Wait()
		before := s.n.Load()
		desired.Signal()
		synctest.Wait()
		if s.n.Load() != before+1 {
			t.Error("desired states wait for the next round")
		}
		cancel()
		<-done
	})
}
