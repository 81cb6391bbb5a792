package api_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skalds-go/skalds/controller/api"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestToken(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(d *api.Deps) { d.Token = "s3cret" })
	tests := map[string]struct {
		path, header string
		ok           bool
	}{
		"none":           {"/api/tasks", "", false},
		"wrong":          {"/api/tasks", "Bearer s3cre", false},
		"longer":         {"/api/tasks", "Bearer s3crets", false},
		"other scheme":   {"/api/tasks", "Basic s3cret", false},
		"bare":           {"/api/tasks", "s3cret", false},
		"right":          {"/api/tasks", "Bearer s3cret", true},
		"scheme in case": {"/api/tasks", "bearer s3cret", true},
		"metrics":        {"/metrics", "", false},
		"like docs":      {"/api/docsx", "", false},
		"like document":  {"/api/openapi.json/x", "", false},
		"document":       {"/api/openapi.json", "", true},
		"unknown path":   {"/nothing", "", false},
		"livez":          {"/livez", "", true},
		"readyz":         {"/readyz", "", true},
		"like livez":     {"/livez/x", "", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res := f.do(t, http.MethodGet, tt.path, "", "Authorization", tt.header)
			if tt.ok {
				want[any](t, res, http.StatusOK)
				return
			}
			wantProblem(t, res, http.StatusUnauthorized, "Authorization: Bearer")
			if got := res.Header().Get("WWW-Authenticate"); !strings.HasPrefix(got, "Bearer") {
				t.Errorf("WWW-Authenticate %q", got)
			}
		})
	}
	wantProblem(t, f.do(t, http.MethodPost, "/api/tasks", `{"className":"c"}`), http.StatusUnauthorized)
	if res := f.do(t, http.MethodGet, "/api/docs", ""); res.Code != http.StatusOK {
		t.Errorf("the documentation: %d", res.Code)
	}
}

func TestUnknownRoutes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	wantProblem(t, f.do(t, http.MethodGet, "/api/nothing", ""), http.StatusNotFound, "/api/nothing", "/api/docs")
	res := f.do(t, http.MethodPatch, "/api/tasks", "{}")
	wantProblem(t, res, http.StatusMethodNotAllowed, "PATCH", "GET, HEAD, POST")
	if got := res.Header().Get("Allow"); got != "GET, HEAD, POST" {
		t.Errorf("Allow %q", got)
	}
}

func TestPageOfAnotherSiteChangesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example"}} {
		wantProblem(t, f.do(t, http.MethodPost, "/api/tasks", `{"className":"c"}`, headers...), http.StatusForbidden)
	}
	want[task.Task](t, f.do(t, http.MethodPost, "/api/tasks", `{"className":"c"}`, "Sec-Fetch-Site", "same-origin"), http.StatusCreated)
}

// panicking is a registry with a bug.
type panicking struct{ api.Nodes }

func (panicking) Snapshot(context.Context) (registry.Snapshot, error) { panic("a bug") }

func TestPanicIsAnsweredAndLogged(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(d *api.Deps) { d.Nodes = panicking{} })
	res := f.do(t, http.MethodGet, "/api/skalds", "")
	wantProblem(t, res, http.StatusInternalServerError)
	if strings.Contains(res.Body.String(), "a bug") || !strings.Contains(f.log.String(), "a bug") {
		t.Errorf("answer %s, log %s", res.Body, f.log)
	}
	if !strings.Contains(f.do(t, http.MethodGet, "/metrics", "").Body.String(), `skalds_http_requests_total{code="500",method="GET",route="/api/skalds"} 1`) {
		t.Error("not counted")
	}
}

func TestRefusedBodyIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(d *api.Deps) { d.Token = "s3cret" })
	for status, token := range map[int]string{http.StatusRequestEntityTooLarge: "Bearer s3cret", http.StatusUnauthorized: ""} {
		body := strings.NewReader(strings.Repeat(" ", 1<<20))
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/tasks", body)
		req.Header.Set("Authorization", token)
		res := httptest.NewRecorder()
		f.handler.ServeHTTP(res, req)
		if wantProblem(t, res, status); body.Len() > 0 {
			t.Errorf("status %d: %d bytes were not read", status, body.Len())
		}
	}
}

func TestBatchBodyIsBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/tasks/batch", strings.NewReader("{}"))
	req.ContentLength = 64<<20 + 1
	res := httptest.NewRecorder()
	f.handler.ServeHTTP(res, req)
	wantProblem(t, res, http.StatusRequestEntityTooLarge, "67108865", "67108864")
}

// stalled is a body that arrives only when it is let, and says when it is read.
type stalled struct{ reading, free chan struct{} }

func (s *stalled) Read([]byte) (int, error) {
	s.reading <- struct{}{}
	<-s.free
	return 0, errors.New("given up")
}

func TestBodiesInMemoryAreBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	body := &stalled{reading: make(chan struct{}), free: make(chan struct{})}
	done := make(chan struct{})
	for range 4 { // 4 times 64 MiB is all there is
		go func() {
			req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/tasks/batch", body)
			req.ContentLength = 64 << 20
			f.handler.ServeHTTP(httptest.NewRecorder(), req)
			done <- struct{}{}
		}()
		<-body.reading
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // it does not wait for its turn
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/api/tasks", strings.NewReader(`{"className":"c"}`))
	res := httptest.NewRecorder()
	f.handler.ServeHTTP(res, req)
	wantProblem(t, res, http.StatusServiceUnavailable, "too many large bodies")
	want[any](t, f.do(t, http.MethodGet, "/livez", ""), http.StatusOK)
	close(body.free)
	for range 4 {
		<-done
	}
	want[task.Task](t, f.do(t, http.MethodPost, "/api/tasks", `{"className":"c"}`), http.StatusCreated)
}

// blocked is a store and a registry that answer only when they are let, and say when they are asked.
type blocked struct {
	api.Tasks
	api.Nodes

	asked, free chan struct{}
}

func (b *blocked) wait() {
	b.asked <- struct{}{}
	<-b.free
}

func (b *blocked) List(context.Context, store.Filter) (store.ListPage, error) {
	b.wait()
	return store.ListPage{}, nil
}

func (b *blocked) Snapshot(context.Context) (registry.Snapshot, error) {
	b.wait()
	return registry.Snapshot{}, nil
}

func TestRequestsAtOnceAreBounded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		path  string
		limit int
		words string
	}{
		"all":   {"/api/skalds", 2000, "too many requests"},
		"lists": {"/api/tasks", 8, "too many lists"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := &blocked{asked: make(chan struct{}), free: make(chan struct{})}
				f := newFixture(t, func(d *api.Deps) { d.Tasks, d.Nodes = b, b })
				codes := make(chan int, tt.limit)
				for range tt.limit {
					go func() { codes <- f.do(t, http.MethodGet, tt.path, "").Code }()
					<-b.asked
				}
				begin := time.Now()
				wantProblem(t, f.do(t, http.MethodGet, tt.path, ""), http.StatusServiceUnavailable, tt.words)
				if waited := time.Since(begin); waited != 5*time.Second {
					t.Errorf("waited %s for its turn", waited)
				}
				close(b.free)
				for range tt.limit {
					if code := <-codes; code != http.StatusOK {
						t.Errorf("status %d", code)
					}
				}
			})
		})
	}
}
