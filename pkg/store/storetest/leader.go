package storetest

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/skalds-go/skalds/pkg/store"
)

var restCases = map[string]func(*testing.T, store.Store){
	"leader/nobody at first": func(t *testing.T, s store.Store) {
		leader(t, s, store.Leader{})
		swap(t, s, store.Leader{Holder: "a"}, store.Leader{Holder: "b"}, false)
		leader(t, s, store.Leader{})
	},
	"leader/taken, renewed, given up, taken over": func(t *testing.T, s store.Store) {
		a := store.Leader{Holder: "a", Address: "h:1", Term: 1, Counter: 1}
		swap(t, s, store.Leader{}, a, true)
		swap(t, s, store.Leader{}, a, false)
		renewed := a
		renewed.Counter = 2
		swap(t, s, a, renewed, true)
		swap(t, s, a, renewed, false)
		free := store.Leader{Term: 1, Counter: 3}
		swap(t, s, renewed, free, true)
		swap(t, s, free, store.Leader{Holder: "b", Term: 2, Counter: math.MaxInt64}, true)
		leader(t, s, store.Leader{Holder: "b", Term: 2, Counter: math.MaxInt64})
	},
	"leader/back to nobody, and from there": func(t *testing.T, s store.Store) {
		a := store.Leader{Holder: "a", Term: 1}
		swap(t, s, store.Leader{}, a, true)
		swap(t, s, a, store.Leader{}, true)
		leader(t, s, store.Leader{})
		swap(t, s, store.Leader{}, a, true)
		leader(t, s, a)
	},
	// A swap compares every field, and sets every field.
	"leader/every field counts": func(t *testing.T, s store.Store) {
		full := store.Leader{}
		v := reflect.ValueOf(&full).Elem()
		for i := range v.NumField() {
			set(v.Field(i), i+1)
		}
		swap(t, s, store.Leader{}, full, true)
		leader(t, s, full)
		for i := range v.NumField() {
			other := full
			set(reflect.ValueOf(&other).Elem().Field(i), 99)
			swap(t, s, other, store.Leader{}, false)
		}
		leader(t, s, full)
	},
	"leader/one of many wins": func(t *testing.T, s store.Store) {
		for term := range int64(5) {
			old, err := s.Leader(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			won := make(chan string, 8)
			for i := range 8 {
				wg.Go(func() {
					next := store.Leader{Holder: fmt.Sprintf("c%d", i), Term: term + 1}
					if ok, err := s.SwapLeader(t.Context(), old, next); err != nil {
						t.Errorf("swap: %v", err)
					} else if ok {
						won <- next.Holder
					}
				})
			}
			wg.Wait()
			if len(won) != 1 {
				t.Fatalf("term %d: %d won", term+1, len(won))
			}
			leader(t, s, store.Leader{Holder: <-won, Term: term + 1})
		}
	},
	"positions/each topic for itself, each partition for itself": func(t *testing.T, s store.Store) {
		positions(t, s, "a.b", nil)
		save := func(topic string, p map[int]store.Position) {
			t.Helper()
			if err := s.SavePositions(t.Context(), topic, p); err != nil {
				t.Fatalf("save: %v", err)
			}
		}
		first := map[int]store.Position{0: {Offset: 1, Check: math.MaxUint64}, 999: {Offset: math.MaxInt64, Check: 1}}
		save("a.b", first)
		save("$c", map[int]store.Position{0: {Offset: 7}})
		save("a.b", map[int]store.Position{1: {Offset: 5}, 0: {Offset: 2}})
		save("a.b", nil)
		positions(t, s, "a.b", map[int]store.Position{0: {Offset: 2}, 1: {Offset: 5}, 999: {Offset: math.MaxInt64, Check: 1}})
		positions(t, s, "$c", map[int]store.Position{0: {Offset: 7}})
		first[0] = store.Position{}
		got, err := s.Positions(t.Context(), "$c")
		if err != nil {
			t.Fatal(err)
		}
		got[0] = store.Position{Offset: 99}
		positions(t, s, "$c", map[int]store.Position{0: {Offset: 7}})
	},
	"settings/the nodes that are drained": func(t *testing.T, s store.Store) {
		drain := func(node string, draining bool) {
			t.Helper()
			if err := s.SetDraining(t.Context(), node, draining); err != nil {
				t.Fatal(err)
			}
		}
		drained := func(want ...string) {
			t.Helper()
			if got, err := s.Draining(t.Context()); err != nil || !slices.Equal(got, want) {
				t.Errorf("%v, error %v; want %v", got, err, want)
			}
		}
		drained()
		drain("none", false)
		drained()
		for _, id := range []string{"b", "a.$x:", "b", "ö"} {
			drain(id, true)
		}
		drained("a.$x:", "b", "ö")
		drain("b", false)
		drain("b", false)
		drained("a.$x:", "ö")
		change(t, s, store.Dispatcher{Strategy: "RANDOM"}, true)
		drained("a.$x:", "ö")
	},
	"settings/so many nodes are drained and no more": func(t *testing.T, s store.Store) {
		var group errgroup.Group
		group.SetLimit(64)
		for i := range store.MaxDraining {
			group.Go(func() error { return s.SetDraining(t.Context(), fmt.Sprintf("n%05d", i), true) })
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		if err := s.SetDraining(t.Context(), "one more", true); !errors.Is(err, store.ErrTooMany) || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("one more: %v", err)
		}
		if err := s.SetDraining(t.Context(), "n00007", true); err != nil {
			t.Errorf("one that is drained already: %v", err)
		}
		if got, err := s.Draining(t.Context()); err != nil || len(got) != store.MaxDraining {
			t.Errorf("%d are drained, error %v", len(got), err)
		}
	},
	"ended contexts, ping and close": func(t *testing.T, s store.Store) {
		if err := s.Ping(t.Context()); err != nil {
			t.Errorf("ping: %v", err)
		}
		ended := cancelled(t)
		calls := map[string]func() error{
			"ping":       func() error { return s.Ping(ended) },
			"counts":     func() error { _, err := s.Counts(ended); return err },
			"desired":    func() error { _, err := s.Desired(ended, 1); return err },
			"expire":     func() error { _, err := s.Expire(ended, 1, 1); return err },
			"leader":     func() error { _, err := s.Leader(ended); return err },
			"swap":       func() error { _, err := s.SwapLeader(ended, store.Leader{}, store.Leader{Term: 1}); return err },
			"positions":  func() error { _, err := s.Positions(ended, "t"); return err },
			"save":       func() error { return s.SavePositions(ended, "t", map[int]store.Position{0: {}}) },
			"dispatcher": func() error { _, err := s.Dispatcher(ended); return err },
			"draining":   func() error { _, err := s.Draining(ended); return err },
			"drain":      func() error { return s.SetDraining(ended, "n", true) },
			"settings":   func() error { _, err := s.SwapDispatcher(ended, store.Dispatcher{Strategy: "X"}); return err },
		}
		for name, call := range calls {
			if err := call(); err == nil {
				t.Errorf("%s: an ended context is no error", name)
			}
		}
		leader(t, s, store.Leader{})
		for range 2 {
			if err := s.Close(t.Context()); err != nil {
				t.Errorf("close: %v", err)
			}
		}
	},
}

func set(v reflect.Value, n int) {
	if v.Kind() == reflect.String {
		v.SetString(fmt.Sprintf("v%d", n))
		return
	}
	v.SetInt(int64(n))
}

func leader(t tester, s store.Store, want store.Leader) {
	t.Helper()
	if got, err := s.Leader(t.Context()); err != nil || got != want {
		t.Fatalf("leader %+v, error %v; want %+v", got, err, want)
	}
}

func swap(t tester, s store.Store, old, next store.Leader, want bool) {
	t.Helper()
	if ok, err := s.SwapLeader(t.Context(), old, next); err != nil || ok != want {
		t.Fatalf("swap %+v for %+v: %t, error %v", old, next, ok, err)
	}
}

func positions(t tester, s store.Store, topic string, want map[int]store.Position) {
	t.Helper()
	if got, err := s.Positions(t.Context(), topic); err != nil || !maps.Equal(got, want) {
		t.Errorf("positions of %s: %v, error %v; want %v", topic, got, err, want)
	}
}
