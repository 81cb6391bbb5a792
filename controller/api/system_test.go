package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/skalds-go/skalds/controller/api"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/registry/registrytest"
	"github.com/skalds-go/skalds/pkg/task"
)

func someNodes(n int) []registry.Node {
	list := make([]registry.Node, n)
	for i := range list {
		list[n-1-i] = registry.Node{
			ID: fmt.Sprintf("node-%05d", i), Incarnation: "inc", Counter: 165, Mode: registry.ModeNode, State: registry.Online,
			Classes: []string{"EchoWorker"}, Capacity: 16, Running: 1, Queued: 1,
			Tasks: []registry.HeldTask{{ID: "t1", Attempt: 2, ClaimID: "c", State: task.ReportStarted}, {ID: "t2", Attempt: 1, ClaimID: "d"}},
		}
	}
	return list
}

func TestNodesHaveTheShapeOfThePythonSkalds(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.nodes.list = someNodes(1)
	raw, err := os.ReadFile("testdata/python.skalds.json")
	if err != nil {
		t.Fatal(err)
	}
	var python struct {
		Items []map[string]any
		Total int
	}
	if err := json.Unmarshal(raw, &python); err != nil {
		t.Fatal(err)
	}
	got := want[struct {
		Items []map[string]any
		Total int
	}](t, f.do(t, http.MethodGet, "/api/skalds/", ""), http.StatusOK)
	if got.Total != 1 || len(got.Items) != 1 {
		t.Fatalf("%+v", got)
	}
	for name, value := range python.Items[0] {
		if ours, ok := got.Items[0][name]; !ok || fmt.Sprintf("%T", ours) != fmt.Sprintf("%T", value) {
			t.Errorf("%s: %v (%T), Python has %v (%T)", name, ours, ours, value, value)
		}
	}
	node := got.Items[0]
	if node["status"] != "online" || node["type"] != "node" || node["lastHeartbeat"] != fmt.Sprint(epoch.UnixMilli()) || node["taskCount"] != 2.0 ||
		fmt.Sprint(node["currentTasks"]) != "[t1 t2]" || fmt.Sprint(node["labels"]) != "map[]" {
		t.Errorf("%v", node)
	}
}

func TestNodesInPages(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.nodes.list = someNodes(250)
	tests := map[string]struct {
		query, first string
		items        int
		page         int
		more, tasks  bool
	}{
		"default":     {"", "node-00000", 100, 1, true, true},
		"last":        {"?page=3", "node-00200", 50, 3, false, true},
		"beyond":      {"?page=4", "", 0, 4, false, true},
		"all":         {"?pageSize=10000", "node-00000", 250, 1, false, false},
		"cursor":      {"?cursor=node-00099", "node-00100", 100, 2, true, true},
		"last cursor": {"?cursor=node-00249", "", 0, 3, false, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := want[client.NodePage](t, f.do(t, http.MethodGet, "/api/skalds"+tt.query, ""), http.StatusOK)
			if got.Total != 250 || len(got.Items) != tt.items || got.Page != tt.page || (got.NextCursor != "") != tt.more {
				t.Errorf("%d items, total %d, page %d, next %q", len(got.Items), got.Total, got.Page, got.NextCursor)
			}
			if tt.items > 0 && (got.Items[0].ID != tt.first || (got.Items[0].CurrentTasks != nil) != tt.tasks) {
				t.Errorf("begins with %+v", got.Items[0])
			}
		})
	}
	for _, query := range []string{"?pageSize=10001", "?page=-1", "?page=1&cursor=a", "?x=1"} {
		wantProblem(t, f.do(t, http.MethodGet, "/api/skalds"+query, ""), 422)
	}
}

func TestNode(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.nodes.list = someNodes(1)
	got := want[client.Node](t, f.do(t, http.MethodGet, "/api/skalds/node-00000", ""), http.StatusOK)
	wanted := []registry.HeldTask{{ID: "t1", Attempt: 2, ClaimID: "c", State: "started"}, {ID: "t2", Attempt: 1, ClaimID: "d", State: "queued"}}
	if got.Capacity != 16 || fmt.Sprint(got.Tasks) != fmt.Sprint(wanted) {
		t.Errorf("%+v", got)
	}
	wantProblem(t, f.do(t, http.MethodGet, "/api/skalds/none", ""), http.StatusNotFound, "none")
}

// All that a heartbeat reports is shown.
func TestNodeShowsTheWholeHeartbeat(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	sent := registrytest.Example("n1", "i1", 7)
	f.nodes.list = []registry.Node{*sent}
	got := want[client.Node](t, f.do(t, http.MethodGet, "/api/skalds/n1", ""), http.StatusOK)
	sent.Tasks[1].State = "queued"
	if !reflect.DeepEqual(got.Node, *sent) {
		t.Errorf("shown as %+v\nwant %+v", got.Node, *sent)
	}
}

func TestDispatcher(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.disp.status = client.Dispatcher{
		Strategy: "LEAST_TASKS", Leader: client.Leader{Holder: "run", Address: "a:1", Term: 3}, IsLeader: true, IntervalMs: 5000, Rounds: 2, Placed: 9,
		Waiting: map[string]int{"NO_ELIGIBLE_NODE": 4}, LastRoundAt: 8, Nodes: 2,
	}
	res := f.do(t, http.MethodGet, "/api/system/dispatcher", "")
	if got := want[client.Dispatcher](t, res, http.StatusOK); got.Leader.Term != 3 || got.Waiting["NO_ELIGIBLE_NODE"] != 4 || !got.IsLeader {
		t.Errorf("%+v", got)
	}
	// What GET gave, PUT takes.
	want[client.Dispatcher](t, f.do(t, http.MethodPut, "/api/system/dispatcher", res.Body.String()), http.StatusOK)
	for given, strategy := range map[string]string{"round_robin": "ROUND_ROBIN", "RANDOM": "RANDOM", "Least_Tasks": "LEAST_TASKS"} {
		got := want[client.Dispatcher](t, f.do(t, http.MethodPut, "/api/system/dispatcher", `{"strategy":"`+given+`"}`), http.StatusOK)
		if got.Strategy != strategy || f.disp.status.Strategy != strategy {
			t.Errorf("%s: %+v", given, got)
		}
	}
	wantProblem(t, f.do(t, http.MethodPut, "/api/system/dispatcher", `{"strategy":"fastest"}`), 422, "body.strategy", "fastest", "LEAST_TASKS", "ROUND_ROBIN", "RANDOM")
	wantProblem(t, f.do(t, http.MethodPut, "/api/system/dispatcher", `{"strategy":"RANDOM","speed":1}`), 422, "body.speed")
	wantProblem(t, f.do(t, http.MethodPut, "/api/system/dispatcher", `{}`), 422, "strategy")
}

func TestHealth(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	want[any](t, f.do(t, http.MethodGet, "/livez", ""), http.StatusOK)
	if got := want[client.Readiness](t, f.do(t, http.MethodGet, "/readyz", ""), http.StatusOK); got.Status != "ready" {
		t.Errorf("%+v", got)
	}
	missing := []client.NotReady{{Name: "kafka", Reason: "connection refused"}}
	f.disp.ready = missing
	got := want[client.Readiness](t, f.do(t, http.MethodGet, "/readyz", ""), http.StatusServiceUnavailable)
	if got.Status != "not ready" || len(got.NotReady) != 1 || got.NotReady[0] != missing[0] {
		t.Errorf("%+v", got)
	}
	want[any](t, f.do(t, http.MethodGet, "/livez", ""), http.StatusOK)
}

var elsewhere = regexp.MustCompile(`(?:src|href)="(?:https?:)?//`)

func TestDocsPageNeedsNoNetwork(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, path := range []string{"/api/docs", "/api/docs/"} {
		res := f.do(t, http.MethodGet, path, "")
		if res.Code != http.StatusOK || !strings.Contains(res.Body.String(), "/api/openapi.json") {
			t.Fatalf("%s: status %d: %.200s", path, res.Code, res.Body)
		}
		if found := elsewhere.FindString(res.Body.String()); found != "" {
			t.Errorf("the page loads something from elsewhere: %s", found)
		}
		if policy := res.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'self'") {
			t.Errorf("policy %q", policy)
		}
		assets := regexp.MustCompile(`(?:src|href)="(/[^"]+)"`).FindAllStringSubmatch(res.Body.String(), -1)
		if len(assets) < 3 {
			t.Fatalf("assets %v", assets)
		}
		for _, asset := range assets {
			if got := f.do(t, http.MethodGet, asset[1], ""); got.Code != http.StatusOK || got.Body.Len() == 0 {
				t.Errorf("%s: status %d", asset[1], got.Code)
			}
		}
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.add(t, inState("a", task.Finished), inState("b", task.Created))
	f.do(t, http.MethodGet, "/api/tasks/a", "")
	f.do(t, http.MethodGet, "/api/tasks/b", "")
	f.do(t, http.MethodGet, "/api/nothing/here", "")
	f.do(t, "BREW", "/api/tasks", "")
	f.do(t, http.MethodPost, "/api/tasks", `{"className":"c"}`)
	f.do(t, http.MethodPost, "/api/tasks", `{`)
	f.do(t, http.MethodPost, "/api/tasks/batch", `{"tasks":[{"className":"c"},{"className":"c","id":"a"},{}]}`)
	text := f.do(t, http.MethodGet, "/metrics", "").Body.String()
	for _, line := range []string{
		`skalds_http_requests_total{code="200",method="GET",route="/api/tasks/{id}"} 2`,
		`skalds_http_requests_total{code="404",method="GET",route="none"} 1`,
		`skalds_http_requests_total{code="405",method="other",route="none"} 1`,
		`skalds_tasks_submitted_total{outcome="created"} 2`,
		`skalds_tasks_submitted_total{outcome="exists"} 1`,
		`skalds_tasks_submitted_total{outcome="invalid"} 2`,
		`skalds_tasks{status="Created"} 3`,
		`skalds_tasks{status="Finished"} 1`,
		`skalds_tasks{status="Running"} 0`,
		`skalds_task_count_errors_total 0`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%s is missing", line)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

func TestMetricsWhileTheStoreIsDown(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(d *api.Deps) { d.Tasks = &downTasks{err: context.DeadlineExceeded} })
	res := f.do(t, http.MethodGet, "/metrics", "")
	if res.Code != http.StatusOK || strings.Contains(res.Body.String(), "skalds_tasks{") || !strings.Contains(res.Body.String(), "skalds_task_count_errors_total 1") {
		t.Errorf("status %d: %s", res.Code, res.Body)
	}
}
