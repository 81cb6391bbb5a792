package api_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/skalds-go/skalds/controller/api"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/task"
)

// connect serves the fixture and gives a client of it.
func connect(t *testing.T, f *fixture, token string) *client.Client {
	t.Helper()
	srv := httptest.NewServer(f.handler)
	t.Cleanup(srv.Close)
	c, err := client.New(client.Config{Server: srv.URL, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestClientAndAPIAgree calls every method of the client on the API itself.
func TestClientAndAPIAgree(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(d *api.Deps) { d.Token = "s3cret" })
	f.nodes.list = someNodes(150)
	c := connect(t, f, "s3cret")
	ctx := t.Context()

	if _, err := connect(t, f, "").Get(ctx, "a"); !client.IsStatus(err, http.StatusUnauthorized) {
		t.Errorf("without the token: %v", err)
	}
	persistent := false
	first, err := c.Submit(ctx, client.NewTask{
		ClassName: "resize", ID: "a b?", IdempotencyKey: "k", Attachments: map[string]int{"w": 1}, Priority: 3, Name: "n", Description: "d",
		Source: "s", Mode: task.ModeActive, IsPersistent: &persistent, DeadlineDateTime: 5, Dependencies: []string{},
	})
	if err != nil || first.ID != "a b?" || string(first.Attachments) != `{"w":1}` || first.Mode != task.ModeActive || first.IsPersistent {
		t.Fatalf("submit: %+v, %v", first, err)
	}
	if again, err := c.Submit(ctx, client.NewTask{ClassName: "resize", IdempotencyKey: "k"}); err != nil || again.ID != first.ID {
		t.Errorf("same key: %+v, %v", again, err)
	}
	var no *client.Error
	if _, err := c.Submit(ctx, client.NewTask{ClassName: "resize", ID: "a b?"}); !errors.As(err, &no) || no.Status != 409 || no.Task == nil || no.Task.ID != "a b?" {
		t.Errorf("same id: %v", err)
	}
	if _, err := c.Submit(ctx, client.NewTask{ClassName: "resize", Priority: 11}); !errors.As(err, &no) || no.Status != 422 || no.Errors[0].Location != "body.priority" {
		t.Errorf("bad priority: %v", err)
	}
	items, err := c.SubmitBatch(ctx, []client.NewTask{{ClassName: "x", ID: "b"}, {}})
	if err != nil || len(items) != 2 || items[0].Status != 201 || items[1].Status != 422 {
		t.Errorf("batch: %+v, %v", items, err)
	}
	if got, err := c.Cancel(ctx, "b"); err != nil || got.LifecycleStatus != task.Cancelled {
		t.Errorf("cancel: %+v, %v", got, err)
	}
	if got, err := c.Wait(ctx, "b"); err != nil || got.LifecycleStatus != task.Cancelled {
		t.Errorf("wait: %+v, %v", got, err)
	}
	if got, err := c.Retry(ctx, "b"); err != nil || got.LifecycleStatus != task.Created {
		t.Errorf("retry: %+v, %v", got, err)
	}
	if err := c.Purge(ctx, "b"); !client.IsStatus(err, http.StatusConflict) {
		t.Errorf("purge of one that waits: %v", err)
	}
	if _, err := c.Cancel(ctx, "b"); err != nil {
		t.Error(err)
	}
	if err := c.Purge(ctx, "b"); err != nil {
		t.Errorf("purge: %v", err)
	}
	if _, err := c.Get(ctx, "b"); !client.IsStatus(err, http.StatusNotFound) {
		t.Errorf("get: %v", err)
	}
	checkLists(t, c)
	if d, err := c.SetStrategy(ctx, "random"); err != nil || d.Strategy != "RANDOM" {
		t.Errorf("strategy: %+v, %v", d, err)
	}
	if d, err := c.Dispatcher(ctx); err != nil || d.Strategy != "RANDOM" {
		t.Errorf("dispatcher: %+v, %v", d, err)
	}
	if missing, err := c.Ready(ctx); err != nil || len(missing) != 0 {
		t.Errorf("ready: %v, %v", missing, err)
	}
}

func checkLists(t *testing.T, c *client.Client) {
	t.Helper()
	for i := range 30 {
		if _, err := c.Submit(t.Context(), client.NewTask{ClassName: "many", ID: fmt.Sprintf("m%02d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	page, err := c.List(t.Context(), client.Query{ClassName: "many", IDPrefix: "m", Status: []task.Status{task.Created, task.Failed}, Page: 2, PageSize: 20})
	if err != nil || len(page.Items) != 10 || *page.Total != 30 || page.Page != 2 {
		t.Errorf("list: %+v, %v", page, err)
	}
	n := 0
	for x, err := range c.Tasks(t.Context(), client.Query{ClassName: "many", PageSize: 7}) {
		if n++; err != nil || x.ClassName != "many" {
			t.Fatal(x, err)
		}
	}
	if n != 30 {
		t.Errorf("%d tasks", n)
	}
	n = 0
	for x, err := range c.AllNodes(t.Context()) {
		if n++; err != nil || len(x.CurrentTasks) != 2 {
			t.Fatal(x, err)
		}
	}
	if n != 150 {
		t.Errorf("%d nodes", n)
	}
	if x, err := c.Node(t.Context(), "node-00007"); err != nil || len(x.Tasks) != 2 {
		t.Errorf("node: %+v, %v", x, err)
	}
}
