package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skalds-go/skalds/controller/api"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// gate is passed by every call of a seam; its error is what the call gives instead of an answer.
type gate func(ctx context.Context) error

func open(context.Context) error { return nil }

func failing(err error) gate {
	return func(context.Context) error { return fmt.Errorf("dial: %w", err) }
}

// hanging accepts and never answers. It does not even know how long a call may take.
func hanging(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

// slow answers just before the store's or the registry's own time is over.
func slow(limit time.Duration) gate {
	return func(ctx context.Context) error {
		select {
		case <-time.After(limit - time.Millisecond):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// gatedTasks is a store behind a gate.
type gatedTasks struct {
	api.Tasks

	pass gate
}

func (g *gatedTasks) Create(ctx context.Context, tasks []task.Task) ([]store.CreateOutcome, error) {
	if err := g.pass(ctx); err != nil {
		return nil, err
	}
	return g.Tasks.Create(ctx, tasks)
}

func (g *gatedTasks) Apply(ctx context.Context, changes []task.Change) (int, error) {
	if err := g.pass(ctx); err != nil {
		return 0, err
	}
	return g.Tasks.Apply(ctx, changes)
}

func (g *gatedTasks) Get(ctx context.Context, ids []string) ([]task.Task, error) {
	if err := g.pass(ctx); err != nil {
		return nil, err
	}
	return g.Tasks.Get(ctx, ids)
}

func (g *gatedTasks) List(ctx context.Context, f store.Filter) (store.ListPage, error) {
	if err := g.pass(ctx); err != nil {
		return store.ListPage{}, err
	}
	return g.Tasks.List(ctx, f)
}

func (g *gatedTasks) Counts(ctx context.Context) (map[task.Status]int64, error) {
	if err := g.pass(ctx); err != nil {
		return nil, err
	}
	return g.Tasks.Counts(ctx)
}

func (g *gatedTasks) Purge(ctx context.Context, id string) (bool, error) {
	if err := g.pass(ctx); err != nil {
		return false, err
	}
	return g.Tasks.Purge(ctx, id)
}

// gatedNodes is a registry behind a gate.
type gatedNodes struct {
	api.Nodes

	pass gate
}

func (g *gatedNodes) Snapshot(ctx context.Context) (registry.Snapshot, error) {
	if err := g.pass(ctx); err != nil {
		return registry.Snapshot{}, err
	}
	return g.Nodes.Snapshot(ctx)
}

func (g *gatedNodes) Node(ctx context.Context, id string) (registry.Node, bool, error) {
	if err := g.pass(ctx); err != nil {
		return registry.Node{}, false, err
	}
	return g.Nodes.Node(ctx, id)
}

// gatedDispatcher stands on the store, too.
type gatedDispatcher struct {
	api.Backend

	pass gate
}

func (g *gatedDispatcher) Status(ctx context.Context) (client.Dispatcher, error) {
	if err := g.pass(ctx); err != nil {
		return client.Dispatcher{}, err
	}
	return g.Backend.Status(ctx)
}

func (g *gatedDispatcher) SetStrategy(ctx context.Context, strategy string) error {
	if err := g.pass(ctx); err != nil {
		return err
	}
	return g.Backend.SetStrategy(ctx, strategy)
}

func (g *gatedDispatcher) Explain(ctx context.Context, t *task.Task) (client.Explanation, error) {
	if err := g.pass(ctx); err != nil {
		return client.Explanation{}, err
	}
	return g.Backend.Explain(ctx, t)
}

func (g *gatedDispatcher) Pending(ctx context.Context) (client.Pending, error) {
	if err := g.pass(ctx); err != nil {
		return client.Pending{}, err
	}
	return g.Backend.Pending(ctx)
}

func (g *gatedDispatcher) Fleet(ctx context.Context) (client.Fleet, error) {
	if err := g.pass(ctx); err != nil {
		return client.Fleet{}, err
	}
	return g.Backend.Fleet(ctx)
}

func (g *gatedDispatcher) Settings(ctx context.Context) (store.Dispatcher, error) {
	if err := g.pass(ctx); err != nil {
		return store.Dispatcher{}, err
	}
	return g.Backend.Settings(ctx)
}

func (g *gatedDispatcher) Change(ctx context.Context, set func(*store.Dispatcher) error) (store.Dispatcher, error) {
	if err := g.pass(ctx); err != nil {
		return store.Dispatcher{}, err
	}
	return g.Backend.Change(ctx, set)
}

func (g *gatedDispatcher) SetDraining(ctx context.Context, node string, draining bool) error {
	if err := g.pass(ctx); err != nil {
		return err
	}
	return g.Backend.SetDraining(ctx, node, draining)
}

// What a call needs.
const (
	mongodb = "mongodb"
	redis   = "redis"
)

// calls has each call of the API, with what it needs.
var calls = []struct {
	method, path, body string
	route              string // where it is not path
	needs              []string
	waits              time.Duration // asked for by the call
}{
	{method: http.MethodPost, path: "/api/tasks", body: `{"className":"c"}`, needs: []string{mongodb}},
	{method: http.MethodPost, path: "/api/tasks/batch", body: `{"tasks":[{"className":"c"},{"className":"c"}]}`, needs: []string{mongodb}},
	{method: http.MethodPost, path: "/api/tasks/bulk", body: `{"action":"retry","all":true,"dryRun":true}`, needs: []string{mongodb}},
	{method: http.MethodGet, path: "/api/tasks", needs: []string{mongodb}},
	{method: http.MethodGet, path: "/api/tasks/t", route: "/api/tasks/{id}", needs: []string{mongodb}},
	{method: http.MethodGet, path: "/api/tasks/t?wait=20s", route: "/api/tasks/{id}", needs: []string{mongodb}, waits: 20 * time.Second},
	{method: http.MethodPut, path: "/api/tasks/t/status", body: `{"lifecycleStatus":"Paused"}`, route: "/api/tasks/{id}/status", needs: []string{mongodb}},
	{method: http.MethodPut, path: "/api/tasks/t/attachments", body: `7`, route: "/api/tasks/{id}/attachments", needs: []string{mongodb}},
	{method: http.MethodDelete, path: "/api/tasks/t", route: "/api/tasks/{id}", needs: []string{mongodb}},
	{method: http.MethodDelete, path: "/api/tasks/ended?purge=true", route: "/api/tasks/{id}", needs: []string{mongodb}},
	{method: http.MethodGet, path: "/api/skalds", needs: []string{redis}},
	{method: http.MethodGet, path: "/api/skalds/node-00000", route: "/api/skalds/{id}", needs: []string{redis}},
	{method: http.MethodPost, path: "/api/skalds/node-00000/drain", route: "/api/skalds/{id}/drain", needs: []string{redis, mongodb}},
	{method: http.MethodPost, path: "/api/skalds/node-00000/undrain", route: "/api/skalds/{id}/undrain", needs: []string{mongodb}},
	{method: http.MethodGet, path: "/api/system/dispatcher", needs: []string{mongodb}},
	{method: http.MethodPut, path: "/api/system/dispatcher", body: `{"strategy":"RANDOM"}`, needs: []string{mongodb}},
	{method: http.MethodGet, path: "/api/tasks/t/explain", route: "/api/tasks/{id}/explain", needs: []string{mongodb}},
	{method: http.MethodGet, path: "/api/system/pending", needs: []string{mongodb}},
	{method: http.MethodGet, path: "/api/system/fleet", needs: []string{mongodb}},
	{method: http.MethodPost, path: "/api/system/dispatcher/pause", body: `{}`, needs: []string{mongodb}},
	{method: http.MethodPost, path: "/api/system/dispatcher/resume", body: `{}`, needs: []string{mongodb}},
	{method: http.MethodGet, path: "/api/system/limits", needs: []string{mongodb}},
	{method: http.MethodPut, path: "/api/system/limits/rate", body: `{"perSecond":5}`, needs: []string{mongodb}},
	{method: http.MethodDelete, path: "/api/system/limits/rate", needs: []string{mongodb}},
	{method: http.MethodPut, path: "/api/system/limits/classes/c", body: `{"perSecond":5}`, route: "/api/system/limits/classes/{name}", needs: []string{mongodb}},
	{method: http.MethodPut, path: "/api/system/limits/nodes/n", body: `{"perSecond":5}`, route: "/api/system/limits/nodes/{name}", needs: []string{mongodb}},
	{method: http.MethodPut, path: "/api/system/limits/namespaces/n", body: `{"limit":5}`, route: "/api/system/limits/namespaces/{name}", needs: []string{mongodb}},
	{method: http.MethodDelete, path: "/api/system/limits/classes/c", route: "/api/system/limits/classes/{name}", needs: []string{mongodb}},
	{method: http.MethodDelete, path: "/api/system/limits/nodes/n", route: "/api/system/limits/nodes/{name}", needs: []string{mongodb}},
	{method: http.MethodDelete, path: "/api/system/limits/namespaces/n", route: "/api/system/limits/namespaces/{name}", needs: []string{mongodb}},
	{method: http.MethodGet, path: "/api/pools", needs: []string{mongodb}},
	{method: http.MethodGet, path: "/api/pools/gpu", route: "/api/pools/{name}", needs: []string{mongodb}},
	{method: http.MethodPut, path: "/api/pools/gpu", body: `{"limit":5}`, route: "/api/pools/{name}", needs: []string{mongodb}},
	{method: http.MethodDelete, path: "/api/pools/gpu", route: "/api/pools/{name}", needs: []string{mongodb}},
	{method: http.MethodGet, path: "/livez"},
	{method: http.MethodGet, path: "/readyz"}, // package controller says what that asks
	{method: http.MethodGet, path: "/metrics"},
	{method: http.MethodGet, path: "/api/docs"},
	{method: http.MethodGet, path: "/api/openapi.json"},
}

// A call that stands on something that is gone, or hangs, says so in time; every other call is answered as ever.
func TestEachCallNamesWhatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	const limit = 3 * store.OpTimeout
	for _, fault := range []struct {
		name, of     string
		tasks, nodes gate
	}{
		{"nothing", "", open, open},
		{"mongodb is gone", mongodb, failing(store.ErrUnavailable), open},
		{"mongodb hangs", mongodb, hanging, open},
		{"mongodb is slow", "", slow(store.OpTimeout), open},
		{"redis is gone", redis, open, failing(registry.ErrUnavailable)},
		{"redis hangs", redis, open, hanging},
		{"redis is slow", "", open, slow(2 * time.Second)},
	} {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, func(d *api.Deps) {
					d.Tasks, d.Nodes = &gatedTasks{d.Tasks, fault.tasks}, &gatedNodes{d.Nodes, fault.nodes}
					d.Backend = &gatedDispatcher{d.Backend, fault.tasks}
				})
				f.nodes.list = someNodes(1)
				f.add(t, inState("t", task.Created), inState("ended", task.Finished))
				for _, call := range calls { // in their order: what one changes, no later one needs
					name := call.method + " " + call.path
					*f.wakes = 0
					began := time.Now()
					res := f.do(t, call.method, call.path, call.body)
					if took := time.Since(began); took > limit+call.waits {
						t.Errorf("%s was answered after %s", name, took)
					}
					if fault.of != "" && slices.Contains(call.needs, fault.of) {
						wantUnavailable(t, name, res, fault.of)
						if *f.wakes != 0 {
							t.Errorf("%s: %d wakes", name, *f.wakes)
						}
					} else if res.Code >= http.StatusBadRequest {
						t.Errorf("%s: status %d: %s", name, res.Code, res.Body)
					}
				}
			})
		})
	}
}

// wantUnavailable checks that an answer says what is missing, and nothing else.
func wantUnavailable(t *testing.T, call string, res *httptest.ResponseRecorder, missing string) {
	t.Helper()
	if res.Code != http.StatusServiceUnavailable {
		t.Errorf("%s: status %d, want 503: %s", call, res.Code, res.Body)
		return
	}
	p := wantProblem(t, res, http.StatusServiceUnavailable, missing)
	for _, other := range []string{mongodb, redis, "kafka"} {
		if other != missing && strings.Contains(p.Detail, other) {
			t.Errorf("%s: %q names %s, which is there", call, p.Detail, other)
		}
	}
	if res.Header().Get("Retry-After") == "" {
		t.Errorf("%s: no Retry-After", call)
	}
}

func TestEachCallIsAmongThoseThatAreCutOff(t *testing.T) {
	t.Parallel()
	var doc struct {
		Paths map[string]map[string]any
	}
	if err := json.Unmarshal(newFixture(t).do(t, http.MethodGet, "/api/openapi.json", "").Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	for path, methods := range doc.Paths {
		for method := range methods {
			found := false
			for _, call := range calls {
				found = found || strings.EqualFold(call.method, method) && (call.route == path || call.path == path)
			}
			if !found {
				t.Errorf("%s %s is not in the table of calls", method, path)
			}
		}
	}
}

// A store other than MongoDB is called by its own name.
func TestTheStoreIsNamed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(d *api.Deps) {
		d.StoreName, d.Tasks = "sqlite", &gatedTasks{d.Tasks, failing(store.ErrUnavailable)}
	})
	p := wantProblem(t, f.do(t, http.MethodGet, "/api/tasks", ""), http.StatusServiceUnavailable, "sqlite")
	if strings.Contains(p.Detail, mongodb) {
		t.Error(p.Detail)
	}
}
