package client_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/task"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// transport answers without a network.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// reply is an answer of a server.
type reply struct {
	status  int
	body    string
	headers http.Header
}

func (r reply) response() *http.Response {
	return &http.Response{StatusCode: r.status, Header: r.headers, Body: io.NopCloser(strings.NewReader(r.body))}
}

// says always gives the same answer.
func says(r reply) transport {
	return func(*http.Request) (*http.Response, error) { return r.response(), nil }
}

func contentType(t string) http.Header { return http.Header{"Content-Type": {t}} }

func over(t *testing.T, f transport) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{Server: "skalds.test", HTTP: &http.Client{Transport: f}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNewChecksTheAddress(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"", "http://", "ftp://host", "http://host/?x=1", "http://host:port\x7f", "://host"} {
		if _, err := client.New(client.Config{Server: server}); err == nil || !strings.Contains(err.Error(), "http://host:port") {
			t.Errorf("%q: %v", server, err)
		}
	}
	for server, want := range map[string]string{
		"localhost:8000": "http://localhost:8000/readyz", "https://h/": "https://h/readyz", "http://h/prefix/": "http://h/prefix/readyz", "[::1]:80": "http://[::1]:80/readyz",
	} {
		var got string
		c, err := client.New(client.Config{Server: server, HTTP: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			got = r.URL.String()
			return reply{200, `{}`, nil}.response(), nil
		})}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Ready(t.Context()); err != nil || got != want {
			t.Errorf("%s: %s, %v", server, got, err)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		res  reply
		want string
	}{
		"problem": {
			reply{422, `{"title":"Unprocessable Entity","status":422,"detail":"validation failed","errors":[{"message":"unknown field","location":"body.x","value":1},{"message":"is required","location":"body.className"}]}`, contentType("application/problem+json")},
			"the server says 422 Unprocessable Entity: validation failed: body.x (1) unknown field; body.className is required",
		},
		"text of a proxy": {reply{502, "<html>bad\xff</html>\n", contentType("text/html")}, "the server says 502 Bad Gateway: <html>bad?</html>"},
		"long text":       {reply{500, strings.Repeat("x", 5000), nil}, "the server says 500 Internal Server Error: " + strings.Repeat("x", 512)},
		"broken problem":  {reply{500, `{"title":`, contentType("application/problem+json")}, `the server says 500 Internal Server Error: {"title":`},
		"empty":           {reply{404, "", nil}, "the server says 404 Not Found"},
		"redirect":        {reply{304, "", nil}, "the server says 304 Not Modified"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := over(t, says(tt.res)).Get(t.Context(), "a")
			var no *client.Error
			if !errors.As(err, &no) || err.Error() != tt.want || no.Status != tt.res.status || errors.Is(err, client.ErrUnreachable) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestAnswerOfAnotherServer(t *testing.T) {
	t.Parallel()
	_, err := over(t, says(reply{200, "<html>", nil})).Get(t.Context(), "a")
	if err == nil || !strings.Contains(err.Error(), "not what a Skalds controller says") {
		t.Errorf("%v", err)
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	var lc net.ListenConfig
	listener, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil { // nobody listens there any more
		t.Fatal(err)
	}
	c, err := client.New(client.Config{Server: listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if _, err := c.Get(t.Context(), "a"); !errors.Is(err, client.ErrUnreachable) || !strings.Contains(err.Error(), listener.Addr().String()) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Get(ctx, "a"); errors.Is(err, client.ErrUnreachable) || !errors.Is(err, context.Canceled) {
		t.Errorf("given up by the caller: %v", err)
	}
}

// endless is a body without end.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

func TestAnswerIsBounded(t *testing.T) {
	t.Parallel()
	c := over(t, func(*http.Request) (*http.Response, error) {
		res := reply{200, "", nil}.response()
		res.Body = io.NopCloser(endless{})
		return res, nil
	})
	c.SetLimit(1000)
	if _, err := c.Get(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "more than 1000 bytes") {
		t.Errorf("%v", err)
	}
}

func TestAttachmentsThatDoNotEncode(t *testing.T) {
	t.Parallel()
	_, err := over(t, func(*http.Request) (*http.Response, error) { return nil, errors.New("called") }).Submit(t.Context(), client.NewTask{Attachments: make(chan int)})
	if err == nil || !strings.Contains(err.Error(), "encode") {
		t.Errorf("%v", err)
	}
}

func TestReady(t *testing.T) {
	t.Parallel()
	c := over(t, says(reply{503, `{"status":"not ready","notReady":[{"name":"kafka","reason":"down"}]}`, contentType("application/json")}))
	if missing, err := c.Ready(t.Context()); err != nil || len(missing) != 1 || missing[0] != (client.NotReady{Name: "kafka", Reason: "down"}) {
		t.Errorf("%v, %v", missing, err)
	}
	c = over(t, says(reply{503, "busy", nil}))
	if _, err := c.Ready(t.Context()); !client.IsStatus(err, 503) {
		t.Errorf("%v", err)
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	running, finished := `{"id":"a","lifecycleStatus":"Running"}`, `{"id":"a","lifecycleStatus":"Finished"}`
	busy := reply{503, "", http.Header{"Retry-After": {"3"}}}
	tests := map[string]struct {
		answers func(n int) reply
		calls   int
		took    time.Duration
		status  int // of the error; 0 = none
	}{
		"ended":          {func(int) reply { return reply{200, finished, nil} }, 1, 0, 0},
		"after a while":  {func(n int) reply { return reply{200, []string{running, running, finished}[n], nil} }, 3, 200 * time.Millisecond, 0},
		"busy, then not": {func(n int) reply { return []reply{busy, busy, {200, finished, nil}}[n] }, 3, 6 * time.Second, 0},
		"always busy":    {func(int) reply { return busy }, 11, 30 * time.Second, 503},
		"not there":      {func(int) reply { return reply{404, "", nil} }, 1, 0, 404},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				c := over(t, func(r *http.Request) (*http.Response, error) {
					if r.URL.RawQuery != "wait=30s" {
						t.Errorf("query %s", r.URL.RawQuery)
					}
					calls++
					return tt.answers(calls - 1).response(), nil
				})
				begin := time.Now()
				got, err := c.Wait(t.Context(), "a")
				if calls != tt.calls || time.Since(begin) != tt.took {
					t.Errorf("%d calls, %s", calls, time.Since(begin))
				}
				if tt.status == 0 && (err != nil || got.LifecycleStatus != task.Finished) || tt.status != 0 && !client.IsStatus(err, tt.status) {
					t.Errorf("%+v, %v", got, err)
				}
			})
		})
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		c := over(t, says(reply{503, "", http.Header{"Retry-After": {"60"}}}))
		if _, err := c.Wait(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

func TestBulkSumsUp(t *testing.T) {
	t.Parallel()
	var asked []string
	answers := []reply{
		{200, `{"matched":10,"changed":7,"skipped":3,"next":"n1"}`, nil}, {200, `{"matched":5,"changed":5,"skipped":0}`, nil}, {503, `{}`, contentType("application/problem+json")},
	}
	c := over(t, func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		asked = append(asked, r.URL.Path+" "+string(body))
		return answers[len(asked)-1].response(), err
	})
	b := client.Bulk{Action: "cancel", Filter: client.BulkFilter{LifecycleStatus: []task.Status{task.Created}}, DryRun: true}
	got, err := c.Bulk(t.Context(), b)
	if err != nil || got != (client.BulkResult{Matched: 15, Changed: 12, Skipped: 3}) {
		t.Errorf("%+v, %v", got, err)
	}
	want := `/api/tasks/bulk {"action":"cancel","filter":{"lifecycleStatus":["Created"]},"dryRun":true,"next":"n1"}`
	if len(asked) != 2 || asked[1] != want {
		t.Errorf("asked %q", asked)
	}
	if _, err := c.Bulk(t.Context(), b); !client.IsStatus(err, http.StatusServiceUnavailable) {
		t.Errorf("error %v", err)
	}
}

func TestTasksEndsAfterTheFirstError(t *testing.T) {
	t.Parallel()
	pages := []string{`{"items":[{"id":"a"},{"id":"b"}],"nextCursor":"n"}`}
	c := over(t, func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Get("cursor") == "n" {
			return reply{503, "", nil}.response(), nil
		}
		return reply{200, pages[0], nil}.response(), nil
	})
	var got []string
	for x, err := range c.Tasks(t.Context(), client.Query{}) {
		got = append(got, fmt.Sprint(x.ID, client.IsStatus(err, 503)))
	}
	if fmt.Sprint(got) != "[afalse bfalse true]" {
		t.Errorf("%v", got)
	}
	for x, err := range c.Tasks(t.Context(), client.Query{}) {
		t.Log("must not go on after", x.ID, err)
		break
	}
}

// FuzzError feeds answers that say no.
func FuzzError(f *testing.F) {
	f.Add([]byte(`{"title":"x","errors":[{"value":{}}],"task":{"id":"a"}}`), "application/problem+json")
	f.Add([]byte("\xff"), "text/html")
	f.Fuzz(func(t *testing.T, body []byte, kind string) {
		c := over(t, says(reply{http.StatusTeapot, string(body), contentType(kind)}))
		if _, err := c.Get(t.Context(), "a"); !client.IsStatus(err, http.StatusTeapot) || err.Error() == "" {
			t.Fatalf("%v", err)
		}
	})
}

// exampleServer stands for a controller.
func exampleServer() *httptest.Server {
	mux := http.NewServeMux()
	say := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	mux.HandleFunc("POST /api/tasks", say(201, `{"id":"t1","className":"resize","lifecycleStatus":"Created"}`))
	mux.HandleFunc("POST /api/tasks/batch", say(200, `{"items":[{"id":"t1","status":201},{"id":"","status":422,"error":"task.className: is required"}]}`))
	mux.HandleFunc("GET /api/tasks/{id}", say(200, `{"id":"t1","className":"resize","lifecycleStatus":"Finished","result":{"ok":true}}`))
	mux.HandleFunc("GET /api/tasks", say(200, `{"items":[{"id":"t1"},{"id":"t2"}],"total":2,"page":1,"pageSize":20}`))
	return httptest.NewServer(mux)
}

func ExampleClient_Submit() {
	srv := exampleServer()
	defer srv.Close()
	c, err := client.New(client.Config{Server: srv.URL})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	ctx := context.Background()
	submitted, err := c.Submit(ctx, client.NewTask{ClassName: "resize", Attachments: map[string]int{"width": 640}})
	if err != nil {
		panic(err)
	}
	ended, err := c.Wait(ctx, submitted.ID)
	if err != nil {
		panic(err)
	}
	fmt.Println(ended.LifecycleStatus, string(ended.Result))
	// Output: Finished {"ok":true}
}

func ExampleClient_SubmitBatch() {
	srv := exampleServer()
	defer srv.Close()
	c, err := client.New(client.Config{Server: srv.URL})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	items, err := c.SubmitBatch(context.Background(), []client.NewTask{{ClassName: "resize"}, {}})
	if err != nil {
		panic(err)
	}
	for _, item := range items {
		fmt.Printf("%d %q %s\n", item.Status, item.ID, cmp.Or(item.Error, "stored"))
	}
	// Output:
	// 201 "t1" stored
	// 422 "" task.className: is required
}

func ExampleClient_Tasks() {
	srv := exampleServer()
	defer srv.Close()
	c, err := client.New(client.Config{Server: srv.URL})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	for t, err := range c.Tasks(context.Background(), client.Query{Status: []task.Status{task.Failed}}) {
		if err != nil {
			panic(err)
		}
		fmt.Println(t.ID)
	}
	// Output:
	// t1
	// t2
}
