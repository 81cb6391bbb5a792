package controller_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/skalds-go/skalds/controller"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/task"
)

// Every controller gives the leader's answer: its numbers, which nodes are cordoned and which are gone, and with what
// became of their tasks.
func TestAFollowerGivesTheLeadersAnswer(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.controller()
		pass(time.Second)
		s.controller()
		members := s.cluster(0, 2, func(c *node.Config) { c.Capacity, c.Prefetch = 1, 0 })
		s.submit("wait", 3, "t")
		s.within(2*time.Second, "two run", s.all(task.Running, 2))
		members[0].cut()
		pass(20 * time.Second)
		var answers []string
		for i, c := range s.clients() {
			d, err := c.Dispatcher(s.t.Context())
			if err != nil || d.LeaderError != "" || d.IsLeader != (i == s.leads()) || d.Nodes != 1 || d.Placed < 2 || d.Rounds == 0 {
				t.Errorf("controller %d: %+v, %v", i, d, err)
			}
			page, err := c.Nodes(s.t.Context(), 10, "")
			if err != nil || page.Incomplete != "" || len(page.Items) != 2 {
				t.Fatalf("controller %d: %+v, %v", i, page, err)
			}
			dead, err := c.Node(s.t.Context(), "n1")
			if err != nil || dead.Status != "lost" || dead.Gone == nil || dead.Gone.Reassigned != 1 || dead.Gone.At <= dead.Gone.LastSeen ||
				page.Items[0].Status != "lost" || page.Items[1].Gone != nil {
				t.Errorf("controller %d: %+v, %+v, %v", i, page.Items, dead.Gone, err)
			}
			fleet, err := c.Fleet(s.t.Context())
			answers = append(answers, fmt.Sprint(fleet, dead.Gone.Incarnation, err, d.Placed))
		}
		if len(answers) != 2 || answers[0] != answers[1] {
			t.Errorf("they differ: %q", answers)
		}
	})
}

// cut refuses every connection.
type cut struct{}

func (cut) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("no route") }

// A follower that cannot ask the leader says who that is, whatever it is asked, and still answers by what it knows
// itself.
func TestAFollowerSaysWhoLeadsIfItCannotAsk(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.controller()
		pass(time.Second)
		s.controllerWith(func(d *controller.Deps) { d.Peers = cut{} })
		s.cluster(0, 1)
		id := s.submit("nobody", 1, "t")[0]
		pass(time.Second)
		c := s.client(1)
		says := func(what, text string) {
			t.Helper()
			if !strings.Contains(text, "127.0.0.1:8000") || !strings.Contains(text, "no route") {
				t.Errorf("%s says %q", what, text)
			}
		}
		d, err := c.Dispatcher(s.t.Context())
		if err != nil || d.Strategy == "" || d.Settings == nil {
			t.Errorf("%+v, %v", d, err)
		}
		says("status", d.LeaderError)
		page, err := c.Nodes(s.t.Context(), 10, "")
		if err != nil || len(page.Items) != 1 {
			t.Errorf("%+v, %v", page, err)
		}
		says("nodes", page.Incomplete)
		for what, ask := range map[string]func() error{
			"explain": func() error { _, err := c.Explain(s.t.Context(), id); return err },
			"pending": func() error { _, err := c.Pending(s.t.Context()); return err },
			"fleet":   func() error { _, err := c.Fleet(s.t.Context()); return err },
		} {
			err := ask()
			if !client.IsStatus(err, http.StatusServiceUnavailable) {
				t.Fatalf("%s: %v", what, err)
			}
			says(what, err.Error())
		}
	})
}
