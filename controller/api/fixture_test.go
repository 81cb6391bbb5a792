package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/skalds-go/skalds/controller/api"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/store/memory"
	"github.com/skalds-go/skalds/pkg/task"
)

// epoch is the time at which all tasks of these tests are made.
var epoch = time.UnixMilli(1_800_000_000_000)

// fixture is an API on a memory store, with doubles around it.
type fixture struct {
	deps    api.Deps
	store   *memory.Store
	nodes   *nodes
	disp    *dispatcher
	log     *bytes.Buffer
	wakes   *int
	handler http.Handler
}

func newFixture(t testing.TB, change ...func(*api.Deps)) *fixture {
	t.Helper()
	f := &fixture{store: memory.New(), nodes: &nodes{}, disp: &dispatcher{status: client.Dispatcher{Strategy: "LEAST_TASKS"}, set: store.Dispatcher{Pools: map[string]int{"gpu": 3},
		ClassRates: map[string]store.Rate{"c": {PerSecond: 1, Burst: 1}}, NodeRates: map[string]store.Rate{"n": {PerSecond: 1, Burst: 1}}, NamespaceLimits: map[string]int{"n": 1}}}, log: &bytes.Buffer{}, wakes: new(int)}
	n := 0
	f.deps = api.Deps{
		Tasks: f.store, Nodes: f.nodes, Backend: f.disp,
		Wake:  func() { *f.wakes++ },
		Now:   func() time.Time { return epoch },
		NewID: func() string { n++; return fmt.Sprintf("new-%04d", n) },
		Log:   slog.New(slog.NewTextHandler(f.log, nil)), Version: "test", Metrics: prometheus.NewRegistry(),
	}
	for _, c := range change {
		c(&f.deps)
	}
	f.handler = api.New(f.deps)
	t.Cleanup(func() {
		if err := f.store.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return f
}

// do makes one request. Headers are in pairs.
func (f *fixture) do(t testing.TB, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	var reader io.Reader = http.NoBody
	if body != "" {
		reader = strings.NewReader(body)
	}
	req := httptest.NewRequestWithContext(t.Context(), method, target, reader)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res := httptest.NewRecorder()
	f.handler.ServeHTTP(res, req)
	return res
}

// want checks the status and decodes the answer.
func want[T any](t testing.TB, res *httptest.ResponseRecorder, status int) T {
	t.Helper()
	var v T
	if res.Code != status {
		t.Fatalf("status %d, want %d: %.500s", res.Code, status, res.Body)
	}
	if status != http.StatusNoContent {
		if err := json.Unmarshal(res.Body.Bytes(), &v); err != nil {
			t.Fatalf("%v: %.500s", err, res.Body)
		}
	}
	return v
}

type problem struct {
	Title, Detail string
	Status        int
	Errors        []struct {
		Location, Message string
		Value             any
	}
	Task *task.Task
}

// wantProblem checks an answer that is an error: its status, its type, and that it names all of words.
func wantProblem(t testing.TB, res *httptest.ResponseRecorder, status int, words ...string) problem {
	t.Helper()
	p := want[problem](t, res, status)
	if got := res.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("content type %q", got)
	}
	if p.Status != status || p.Title != http.StatusText(status) {
		t.Errorf("problem with status %d and title %q", p.Status, p.Title)
	}
	for _, word := range words {
		if !strings.Contains(res.Body.String(), word) {
			t.Errorf("%s does not say %q", res.Body, word)
		}
	}
	return p
}

// add stores tasks as they are.
func (f *fixture) add(t testing.TB, tasks ...task.Task) {
	t.Helper()
	for i := range tasks {
		tasks[i].Mode = task.ModePassive
		if tasks[i].ClassName == "" {
			tasks[i].ClassName = "demo.echo"
		}
		if tasks[i].LifecycleStatus == "" {
			tasks[i].LifecycleStatus = task.Created
		}
	}
	outcomes, err := f.store.Create(t.Context(), tasks)
	if err != nil {
		t.Fatal(err)
	}
	for i := range outcomes {
		if outcomes[i].Err != nil {
			t.Fatal(outcomes[i].Err)
		}
	}
}

func (f *fixture) task(t testing.TB, id string) *task.Task {
	t.Helper()
	list, err := f.store.Get(t.Context(), []string{id})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}

// nodes is a registry for the API to read.
type nodes struct {
	mu   sync.Mutex
	list []registry.Node
	err  error
}

func (n *nodes) Snapshot(context.Context) (registry.Snapshot, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := registry.Snapshot{RunID: "run"}
	for _, node := range n.list {
		node.Tasks = nil
		s.Nodes = append(s.Nodes, node)
	}
	return s, n.err
}

func (n *nodes) Node(_ context.Context, id string) (registry.Node, bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, node := range n.list {
		if node.ID == id {
			return node, true, n.err
		}
	}
	return registry.Node{}, false, n.err
}

// dispatcher remembers what it is told.
type dispatcher struct {
	status  client.Dispatcher
	drained []string
	set     store.Dispatcher
	inUse   map[string]int
	pending client.Pending
	ready   []client.NotReady
	fleet   client.Fleet
	unled   error // instead of what only the leader knows of nodes
	err     error
}

func (d *dispatcher) NotReady(context.Context) []client.NotReady { return d.ready }

func (d *dispatcher) Fleet(context.Context) (client.Fleet, error) { return d.fleet, d.unled }

func (d *dispatcher) Explain(_ context.Context, t *task.Task) (client.Explanation, error) {
	return client.Explanation{ID: t.ID, Status: t.LifecycleStatus, Reason: "NODES_FULL", Text: "All are full."}, d.err
}

func (d *dispatcher) Pending(context.Context) (client.Pending, error) { return d.pending, d.err }

func (d *dispatcher) Settings(context.Context) (store.Dispatcher, error) { return d.set, d.err }

func (d *dispatcher) Change(_ context.Context, set func(*store.Dispatcher) error) (store.Dispatcher, error) {
	if d.err != nil {
		return store.Dispatcher{}, d.err
	}
	next := d.set.Clone()
	if err := set(&next); err != nil {
		return d.set, err
	}
	next.Version++
	d.set = next
	return next, nil
}

func (d *dispatcher) InUse(context.Context, []string) (map[string]int, error) {
	if d.inUse == nil {
		return nil, &api.NoLeaderError{}
	}
	return d.inUse, nil
}

func (d *dispatcher) SetDraining(_ context.Context, node string, draining bool) error {
	if d.err == nil {
		d.drained = append(d.drained, fmt.Sprint(node, " ", draining))
	}
	return d.err
}

func (d *dispatcher) Status(context.Context) (client.Dispatcher, error) { return d.status, d.err }
func (d *dispatcher) SetStrategy(_ context.Context, strategy string) error {
	if d.err == nil {
		d.status.Strategy = strategy
	}
	return d.err
}
