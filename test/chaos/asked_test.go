package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/skalds-go/skalds/pkg/client"
)

// answerLimit is how long a controller may take to say that something does not answer.
const answerLimit = 20 * time.Second

// called is what people call a service in an answer.
var called = map[string]string{toStore: "mongodb", toRedis: "redis", toKafka: "kafka"}

// question is one call of the API, and what it needs.
type question struct {
	method, path, body string
	needs              []string
}

// questions are all calls that need something, about a task that waits and a node. None of them changes what a test
// looks at.
func questions(parked, own string) []question {
	store, registry := []string{toStore}, []string{toRedis}
	return []question{
		{http.MethodPost, "/api/tasks", fmt.Sprintf(`{"id":%q,"className":"quick","attachments":{"ms":1}}`, own), store},
		{http.MethodPost, "/api/tasks/batch", fmt.Sprintf(`{"tasks":[{"id":%q,"className":"quick","attachments":{"ms":1}}]}`, own+"-of-batch"), store},
		{http.MethodPost, "/api/tasks/bulk", fmt.Sprintf(`{"action":"cancel","filter":{"idPrefix":%q},"dryRun":true}`, parked), store},
		{http.MethodGet, "/api/tasks?pageSize=5", "", store},
		{http.MethodGet, "/api/tasks/" + parked, "", store},
		{http.MethodGet, "/api/tasks/" + parked + "?wait=1s", "", store},
		{http.MethodPut, "/api/tasks/" + parked + "/status", `{"lifecycleStatus":"Paused"}`, store},
		{http.MethodPut, "/api/tasks/" + parked + "/attachments", `{"ms":2}`, store},
		{http.MethodDelete, "/api/tasks/" + parked + "?purge=true", "", store},
		{http.MethodGet, "/api/skalds", "", registry},
		{http.MethodGet, "/api/skalds/node-1", "", registry},
		{http.MethodPost, "/api/skalds/node-1/undrain", "", store},
		{http.MethodGet, "/api/system/dispatcher", "", store},
		{http.MethodPut, "/api/system/dispatcher", `{"strategy":"LEAST_TASKS"}`, store},
		{http.MethodGet, "/livez", "", nil},
		{http.MethodGet, "/metrics", "", nil},
		{http.MethodGet, "/readyz", "", []string{toStore, toRedis, toKafka}},
	}
}

// asked makes every call of both controllers at once, while services do not answer: those that need one of them say so,
// and in time.
func (w *world) asked(prefix string, missing []string, how what) {
	w.T.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	slowest := time.Duration(0)
	for i, c := range w.controllers() {
		for _, q := range questions(prefix+"-parked", fmt.Sprintf("%s-meanwhile-%d", prefix, i)) {
			all.Go(func() {
				began := time.Now()
				status, kind, text, err := w.call(c, &q)
				took := time.Since(began)
				mu.Lock()
				defer mu.Unlock()
				slowest = max(slowest, took)
				if err != nil {
					w.T.Errorf("%s %s of %s: %v", q.method, q.path, c.name, err)
					return
				}
				if wrong := judge(&q, missing, how, status, kind, text); wrong != "" {
					w.T.Errorf("%s %s of %s: %s: status %d after %s: %.300s", q.method, q.path, c.name, wrong, status, took.Round(time.Millisecond), text)
				}
			})
		}
	}
	all.Wait()
	w.T.Logf("every call was answered, the last one after %s", slowest.Round(time.Millisecond))
}

func (w *world) call(c *member, q *question) (status int, kind, text string, err error) {
	ctx, cancel := context.WithTimeout(w.T.Context(), answerLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, q.method, "http://127.0.0.1:"+c.env["SYSTEM_CONTROLLER_PORT"]+q.path, strings.NewReader(q.body))
	if err != nil {
		return 0, "", "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", "", err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	return res.StatusCode, res.Header.Get("Content-Type"), string(body), err
}

// judge says what is wrong with an answer; empty = nothing.
func judge(q *question, missing []string, how what, status int, kind, text string) string {
	var want, other []string
	for service, name := range called {
		if slices.Contains(missing, service) && slices.Contains(q.needs, service) {
			want = append(want, name)
		} else {
			other = append(other, name)
		}
	}
	switch {
	case how == delay && q.path == "/readyz": // what is too slow for it, it may call missing
		return ""
	case (how == delay || len(want) == 0) && status >= http.StatusInternalServerError:
		return "it needs nothing that is missing"
	case how == delay || len(want) == 0:
		return ""
	}
	if status != http.StatusServiceUnavailable {
		return "want 503"
	}
	var answer struct {
		Detail   string
		NotReady []client.NotReady
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		return err.Error()
	}
	if q.path == "/readyz" {
		var names []string
		for _, n := range answer.NotReady {
			names = append(names, n.Name)
		}
		slices.Sort(names)
		slices.Sort(want)
		if !slices.Equal(names, want) {
			return fmt.Sprintf("want %v", want)
		}
		return ""
	}
	says := func(name string) bool { return strings.Contains(answer.Detail, name) }
	if kind != "application/problem+json" || !slices.ContainsFunc(want, says) || slices.ContainsFunc(other, says) {
		return fmt.Sprintf("want a problem that names %v", want)
	}
	return ""
}
