package api_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/skalds-go/skalds/controller/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs Serve with the handler until the test stops it, and gives its address.
func serve(t *testing.T, handler http.Handler, grace time.Duration) (addr string, stop context.CancelFunc, stopped chan error) {
	t.Helper()
	var lc net.ListenConfig
	listener, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped = make(chan error, 1)
	go func() { stopped <- api.Serve(ctx, listener, handler, grace, slog.New(slog.DiscardHandler)) }()
	return listener.Addr().String(), cancel, stopped
}

func call(t *testing.T, url string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Logf("call: %v", err)
		return 0
	}
	defer func() { _ = res.Body.Close() }()
	return res.StatusCode
}

func TestServeEndsThoseThatOnlyWait(t *testing.T) {
	t.Parallel()
	tasks := &seenTasks{}
	tasks.endsAfter.Store(1 << 40)
	f := newFixture(t, func(d *api.Deps) { d.Tasks = tasks })
	looking := make(chan struct{}, 1)
	addr, stop, stopped := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		looking <- struct{}{}
		f.handler.ServeHTTP(w, r)
	}), time.Minute)
	code := make(chan int)
	go func() { code <- call(t, fmt.Sprintf("http://%s/api/tasks/a?wait=60s", addr)) }()
	<-looking
	stop()
	if got := <-code; got != http.StatusOK {
		t.Errorf("status %d", got)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestServeLetsRequestsFinish(t *testing.T) {
	t.Parallel()
	started, finish := make(chan struct{}), make(chan struct{})
	addr, stop, stopped := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(started)
		<-finish
		if r.Context().Err() == nil {
			w.WriteHeader(http.StatusTeapot)
		}
	}), time.Minute)
	code := make(chan int)
	go func() { code <- call(t, "http://"+addr) }()
	<-started
	stop()
	close(finish)
	if got := <-code; got != http.StatusTeapot {
		t.Errorf("status %d", got)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestServeCutsWhatDoesNotFinish(t *testing.T) {
	t.Parallel()
	started := make(chan struct{})
	addr, stop, stopped := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(started)
		<-r.Context().Done()
	}), time.Millisecond)
	code := make(chan int)
	go func() { code <- call(t, "http://"+addr) }()
	<-started
	stop()
	if err := <-stopped; err == nil {
		t.Error("no error")
	}
	if got := <-code; got != 0 {
		t.Errorf("status %d", got)
	}
}

func TestServeSaysWhenTheListenerFails(t *testing.T) {
	t.Parallel()
	var lc net.ListenConfig
	listener, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := api.Serve(t.Context(), listener, http.NotFoundHandler(), time.Second, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("no error")
	}
}
