package dispatcher_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/skalds-go/skalds/controller/fleet"
	"github.com/skalds-go/skalds/controller/transport"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// If every node waits for a token, a round that another signal started also returns when the next token comes.
func TestARoundInBetweenSaysWhenANodesTokenComes(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 100, "a"))
	b.d.Use(store.Dispatcher{NodeRates: map[string]store.Rate{"n1": {PerSecond: 2, Burst: 1}}})
	b.submit(t, "a", 10)
	b.round(t)
	b.clock.Advance(100 * time.Millisecond)
	out, err := b.d.Round(t.Context(), false)
	if err != nil || out.Placed != 0 || out.Next <= 0 || out.Next > 401*time.Millisecond {
		t.Errorf("%+v %v, want the rest of the half second", out, err)
	}
}

func TestOfARateOfZeroNothingStarts(t *testing.T) {
	t.Parallel()
	none, some := store.Rate{Burst: 1}, store.Rate{PerSecond: 10, Burst: 1}
	for name, set := range map[string]func(store.Rate) store.Dispatcher{
		"all": func(r store.Rate) store.Dispatcher { return store.Dispatcher{Rate: &r} },
		"class": func(r store.Rate) store.Dispatcher {
			return store.Dispatcher{ClassRates: map[string]store.Rate{"a": r}}
		},
		"node": func(r store.Rate) store.Dispatcher {
			return store.Dispatcher{NodeRates: map[string]store.Rate{"n1": r}}
		},
		"any node": func(r store.Rate) store.Dispatcher {
			return store.Dispatcher{NodeRates: map[string]store.Rate{store.AnyNode: r}}
		},
		"any class": func(r store.Rate) store.Dispatcher {
			return store.Dispatcher{ClassRates: map[string]store.Rate{store.AnyNode: r}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, node("n1", 100, "a"))
			b.submit(t, "a", 10)
			for _, step := range []struct {
				rate store.Rate
				want int
			}{{none, 0}, {some, 1}, {none, 0}} {
				b.d.Use(set(step.rate))
				b.clock.Advance(time.Second)
				if out := b.round(t); out.Placed != step.want || step.want == 0 && out.Next != 0 {
					t.Errorf("%+v at %+v, want %d placed", out, step.rate, step.want)
				}
			}
		})
	}
}

func TestRatesAreKeptAndSayWhenToLookAgain(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]store.Dispatcher{
		"all":       {Rate: &store.Rate{PerSecond: 2, Burst: 1}},
		"class":     {ClassRates: map[string]store.Rate{"a": {PerSecond: 2, Burst: 1}}},
		"node":      {NodeRates: map[string]store.Rate{"n1": {PerSecond: 2, Burst: 1}}},
		"any node":  {NodeRates: map[string]store.Rate{store.AnyNode: {PerSecond: 2, Burst: 1}}},
		"any class": {ClassRates: map[string]store.Rate{store.AnyNode: {PerSecond: 2, Burst: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, node("n1", 100, "a"))
			b.d.Use(set)
			b.submit(t, "a", 50)
			began := b.clock.Boot()
			placed := 0
			for b.clock.Boot()-began < 10*time.Second {
				out := b.round(t)
				placed += out.Placed
				if out.Next <= 0 || out.Next > 501*time.Millisecond {
					t.Fatalf("%+v, want when the next token comes", out)
				}
				b.clock.Advance(out.Next)
			}
			if placed < 20 || placed > 22 {
				t.Errorf("%d placed in 10 s at 2 a second", placed)
			}
		})
	}
}

// A task that waits for a token holds no permit, and a change of leader does not block its queue.
func TestC72_ATaskThatWaitsForATokenHoldsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 100, "a"))
	set := store.Dispatcher{ClassRates: map[string]store.Rate{"a": {PerSecond: 1, Burst: 1}}}
	b.d.Use(set)
	b.submit(t, "a", 30, key("k", 1))
	placed := 0
	for i := range 20 {
		if i == 10 { // another leader
			b.fleet = fleet.New(fleet.Config{LostTimeout: time.Minute, StaleAfter: time.Hour, Protocol: 1})
			b.fleet.Observe(registry.Snapshot{RunID: "r", Nodes: []registry.Node{node("n1", 100, "a")}}, b.clock.Boot(), b.clock.Boot())
			b.d = b.dispatcher("l2")
			b.d.Use(set)
		}
		placed += b.round(t).Placed
		if n := b.fleet.KeyCount("k"); n != 1 {
			t.Fatalf("after %d s %d of the key are on nodes", i, n)
		}
		for _, id := range b.running(t) {
			b.end(t, id)
		}
		if out := b.round(t); out.Placed != 0 {
			t.Fatalf("%+v without a token", out)
		}
		if b.fleet.KeyCount("k") != 0 {
			t.Fatal("a task that waits for a token holds its permit")
		}
		b.clock.Advance(time.Second)
	}
	if placed != 20 {
		t.Errorf("%d placed in 20 s at 1 a second", placed)
	}
}

// A round does not read more tasks than there are tokens for, whatever the capacity.
func TestARoundReadsWhatItHasTokensFor(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]store.Dispatcher{
		"all":   {Rate: &store.Rate{PerSecond: 10, Burst: 1}},
		"class": {ClassRates: map[string]store.Rate{"a": {PerSecond: 10, Burst: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, node("n1", 1000, "a"))
			b.d.Use(set)
			b.submit(t, "a", 500)
			b.round(t) // it learns the requirements of the queue
			b.store.read = 0
			for range 10 {
				b.clock.Advance(100 * time.Millisecond)
				if out := b.round(t); out.Placed != 1 {
					t.Fatalf("%+v", out)
				}
			}
			if b.store.read > 50 {
				t.Errorf("%d tasks were read to place 10", b.store.read)
			}
		})
	}
}

// A task that may start on its node spends a token. If it was certainly not sent, the token is returned.
func TestATaskThatIsNotSentReturnsItsTokens(t *testing.T) {
	t.Parallel()
	slow := store.Rate{PerSecond: 0.001, Burst: 2}
	for rate, set := range map[string]store.Dispatcher{
		"all":   {Rate: &slow},
		"class": {ClassRates: map[string]store.Rate{"a": slow}},
		"node":  {NodeRates: map[string]store.Rate{store.AnyNode: slow}},
	} {
		for name, c := range map[string]struct {
			fail   func(b *bundle) // makes the first task fail after it was picked
			tokens int             // that remain
		}{
			"lost to another change": {func(b *bundle) {
				b.store.rival = func(changes []task.Change) {
					b.store.rival = nil
					b.cancel(changes[0].ID)
				}
			}, 2},
			"lost when the bucket is full again": {func(b *bundle) {
				b.store.rival = func(changes []task.Change) {
					b.store.rival = nil
					b.cancel(changes[0].ID)
					b.clock.Advance(time.Hour)
				}
			}, 2},
			"not published":    {func(b *bundle) { b.wire.outcome, b.wire.err = transport.NotSent, errors.New("refused") }, 2},
			"may be published": {func(b *bundle) { b.wire.outcome, b.wire.err = transport.Unknown, errors.New("timed out") }, 1},
			"may be claimed":   {func(b *bundle) { b.store.after = store.ErrUnavailable }, 1},
		} {
			t.Run(rate+", "+name, func(t *testing.T) {
				t.Parallel()
				b := setup(t, node("n1", 100, "a"))
				b.d.Use(set)
				b.submit(t, "a", 1, named("first"))
				c.fail(b)
				if out, err := b.d.Round(t.Context(), true); err == nil && out.Placed != 0 && c.tokens == 2 {
					t.Fatalf("%+v: the first one was sent", out)
				}
				b.store.after, b.wire.outcome, b.wire.err = nil, transport.Sent, nil
				b.submit(t, "a", 5)
				n := node("n1", 100, "a")
				n.Counter = 2
				b.clock.Advance(time.Second)
				b.fleet.Observe(registry.Snapshot{RunID: "r", Nodes: []registry.Node{n}}, b.clock.Boot(), b.clock.Boot())
				if out := b.round(t); out.Placed != c.tokens {
					t.Errorf("%d of 5 started, want %d", out.Placed, c.tokens)
				}
			})
		}
	}
}

// A round goes by the time at which it began. A token that is returned in the middle of it makes no time count twice.
func TestATokenThatIsReturnedInARoundCountsNoTimeTwice(t *testing.T) {
	t.Parallel()
	b := setup(t, node("n1", 5000, "a"))
	b.d.Use(store.Dispatcher{Rate: &store.Rate{PerSecond: 10, Burst: store.MaxBatch}})
	b.submit(t, "a", 2000)
	b.store.rival = func(changes []task.Change) {
		b.store.rival = nil
		b.cancel(changes[0].ID)
		b.clock.Advance(10 * time.Second)
	}
	if out := b.round(t); out.Placed != store.MaxBatch+100 {
		t.Fatalf("%d started, want the burst and what came in 10 s", out.Placed)
	}
	if out := b.round(t); out.Placed != 0 {
		t.Errorf("%d more started at once", out.Placed)
	}
}

// cancel cancels a waiting task.
func (b *bundle) cancel(id string) {
	list, _ := b.store.Get(context.Background(), []string{id})
	c, _ := task.Cancel(&list[0], 1)
	_, _ = b.store.Store.Apply(context.Background(), []task.Change{c})
}
