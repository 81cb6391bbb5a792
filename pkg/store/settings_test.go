package store_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/pkg/store"
)

func TestDispatcherCheck(t *testing.T) {
	t.Parallel()
	names := make([]string, store.MaxSettings+1)
	rates, limits := map[string]store.Rate{}, map[string]int{}
	for i := range names {
		names[i] = fmt.Sprint(i)
		rates[names[i]], limits[names[i]] = store.Rate{Burst: 1}, 0
	}
	one := func(r store.Rate) map[string]store.Rate { return map[string]store.Rate{"x": r} }
	long := strings.Repeat("x", store.MaxNameBytes+1)
	cases := []struct {
		name string
		d    store.Dispatcher
		want string // a part of the error; empty = none
	}{
		{"nothing", store.Dispatcher{}, ""},
		{"the least", store.Dispatcher{Rate: &store.Rate{Burst: 1}, Pools: map[string]int{"": 0}}, ""},
		{"the most", store.Dispatcher{Rate: &store.Rate{PerSecond: store.MaxRate, Burst: store.MaxRate}, Pools: map[string]int{long[1:]: store.MaxTasks}}, ""},
		{"as many as there may be", store.Dispatcher{PausedClasses: names[1:]}, ""},
		{"no burst", store.Dispatcher{Rate: &store.Rate{PerSecond: 1}}, "rate: burst is 0"},
		{"too large a burst", store.Dispatcher{Rate: &store.Rate{Burst: store.MaxRate + 1}}, "rate: burst is 1000001"},
		{"a negative rate", store.Dispatcher{ClassRates: one(store.Rate{PerSecond: -1, Burst: 1})}, "classRates.x: perSecond is -1"},
		{"too high a rate", store.Dispatcher{NodeRates: one(store.Rate{PerSecond: store.MaxRate + 1, Burst: 1})}, "nodeRates.x: perSecond is"},
		{"no number", store.Dispatcher{NodeRates: one(store.Rate{PerSecond: math.NaN(), Burst: 1})}, "nodeRates.x: perSecond is NaN"},
		{"without end", store.Dispatcher{NodeRates: one(store.Rate{PerSecond: math.Inf(1), Burst: 1})}, "nodeRates.x: perSecond is +Inf"},
		{"a negative limit", store.Dispatcher{NamespaceLimits: map[string]int{"n": -1}}, "namespaceLimits.n is -1"},
		{"too high a limit", store.Dispatcher{Pools: map[string]int{"p": store.MaxTasks + 1}}, "pools.p is 10000001"},
		{"a long name", store.Dispatcher{Pools: map[string]int{long: 1}}, "pools: "},
		{"a name that is not text", store.Dispatcher{PausedClasses: []string{"\xff"}}, "pausedClasses: "},
		{"two things", store.Dispatcher{Pools: map[string]int{"p": -1}, PausedNamespaces: []string{long}}, "pausedNamespaces: "},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if err := c.d.Check(); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v; want %q", err, c.want)
			}
		})
	}
	for _, d := range []store.Dispatcher{
		{PausedClasses: names}, {PausedNamespaces: names}, {ClassRates: rates}, {NodeRates: rates}, {NamespaceLimits: limits}, {Pools: limits},
	} {
		if err := d.Check(); !errors.Is(err, store.ErrTooMany) {
			t.Errorf("too many entries: error %v", err)
		}
	}
}

// TestDispatcherClone: every field comes along, and nothing is shared.
func TestDispatcherClone(t *testing.T) {
	t.Parallel()
	full := func() store.Dispatcher {
		return store.Dispatcher{Version: 3, Strategy: "s", Paused: true, PausedClasses: []string{"a"}, PausedNamespaces: []string{"a"}, Rate: &store.Rate{Burst: 1},
			ClassRates: map[string]store.Rate{"a": {}}, NodeRates: map[string]store.Rate{"a": {}}, NamespaceLimits: map[string]int{"a": 1}, Pools: map[string]int{"a": 1}}
	}
	d := full()
	v := reflect.ValueOf(d)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Fatalf("the test does not set %s", v.Type().Field(i).Name)
		}
	}
	c := d.Clone()
	if !reflect.DeepEqual(c, d) {
		t.Errorf("%+v; want %+v", c, d)
	}
	c.PausedClasses[0], c.PausedNamespaces[0], c.Rate.Burst, c.NamespaceLimits["b"], c.Pools["b"] = "b", "b", 2, 2, 2
	c.ClassRates["b"], c.NodeRates["b"] = store.Rate{}, store.Rate{}
	if want := full(); !reflect.DeepEqual(d, want) {
		t.Errorf("the copy shares memory: %+v", d)
	}
}
