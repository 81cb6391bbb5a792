package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/controller/api"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestPausesAndLimitsAreStored(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.disp.set = store.Dispatcher{Pools: map[string]int{"gpu": 3}}
	for _, call := range []struct{ method, path, body string }{
		{http.MethodPost, "/api/system/dispatcher/pause", `{"className":"b"}`},
		{http.MethodPost, "/api/system/dispatcher/pause", `{"className":"a"}`},
		{http.MethodPost, "/api/system/dispatcher/pause", `{"className":"a"}`},
		{http.MethodPost, "/api/system/dispatcher/pause", `{"namespace":""}`},
		{http.MethodPost, "/api/system/dispatcher/pause", `{}`},
		{http.MethodPost, "/api/system/dispatcher/resume", `{"className":"b"}`},
		{http.MethodPut, "/api/system/limits/rate", `{"perSecond":2.5}`},
		{http.MethodPut, "/api/system/limits/classes/a", `{"perSecond":10,"burst":3}`},
		{http.MethodPut, "/api/system/limits/nodes/*", `{"perSecond":0.1}`},
		{http.MethodPut, "/api/system/limits/namespaces/-", `{"limit":5}`},
		{http.MethodPut, "/api/system/limits/namespaces/shop", `{"limit":0}`},
		{http.MethodDelete, "/api/system/limits/namespaces/shop", ""},
		{http.MethodPut, "/api/pools/cpu", `{"limit":7}`},
		{http.MethodDelete, "/api/pools/gpu", ""},
	} {
		if res := f.do(t, call.method, call.path, call.body); res.Code != http.StatusOK {
			t.Fatalf("%v: %d %s", call, res.Code, res.Body)
		}
	}
	want := store.Dispatcher{Version: 14, Paused: true, PausedClasses: []string{"a"}, PausedNamespaces: []string{""}, Rate: &store.Rate{PerSecond: 2.5, Burst: 3},
		ClassRates: map[string]store.Rate{"a": {PerSecond: 10, Burst: 3}}, NodeRates: map[string]store.Rate{"*": {PerSecond: 0.1, Burst: 1}},
		NamespaceLimits: map[string]int{"": 5}, Pools: map[string]int{"cpu": 7}}
	got, _ := json.Marshal(f.disp.set)
	if expected, _ := json.Marshal(want); string(got) != string(expected) {
		t.Errorf("stored\n%s, want\n%s", got, expected)
	}
	var shown client.Settings
	if err := json.Unmarshal(f.do(t, http.MethodGet, "/api/system/limits", "").Body.Bytes(), &shown); err != nil || !shown.Paused || shown.Pools["cpu"] != 7 {
		t.Errorf("%+v %v", shown, err)
	}
	f.disp.inUse = map[string]int{"cpu": 2}
	if res := f.do(t, http.MethodGet, "/api/pools", ""); !strings.Contains(res.Body.String(), `{"name":"cpu","limit":7,"inUse":2}`) {
		t.Error(res.Body)
	}
}

// Without a leader the limit of a pool is known, and its use is not: that is no 0.
func TestWithoutALeaderAPoolIsShownWithoutItsUse(t *testing.T) {
	t.Parallel()
	for _, call := range []struct{ method, path, body string }{
		{http.MethodGet, "/api/pools", ""}, {http.MethodGet, "/api/pools/gpu", ""}, {http.MethodPut, "/api/pools/gpu", `{"limit":3}`},
	} {
		res := newFixture(t).do(t, call.method, call.path, call.body)
		if res.Code != http.StatusOK || !strings.Contains(res.Body.String(), `{"name":"gpu","limit":3}`) {
			t.Errorf("%s %s: %d %s", call.method, call.path, res.Code, res.Body)
		}
	}
}

func TestBadSettingsAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{http.MethodPut, "/api/system/limits/rate", `{"perSecond":-1}`, 422, "perSecond"},
		{http.MethodPut, "/api/system/limits/rate", `{"perSecond":2000000}`, 422, "perSecond"},
		{http.MethodPut, "/api/system/limits/rate", `{"perSecond":1,"burst":-1}`, 422, "burst"},
		{http.MethodPut, "/api/system/limits/namespaces/a", `{"limit":-1}`, 422, "limit"},
		{http.MethodPut, "/api/pools/a", `{"limit":-5}`, 422, "limit"},
		{http.MethodPut, "/api/pools/a", `{"limit":20000000}`, 422, "limit"},
		{http.MethodPut, "/api/pools/a%00b", `{"limit":1}`, 422, "control characters"},
		{http.MethodPut, "/api/pools/" + strings.Repeat("p", 300), `{"limit":1}`, 422, "256 bytes"},
		{http.MethodDelete, "/api/pools/none", "", 404, "no pool"},
		{http.MethodGet, "/api/pools/none", "", 404, "no pool"},
		{http.MethodDelete, "/api/system/limits/classes/none", "", 404, `no rate of the class \"none\"`},
		{http.MethodGet, "/api/tasks/none/explain", "", 404, "no task"},
		{http.MethodPost, "/api/system/dispatcher/pause", `{"className":""}`, 422, "className"}, // not all classes
		{http.MethodPost, "/api/system/dispatcher/pause", `{"className":"` + strings.Repeat("c", 300) + `"}`, 422, "className"},
	} {
		f := newFixture(t)
		res := f.do(t, c.method, c.path, c.body)
		if res.Code != c.status || !strings.Contains(res.Body.String(), c.says) {
			t.Errorf("%s %.60s %.60s: %d %s, want %d and %q", c.method, c.path, c.body, res.Code, res.Body, c.status, c.says)
		}
		if f.disp.set.Version != 0 {
			t.Errorf("%s %.60s: something was stored", c.method, c.path)
		}
	}
	f := newFixture(t)
	f.disp.set.Pools = map[string]int{}
	for i := range store.MaxSettings {
		f.disp.set.Pools[fmt.Sprint(i)] = 1
	}
	if res := f.do(t, http.MethodPut, "/api/pools/more", `{"limit":1}`); res.Code != http.StatusUnprocessableEntity || !strings.Contains(res.Body.String(), "1000 at most") {
		t.Errorf("%d %s", res.Code, res.Body)
	}
}

func TestWithoutALeaderNobodyKnowsWhy(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.add(t, inState("t", task.Created))
	f.disp.err = &api.NoLeaderError{}
	for _, path := range []string{"/api/tasks/t/explain", "/api/system/pending"} {
		if res := f.do(t, http.MethodGet, path, ""); res.Code != http.StatusServiceUnavailable || !strings.Contains(res.Body.String(), "no controller leads") {
			t.Errorf("%s: %d %s", path, res.Code, res.Body)
		}
	}
}

func TestSubmitsAreRefusedWhileTooManyTasksWait(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(d *api.Deps) { d.MaxBacklog = 3 })
	submit := func(n int) int {
		return f.do(t, http.MethodPost, "/api/tasks/batch", `{"tasks":[`+strings.TrimSuffix(strings.Repeat(`{"className":"c"},`, n), ",")+`]}`).Code
	}
	got := []int{submit(2), submit(2), submit(1), submit(1)}
	if want := []int{200, 429, 200, 429}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	res := f.do(t, http.MethodPost, "/api/tasks", `{"className":"c"}`)
	if res.Code != http.StatusTooManyRequests || res.Header().Get("Retry-After") == "" || !strings.Contains(res.Body.String(), "MAX_BACKLOG") {
		t.Errorf("%d %v %s", res.Code, res.Header(), res.Body)
	}
	if counts, err := f.store.Counts(t.Context()); err != nil || counts[task.Created] != 3 {
		t.Errorf("%v %v", counts, err)
	}
}

func TestWhatATaskAsksOfItsNodeIsRead(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	res := f.do(t, http.MethodPost, "/api/tasks", `{"className":"c","labels":"zone=cn-north, gpu in (a100,h100),!spot","strategy":"least_loaded","namespace":"shop",
		"stickyKey":"s","antiAffinityKey":"a","slots":2,"concurrencyKey":"k","concurrencyLimit":3,"pool":"p"}`)
	var got task.Task
	if err := json.Unmarshal(res.Body.Bytes(), &got); err != nil || res.Code != http.StatusCreated {
		t.Fatalf("%d %s", res.Code, res.Body)
	}
	if got.Selector != "zone=cn-north, gpu in (a100,h100),!spot" || got.Strategy != "LEAST_TASKS" || got.Namespace != "shop" || got.StickyKey != "s" ||
		got.AntiAffinityKey != "a" || got.Slots != 2 || got.ConcurrencyKey != "k" || got.ConcurrencyLimit != 3 || got.Pool != "p" {
		t.Errorf("%+v", got)
	}
	res = f.do(t, http.MethodPost, "/api/tasks", `{"className":"c","labels":{"zone":"cn-north"},"strategy":"idle|spread:rack"}`)
	if err := json.Unmarshal(res.Body.Bytes(), &got); err != nil || got.Labels["zone"] != "cn-north" || got.Strategy != "IDLE|SPREAD:rack" {
		t.Errorf("%d %s", res.Code, res.Body)
	}
}

func TestC50_NonsenseAboutPlacementIsRefused(t *testing.T) {
	t.Parallel()
	many := make([]string, 1000)
	for i := range many {
		many[i] = fmt.Sprintf(`"k%d":"v"`, i)
	}
	for name, c := range map[string]struct{ member, says string }{
		"strategy":          {`"strategy":"fastest"`, "must be one of"},
		"selector":          {`"labels":"zone=a,gpu in a100"`, "byte 14"},
		"selector, where":   {`"labels":"zone=a,gpu in a100"`, `"location":"body.labels"`},
		"many labels":       {`"labels":{` + strings.Join(many, ",") + `}`, "more than 64"},
		"a long label":      {`"labels":{"a":"` + strings.Repeat("x", 10<<10) + `"}`, "63 at most"},
		"a long selector":   {`"labels":"` + strings.Repeat("x", 10<<10) + `"`, "4096 at most"},
		"labels of a kind":  {`"labels":[1]`, "must be a selector"},
		"label of a kind":   {`"labels":{"a":1}`, "must be a string"},
		"slots":             {`"slots":-1`, "0 (one) to 1000000"},
		"many slots":        {`"slots":1000001`, "0 (one) to 1000000"},
		"half a slot":       {`"slots":1.5`, "whole number"},
		"concurrency limit": {`"concurrencyLimit":-3`, "0 (one)"},
		"a long key":        {`"concurrencyKey":"` + strings.Repeat("k", 300) + `"`, "at most 256"},
		"shards":            {`"shards":1000000`, "unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			res := f.do(t, http.MethodPost, "/api/tasks", `{"className":"c",`+c.member+`}`)
			if res.Code != http.StatusUnprocessableEntity || !strings.Contains(res.Body.String(), c.says) || res.Body.Len() > 4096 {
				t.Errorf("%d %.500s, want 422 and %q", res.Code, res.Body, c.says)
			}
		})
	}
}
