package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/pkg/client"
)

func TestSettingsAreChangedWhereTheServerLooks(t *testing.T) {
	t.Parallel()
	shop, none := "my shop", ""
	set := func(kind client.LimitKind, name string) func(context.Context, *client.Client) error {
		return func(ctx context.Context, c *client.Client) error { return c.SetTaskLimit(ctx, kind, name, 3) }
	}
	rate := func(kind client.LimitKind, name string) func(context.Context, *client.Client) error {
		return func(ctx context.Context, c *client.Client) error {
			return c.SetRate(ctx, kind, name, client.Rate{PerSecond: 2.5, Burst: 4})
		}
	}
	remove := func(kind client.LimitKind, name string) func(context.Context, *client.Client) error {
		return func(ctx context.Context, c *client.Client) error { return c.RemoveLimit(ctx, kind, name) }
	}
	pause := func(s client.Scope) func(context.Context, *client.Client) error {
		return func(ctx context.Context, c *client.Client) error { _, err := c.PauseDispatch(ctx, s); return err }
	}
	const limit, perSecond = `{"limit":3}`, `{"perSecond":2.5,"burst":4}`
	for name, tt := range map[string]struct {
		do   func(context.Context, *client.Client) error
		want string // method, path, body
	}{
		"pause":           {pause(client.Scope{}), "POST /api/system/dispatcher/pause {}"},
		"pause class":     {pause(client.Scope{ClassName: "mail"}), `POST /api/system/dispatcher/pause {"className":"mail"}`},
		"pause namespace": {pause(client.Scope{Namespace: &shop}), `POST /api/system/dispatcher/pause {"namespace":"my shop"}`},
		"pause none":      {pause(client.Scope{Namespace: &none}), `POST /api/system/dispatcher/pause {"namespace":""}`},
		"resume": {func(ctx context.Context, c *client.Client) error {
			_, err := c.ResumeDispatch(ctx, client.Scope{ClassName: "mail"})
			return err
		}, `POST /api/system/dispatcher/resume {"className":"mail"}`},
		"limits":          {func(ctx context.Context, c *client.Client) error { _, err := c.Limits(ctx); return err }, "GET /api/system/limits "},
		"rate":            {rate(client.LimitRate, ""), "PUT /api/system/limits/rate " + perSecond},
		"class":           {rate(client.LimitClass, "a/b"), "PUT /api/system/limits/classes/a%2Fb " + perSecond},
		"any node":        {rate(client.LimitNode, "*"), "PUT /api/system/limits/nodes/%2A " + perSecond},
		"namespace":       {set(client.LimitNamespace, shop), "PUT /api/system/limits/namespaces/my%20shop " + limit},
		"no namespace":    {set(client.LimitNamespace, ""), "PUT /api/system/limits/namespaces/- " + limit},
		"pool":            {set(client.LimitPool, "gpu"), "PUT /api/pools/gpu " + limit},
		"remove rate":     {remove(client.LimitRate, ""), "DELETE /api/system/limits/rate "},
		"remove class":    {remove(client.LimitClass, "mail"), "DELETE /api/system/limits/classes/mail "},
		"remove none":     {remove(client.LimitNamespace, ""), "DELETE /api/system/limits/namespaces/- "},
		"remove pool":     {remove(client.LimitPool, "gpu"), "DELETE /api/pools/gpu "},
		"pools":           {func(ctx context.Context, c *client.Client) error { _, err := c.Pools(ctx); return err }, "GET /api/pools "},
		"explain":         {func(ctx context.Context, c *client.Client) error { _, err := c.Explain(ctx, "a/b"); return err }, "GET /api/tasks/a%2Fb/explain "},
		"pending":         {func(ctx context.Context, c *client.Client) error { _, err := c.Pending(ctx); return err }, "GET /api/system/pending "},
		"class like none": {rate(client.LimitClass, "-"), "PUT /api/system/limits/classes/- " + perSecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got string
			c := over(t, func(r *http.Request) (*http.Response, error) {
				body := ""
				if r.Body != nil {
					text, err := io.ReadAll(r.Body)
					if err != nil {
						return nil, err
					}
					body = strings.TrimSpace(string(text))
				}
				got = r.Method + " " + r.URL.EscapedPath() + " " + body
				return reply{200, `{}`, contentType("application/json")}.response(), nil
			})
			if err := tt.do(t.Context(), c); err != nil || got != tt.want {
				t.Errorf("asked %q, want %q; %v", got, tt.want, err)
			}
		})
	}
}

func TestWhatKeepsTasksWaitingIsRead(t *testing.T) {
	t.Parallel()
	c := over(t, func(r *http.Request) (*http.Response, error) {
		body, ok := map[string]string{
			"/api/tasks/t1/explain":   `{"id":"t1","lifecycleStatus":"Created","reason":"NODES_FULL","text":"Full.","help":"Wait.","until":5,"queue":"0||a","placement":{"strategy":"RANDOM","nodes":2,"full":2,"fullNodes":["n1","n2"]},"notTaking":{"n3":"draining"}}`,
			"/api/system/pending":     `{"total":7,"groups":[{"reason":"NODES_FULL","tasks":7,"queues":2,"text":"Full.","sample":["0||a"]}]}`,
			"/api/system/limits":      `{"version":3,"paused":true,"pausedClasses":["a"],"pausedNamespaces":[""],"rate":{"perSecond":0.5,"burst":1},"classRates":{"a":{"perSecond":1}},"nodeRates":{},"namespaceLimits":{"":2},"pools":{"gpu":3}}`,
			"/api/pools":              `{"items":[{"name":"gpu","limit":3,"inUse":1}]}`,
			"/api/tasks/gone/explain": "",
		}[r.URL.Path]
		if !ok || body == "" {
			return reply{404, `{"title":"Not Found","status":404,"detail":"there is no task with the id \"gone\""}`, contentType("application/problem+json")}.response(), nil
		}
		return reply{200, body, contentType("application/json")}.response(), nil
	})
	ctx := t.Context()
	e, err := c.Explain(ctx, "t1")
	if want := (client.Explanation{ID: "t1", Status: "Created", Reason: "NODES_FULL", Text: "Full.", Help: "Wait.", Until: 5, Queue: "0||a", NotTaking: map[string]string{"n3": "draining"},
		Placement: &client.Placement{Strategy: "RANDOM", Nodes: 2, Full: 2, FullNodes: []string{"n1", "n2"}}}); err != nil || !reflect.DeepEqual(e, want) {
		t.Errorf("%+v %v", e, err)
	}
	if _, err := c.Explain(ctx, "gone"); !client.IsStatus(err, http.StatusNotFound) {
		t.Errorf("%v", err)
	}
	p, err := c.Pending(ctx)
	if want := (client.Pending{Total: 7, Groups: []client.PendingGroup{{Reason: "NODES_FULL", Tasks: 7, Queues: 2, Text: "Full.", Sample: []string{"0||a"}}}}); err != nil || !reflect.DeepEqual(p, want) {
		t.Errorf("%+v %v", p, err)
	}
	s, err := c.Limits(ctx)
	if want := (client.Settings{Version: 3, Paused: true, PausedClasses: []string{"a"}, PausedNamespaces: []string{""}, Rate: &client.Rate{PerSecond: 0.5, Burst: 1},
		ClassRates: map[string]client.Rate{"a": {PerSecond: 1}}, NodeRates: map[string]client.Rate{}, NamespaceLimits: map[string]int{"": 2}, Pools: map[string]int{"gpu": 3}}); err != nil || !reflect.DeepEqual(s, want) {
		t.Errorf("%+v %v", s, err)
	}
	pools, err := c.Pools(ctx)
	if want := []client.Pool{{Name: "gpu", Limit: 3, InUse: new(1)}}; err != nil || !reflect.DeepEqual(pools, want) {
		t.Errorf("%+v %v", pools, err)
	}
}

func ExampleClient_Explain() {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"id":"t1","lifecycleStatus":"Created","reason":"POOL_UNKNOWN","text":"There is no pool \"gpu\".","help":"Make it: skalds limit set pool N --pool gpu"}`)
	}))
	defer srv.Close()
	c, err := client.New(client.Config{Server: srv.URL})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	e, err := c.Explain(context.Background(), "t1")
	if err != nil {
		panic(err)
	}
	fmt.Println(e.Text)
	fmt.Println(e.Help)
	// Output:
	// There is no pool "gpu".
	// Make it: skalds limit set pool N --pool gpu
}
