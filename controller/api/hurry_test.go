package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skalds-go/skalds/controller/api"
	"github.com/skalds-go/skalds/pkg/task"
)

// hurried makes a request whose client is gone after patience, and gives how long it was worked for.
func (f *fixture) hurried(t *testing.T, patience time.Duration, method, path, body string) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	began := time.Now()
	f.handler.ServeHTTP(httptest.NewRecorder(), req)
	return time.Since(began)
}

// A MongoDB connection is closed with the call on it that is given up: a client that hangs up must not be able to do that.
func TestC46_AClientThatHangsUpCutsNoCallOfTheStoreOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const latency, patience = 200 * time.Millisecond, 100 * time.Millisecond
		cutOff := 0
		answers := func(ctx context.Context) error {
			select {
			case <-time.After(latency):
				return nil
			case <-ctx.Done():
				cutOff++
				return ctx.Err()
			}
		}
		f := newFixture(t, func(d *api.Deps) {
			d.Tasks, d.Nodes = &gatedTasks{d.Tasks, answers}, &gatedNodes{d.Nodes, answers}
			d.Dispatcher = &gatedDispatcher{d.Dispatcher, answers}
		})
		f.nodes.list = someNodes(1)
		f.add(t, inState("t", task.Created), inState("ended", task.Finished))
		for _, call := range calls {
			took := f.hurried(t, patience, call.method, call.path, call.body)
			if cutOff > 0 || len(call.needs) > 0 && took < latency {
				t.Errorf("%s %s of a client that hung up: %d calls were cut off, after %s", call.method, call.path, cutOff, took)
				cutOff = 0
			}
		}
	})
}

// Nothing is begun for a client that has hung up, nor waited for.
func TestC46_NobodyWaitsForAClientThatHasHungUp(t *testing.T) {
	t.Parallel()
	const patience = 100 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		b := &blocked{asked: make(chan struct{}), free: make(chan struct{})}
		f := newFixture(t, func(d *api.Deps) { d.Tasks = b })
		done := make(chan struct{})
		for range 8 { // all there may be at once
			go func() { f.do(t, http.MethodGet, "/api/tasks", ""); done <- struct{}{} }()
			<-b.asked
		}
		for path, body := range map[string]string{"/api/tasks": "", "/api/tasks/bulk": `{"action":"retry","all":true}`} {
			method := http.MethodGet
			if body != "" {
				method = http.MethodPost
			}
			if took := f.hurried(t, patience, method, path, body); took != patience {
				t.Errorf("%s waited %s for its turn", path, took)
			}
		}
		close(b.free)
		for range 8 {
			<-done
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.add(t, inState("t", task.Created))
		if took := f.hurried(t, patience, http.MethodGet, "/api/tasks/t?wait=20s", ""); took != patience {
			t.Errorf("the end of a task was waited for %s", took)
		}
	})
}
