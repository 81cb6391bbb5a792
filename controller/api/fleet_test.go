package api_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/skalds-go/skalds/controller/api"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/registry"
)

func TestACordonedNodeSaysWhy(t *testing.T) {
	t.Parallel()
	why := client.Cordon{Reason: "it is deaf", Since: 1, Until: 2}
	f := newFixture(t)
	f.disp.fleet.Cordoned = map[string]client.Cordon{"n2": why}
	f.nodes.list = []registry.Node{{ID: "n1", Incarnation: "a"}, {ID: "n2", Incarnation: "b"}}
	page := want[client.NodePage](t, f.do(t, http.MethodGet, "/api/skalds", ""), http.StatusOK)
	if len(page.Items) != 2 || page.Items[0].Cordon != nil || page.Items[1].Cordon == nil || *page.Items[1].Cordon != why {
		t.Errorf("%+v", page.Items)
	}
	if one := want[client.Node](t, f.do(t, http.MethodGet, "/api/skalds/n2", ""), http.StatusOK); one.Cordon == nil || *one.Cordon != why {
		t.Errorf("%+v", one.Cordon)
	}
}

// A node that is gone is shown among the others for as long as the leader remembers it, unless it is back, with what
// became of its tasks.
func TestNodesThatAreGoneAreShown(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	dead := client.GoneNode{ID: "n2", Incarnation: "b", How: "lost", At: 5, LastSeen: 3, Reassigned: 2, Ended: 1, Waiting: 4}
	f.disp.fleet.Gone = []client.GoneNode{
		dead, {ID: "n4", Incarnation: "d", How: "left", At: 4}, {ID: "n1", How: "replaced", At: 3}, {ID: "n2", Incarnation: "older", How: "left", At: 2},
	}
	f.nodes.list = []registry.Node{{ID: "n3", Incarnation: "c"}, {ID: "n1", Incarnation: "a"}}
	var states []string
	for cursor := ""; ; {
		page := want[client.NodePage](t, f.do(t, http.MethodGet, "/api/skalds?pageSize=1&cursor="+cursor, ""), http.StatusOK)
		for _, n := range page.Items {
			states = append(states, n.ID+" "+n.Incarnation+" "+n.Status)
		}
		if page.Total != 4 || page.Incomplete != "" {
			t.Errorf("%+v", page)
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	if got := "n1 a , n2 b lost, n3 c , n4 d left"; len(states) != 4 || states[0]+", "+states[1]+", "+states[2]+", "+states[3] != got {
		t.Errorf("%q, want %s", states, got)
	}
	if one := want[client.Node](t, f.do(t, http.MethodGet, "/api/skalds/n2", ""), http.StatusOK); one.Gone == nil || *one.Gone != dead {
		t.Errorf("%+v", one)
	}
	if one := want[client.Node](t, f.do(t, http.MethodGet, "/api/skalds/n1", ""), http.StatusOK); one.Gone != nil {
		t.Errorf("it is back: %+v", one)
	}
	wantProblem(t, f.do(t, http.MethodGet, "/api/skalds/n5", ""), http.StatusNotFound)
}

// Without a leader nodes are shown by their heartbeats, and the answer says what is missing. What is the leader's alone
// says who leads.
func TestNodesWithoutALeader(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.nodes.list = []registry.Node{{ID: "n1"}}
	f.disp.unled = &api.NoLeaderError{Leader: client.Leader{Holder: "c7", Address: "there:8000", Term: 9}, Reason: "connection refused"}
	said := "the controller that leads (c7 at there:8000, term 9) cannot be asked: connection refused"
	if page := want[client.NodePage](t, f.do(t, http.MethodGet, "/api/skalds", ""), http.StatusOK); len(page.Items) != 1 || page.Incomplete != said {
		t.Errorf("%+v", page)
	}
	wantProblem(t, f.do(t, http.MethodGet, "/api/system/fleet", ""), http.StatusServiceUnavailable, said)
	f.disp.unled = errors.New("broken")
	wantProblem(t, f.do(t, http.MethodGet, "/api/system/fleet", ""), http.StatusInternalServerError)
}

// A node that a person drains is shown so before its heartbeats say it; one that is gone is shown as gone.
func TestADrainIsShownAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.disp.fleet.Draining = []string{"n1", "n3"}
	f.disp.fleet.Gone = []client.GoneNode{{ID: "n3", How: "lost"}}
	f.nodes.list = []registry.Node{{ID: "n1", State: registry.Online}, {ID: "n2", State: registry.Online}}
	page := want[client.NodePage](t, f.do(t, http.MethodGet, "/api/skalds", ""), http.StatusOK)
	for i, state := range []registry.State{registry.Draining, registry.Online, "lost"} {
		if n := page.Items[i]; n.State != state || n.Status != string(state) {
			t.Errorf("%s is shown as %s, %s; want %s", n.ID, n.State, n.Status, state)
		}
	}
	if one := want[client.Node](t, f.do(t, http.MethodGet, "/api/skalds/n1", ""), http.StatusOK); one.State != registry.Draining {
		t.Errorf("n1 is shown as %s", one.State)
	}
}
