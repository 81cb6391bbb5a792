package election_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/skalds-go/skalds/controller/election"
	"github.com/skalds-go/skalds/pkg/clock/clocktest"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/store/memory"
)

const lease = 2 * time.Second

// began is the second of the epoch at which a test begins: the first term of a store that is new then.
const began = 1_700_000_000

// flaky is a store whose swaps can fail, before or after they had their effect.
type flaky struct {
	store.Leases
	before, after error
}

func (f *flaky) SwapLeader(ctx context.Context, old, next store.Leader) (bool, error) {
	if f.before != nil {
		return false, f.before
	}
	ok, err := f.Leases.SwapLeader(ctx, old, next)
	if f.after != nil {
		return false, f.after
	}
	return ok, err
}

type bundle struct {
	store *flaky
	clock *clocktest.Fake
}

func newBundle() *bundle {
	return &bundle{store: &flaky{Leases: memory.New()}, clock: clocktest.New(time.Unix(began, 0))}
}

func (b *bundle) contender(id, mode string, over ...string) *election.Elector {
	return election.New(election.Config{ID: id, Mode: mode, Over: over, Lease: lease}, b.store, b.clock)
}

// round makes a round that must not fail.
func round(t *testing.T, l *election.Elector) *election.Lease {
	t.Helper()
	got, err := l.Round(t.Context())
	if err != nil {
		t.Fatalf("round: %v", err)
	}
	return got
}

func TestOneLeads(t *testing.T) {
	t.Parallel()
	b := newBundle()
	a, c := b.contender("a", "DISPATCHER"), b.contender("c", "DISPATCHER")
	first := round(t, a)
	if first == nil || first.Term() != began {
		t.Fatalf("a: %+v, want term %d", first, began)
	}
	for range 20 { // ten seconds of renewals
		b.clock.Advance(lease / 4)
		if got := round(t, a); got != first || !got.Valid() {
			t.Fatal("a lost its leadership though it renewed")
		}
		if round(t, c) != nil {
			t.Fatal("two lead")
		}
	}
}

func TestAStandingCounterIsTakenAfterTheLease(t *testing.T) {
	t.Parallel()
	b := newBundle()
	a, c := b.contender("a", "DISPATCHER"), b.contender("c", "DISPATCHER")
	old := round(t, a)
	round(t, c)
	b.clock.Advance(lease * 3 / 4)
	if old.Valid() {
		t.Error("a trusts itself without a renewal for the whole of its trust")
	}
	b.clock.Advance(lease / 4)
	if round(t, c) != nil {
		t.Error("c took over before the lease was over")
	}
	b.clock.Advance(time.Millisecond)
	got := round(t, c)
	if got == nil || got.Term() != began+2 {
		t.Fatalf("c: %+v, want term %d", got, began+2)
	}
	if round(t, a) != nil {
		t.Error("a leads after c took over")
	}
}

func TestACleanStopIsTakenOverAtOnce(t *testing.T) {
	t.Parallel()
	b := newBundle()
	a, c := b.contender("a", "DISPATCHER"), b.contender("c", "DISPATCHER")
	old := round(t, a)
	round(t, c)
	if err := a.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if old.Valid() {
		t.Error("a released leadership is trusted")
	}
	if got := round(t, c); got == nil || got.Term() != began+1 {
		t.Fatalf("c: %+v, want term %d", got, began+1)
	}
	if err := a.Release(t.Context()); err != nil {
		t.Errorf("a second release: %v", err)
	}
}

func TestARenewalWhoseAnswerIsLostKeepsTheLeadership(t *testing.T) {
	t.Parallel()
	b := newBundle()
	a := b.contender("a", "DISPATCHER")
	first := round(t, a)
	b.clock.Advance(lease / 4)
	b.store.after = errors.New("answer lost")
	if _, err := a.Round(t.Context()); err == nil {
		t.Fatal("no error for a renewal without an answer")
	}
	b.store.after = nil
	b.clock.Advance(lease / 4)
	if got := round(t, a); got != first {
		t.Fatalf("the leadership changed to %+v", got)
	}
	b.clock.Advance(lease / 2)
	if !first.Valid() {
		t.Error("the renewal after the lost one does not count")
	}
}

func TestALeaderThatCannotRenewStopsAndComesBackWithAHigherTerm(t *testing.T) {
	t.Parallel()
	b := newBundle()
	a := b.contender("a", "DISPATCHER")
	first := round(t, a)
	b.store.before = errors.New("store down")
	for range 3 {
		b.clock.Advance(lease / 4)
		_, _ = a.Round(t.Context())
	}
	if first.Valid() {
		t.Error("still trusted")
	}
	b.store.before = nil
	got := round(t, a)
	if got == nil || got == first || got.Term() != began+1 {
		t.Fatalf("got %+v, want a new leadership of term %d", got, began+1)
	}
	if first.Valid() {
		t.Error("the old leadership came back to life")
	}
}

func TestTrustIsCountedFromTheSending(t *testing.T) {
	t.Parallel()
	b := newBundle()
	slow := &slowStore{Leases: b.store, clock: b.clock, by: lease / 2}
	a := election.New(election.Config{ID: "a", Lease: lease}, slow, b.clock)
	got, err := a.Round(t.Context())
	if err != nil || got == nil {
		t.Fatalf("%v %v", got, err)
	}
	if left := got.Remaining(); left != lease/4 {
		t.Errorf("trusted for %s more, want %s: a late answer does not stretch it", left, lease/4)
	}
}

// slowStore answers a swap late.
type slowStore struct {
	store.Leases
	clock *clocktest.Fake
	by    time.Duration
}

func (s *slowStore) SwapLeader(ctx context.Context, old, next store.Leader) (bool, error) {
	s.clock.Advance(s.by)
	return s.Leases.SwapLeader(ctx, old, next)
}

func TestOneThatDispatchesTakesOverFromOneThatMonitors(t *testing.T) {
	t.Parallel()
	b := newBundle()
	m, d := b.contender("m", "MONITOR"), b.contender("d", "DISPATCHER", "MONITOR")
	round(t, m)
	if got := round(t, d); got == nil || got.Term() != began+1 {
		t.Fatalf("d: %+v, want term %d", got, began+1)
	}
	if round(t, m) != nil {
		t.Error("m still leads")
	}
	if round(t, d) == nil {
		t.Error("d does not lead any more")
	}
}

// TestTermsGoOnInAnotherStore: the store is new, or an older one is back. Nodes that live on have seen the terms of the
// one before.
func TestTermsGoOnInAnotherStore(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		back store.Leader  // what the other store holds
		wall time.Duration // how far the second controller's clock is ahead
		same bool          // it is the same controller process, which has read the terms of the store before
		want int64
	}{
		"new":                                    {want: began + 60},
		"new, to a clock that is behind":         {wall: -time.Hour, want: began + 60 - 3600},
		"new, to a process that has seen both":   {same: true, wall: -time.Hour, want: began + 8},
		"older":                                  {back: store.Leader{Term: began + 3, Counter: 9}, want: began + 60},
		"older, to a clock that is behind":       {back: store.Leader{Term: began + 3, Counter: 9}, wall: -time.Hour, want: began + 4},
		"one that a clock far ahead has written": {back: store.Leader{Term: 2 * began, Counter: 9}, want: 2*began + 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBundle()
			a := b.contender("a", "DISPATCHER")
			for range 7 { // seven leaderships within a second
				round(t, a)
				if err := a.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got := round(t, a); got == nil || got.Term() != began+7 {
				t.Fatalf("%+v, want term %d", got, began+7)
			}
			b.clock.Advance(time.Minute)
			b.store.Leases = memory.New()
			if tt.back != (store.Leader{}) {
				if ok, err := b.store.SwapLeader(t.Context(), store.Leader{}, tt.back); !ok || err != nil {
					t.Fatal(ok, err)
				}
			}
			b.clock.StepWall(tt.wall)
			next := a
			if !tt.same {
				next = b.contender("b", "DISPATCHER")
			}
			if got := round(t, next); got == nil || got.Term() != tt.want {
				t.Fatalf("%+v, want term %d", got, tt.want)
			}
		})
	}
}
