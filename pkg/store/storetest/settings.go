package storetest

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/skalds-go/skalds/pkg/store"
)

// settings checks the dispatcher's settings.
func settings(t tester, s store.Store, want store.Dispatcher) {
	t.Helper()
	if got, err := s.Dispatcher(t.Context()); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("settings %+v, error %v; want %+v", got, err, want)
	}
}

// change swaps the dispatcher's settings.
func change(t tester, s store.Store, next store.Dispatcher, want bool) {
	t.Helper()
	if ok, err := s.SwapDispatcher(t.Context(), next); err != nil || ok != want {
		t.Fatalf("swap for %+v: %t, error %v; want %t", next, ok, err, want)
	}
}

// everySetting has each of the settings, with names that are no easy keys.
func everySetting(version int64) store.Dispatcher {
	return store.Dispatcher{
		Version: version, Strategy: "RANDOM", Paused: true, PausedClasses: []string{"", "a.b", "é"}, PausedNamespaces: []string{"$x"},
		Rate: &store.Rate{Burst: 1}, ClassRates: map[string]store.Rate{"demo.echo": {PerSecond: 0.125, Burst: 7}, "a\x00\"b": {PerSecond: store.MaxRate, Burst: 1}},
		NodeRates: map[string]store.Rate{store.AnyNode: {PerSecond: 1e-9, Burst: store.MaxRate}}, NamespaceLimits: map[string]int{"": 0, "$n.1": store.MaxTasks},
		Pools: map[string]int{"gpu": 3},
	}
}

var settingsCases = map[string]func(*testing.T, store.Store){
	"settings/none at first": func(t *testing.T, s store.Store) {
		settings(t, s, store.Dispatcher{})
		change(t, s, store.Dispatcher{Version: 1, Strategy: "RANDOM"}, false)
		settings(t, s, store.Dispatcher{})
	},
	"settings/each of them comes back, and goes": func(t *testing.T, s store.Store) {
		change(t, s, everySetting(0), true)
		settings(t, s, everySetting(1))
		change(t, s, store.Dispatcher{Version: 1}, true)
		settings(t, s, store.Dispatcher{Version: 2})
	},
	"settings/only for the version that was read": func(t *testing.T, s store.Store) {
		change(t, s, store.Dispatcher{Strategy: "RANDOM"}, true)
		for _, version := range []int64{0, 2, -1} {
			change(t, s, store.Dispatcher{Version: version, Strategy: "ROUND_ROBIN"}, false)
		}
		settings(t, s, store.Dispatcher{Version: 1, Strategy: "RANDOM"})
		change(t, s, store.Dispatcher{Version: 1, Strategy: "ROUND_ROBIN"}, true)
		settings(t, s, store.Dispatcher{Version: 2, Strategy: "ROUND_ROBIN"})
	},
	"settings/in one form": func(t *testing.T, s store.Store) {
		change(t, s, store.Dispatcher{PausedClasses: []string{"b", "a", "b"}, PausedNamespaces: []string{}, ClassRates: map[string]store.Rate{}, Pools: map[string]int{}}, true)
		settings(t, s, store.Dispatcher{Version: 1, PausedClasses: []string{"a", "b"}})
	},
	"settings/what Check refuses is refused": func(t *testing.T, s store.Store) {
		if ok, err := s.SwapDispatcher(t.Context(), store.Dispatcher{Pools: map[string]int{"gpu": -1}}); ok || err == nil || !strings.Contains(err.Error(), "pools.gpu is -1") {
			t.Errorf("%t, error %v", ok, err)
		}
		settings(t, s, store.Dispatcher{})
	},
	"settings/memory is not shared": func(t *testing.T, s store.Store) {
		mine := everySetting(0)
		change(t, s, mine, true)
		for _, d := range []*store.Dispatcher{&mine, new(everySetting(1))} {
			if d != &mine {
				got, err := s.Dispatcher(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				*d = got
			}
			d.PausedClasses[0], d.PausedNamespaces[0], d.Rate.Burst, d.Pools["gpu"], d.NamespaceLimits["x"] = "zzz", "zzz", 99, 99, 99
			d.ClassRates["x"], d.NodeRates["x"] = store.Rate{Burst: 99}, store.Rate{Burst: 99}
			settings(t, s, everySetting(1))
		}
	},
	// Nobody's change gets lost: each of many writers adds its pool, however often others come first.
	"settings/many change them at once": func(t *testing.T, s store.Store) {
		const writers = 8
		var wg sync.WaitGroup
		var swaps atomic.Int64
		for i := range writers {
			wg.Go(func() {
				for {
					d, err := s.Dispatcher(t.Context())
					if err != nil {
						t.Errorf("read: %v", err)
						return
					}
					if d.Pools == nil {
						d.Pools = map[string]int{}
					}
					d.Pools[fmt.Sprintf("p%d", i)] = i
					ok, err := s.SwapDispatcher(t.Context(), d)
					if err != nil {
						t.Errorf("swap: %v", err)
						return
					}
					if ok {
						swaps.Add(1)
						return
					}
				}
			})
		}
		wg.Wait()
		got, err := s.Dispatcher(t.Context())
		if err != nil || swaps.Load() != writers || got.Version != writers || len(got.Pools) != writers {
			t.Errorf("after %d swaps: %+v, error %v", swaps.Load(), got, err)
		}
	},
}
