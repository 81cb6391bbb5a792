package controller_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/skalds-go/skalds/controller/placement"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/node/session"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

// TestAFollowerExplainsThroughTheLeader: what only the leader knows, any controller tells, and it tells the same; also
// when the leader is another by then. While nobody leads, it says that.
func TestAFollowerExplainsThroughTheLeader(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		stop := s.controller()
		pass(time.Second)
		s.cluster(1, 1, func(c *node.Config) { c.Capacity, c.Prefetch = 1, 0 })
		running := s.submit("wait", 1, "running")[0]
		s.within(time.Second, "it runs", s.all(task.Running, 1))
		full := s.submit("wait", 3, "full")[2]
		missing := s.submit("nobody", 2, "missing")[0]
		pass(time.Second)
		for range 2 {
			for i, c := range s.clients() {
				for id, want := range map[string]string{running: "RUNNING", full: string(placement.NodesFull), missing: string(placement.NoNodeForClass)} {
					e, err := c.Explain(s.t.Context(), id)
					if err != nil || e.Reason != want || e.Text == "" {
						t.Errorf("controller %d of %s: %+v %v, want %s", i, id, e, err, want)
					}
				}
				p, err := c.Pending(s.t.Context())
				if err != nil || p.Total != 5 || len(p.Groups) != 2 || p.Groups[0].Tasks != 3 || p.Groups[1].Tasks != 2 || p.Groups[0].Text == "" {
					t.Errorf("controller %d: %+v %v", i, p, err)
				}
			}
			stop()
			pass(3 * time.Second)
			if s.leads() != 1 {
				t.Fatal("the other one does not lead")
			}
			s.controller()
			pass(time.Second)
		}
	})
}

// clients are of all controllers that run.
func (s *system) clients() []*client.Client {
	s.t.Helper()
	var list []*client.Client
	for i := range s.doors {
		c := s.client(i)
		if _, err := c.Dispatcher(s.t.Context()); err == nil {
			list = append(list, c)
		}
	}
	return list
}

// odd is a registry of a node that says of itself what cannot be.
type odd struct {
	session.Registry
	say func(*registry.Node)
}

func (o *odd) Heartbeat(ctx context.Context, n *registry.Node) error {
	c := *n
	o.say(&c)
	return o.Registry.Heartbeat(ctx, &c)
}

// TestANodeThatReportsNonsenseGetsNoWork, and is shown with the reason, by itself and to whoever asks why a task waits.
// One that makes sense again is taken back.
func TestANodeThatReportsNonsenseGetsNoWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		say  func(*registry.Node)
		want string
	}{
		"capacity 2^31":       {func(n *registry.Node) { n.Capacity = math.MaxInt32 + 1 }, "capacity"},
		"negative load":       {func(n *registry.Node) { n.Running = -3 }, "running"},
		"time in the future":  {func(n *registry.Node) { n.StartedAt += time.Hour.Milliseconds() * 48 }, "startedAt"},
		"no number":           {func(n *registry.Node) { n.CPU = math.NaN() }, "cpu"},
		"a class without end": {func(n *registry.Node) { n.Classes = []string{"work", strings.Repeat("x", 10_000)} }, "class"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(s *system) {
				say := c.say
				reg := &odd{s.registry, func(n *registry.Node) {
					s.mu.Lock()
					defer s.mu.Unlock()
					say(n)
				}}
				s.controller()
				s.cluster(1, 0)
				s.nodeOn("odd", reg)
				s.joined(1)
				id := s.submit("work", 10, "t")[0]
				pass(30 * time.Second)
				if n := s.counts()[task.Created]; n != 10 || s.eventsFor("odd") != 0 {
					t.Errorf("%d of 10 wait, and it was sent %d events", n, s.eventsFor("odd"))
				}
				api := s.client(1)
				if n, err := api.Node(s.t.Context(), "odd"); err != nil || !strings.Contains(n.Invalid, c.want) {
					t.Errorf("it is shown as %+v, %v", n, err)
				}
				if page, err := api.Nodes(s.t.Context(), 10, ""); err != nil || len(page.Items) != 1 || !strings.Contains(page.Items[0].Invalid, c.want) {
					t.Errorf("it is listed as %+v, %v", page, err)
				}
				if e, err := api.Explain(s.t.Context(), id); err != nil || !strings.Contains(e.NotTaking["odd"], c.want) {
					t.Errorf("explained as %+v, %v", e, err)
				}
				s.node("n1")
				s.within(3*time.Second, "all are finished elsewhere", s.all(task.Finished, 10))
				s.mu.Lock()
				say = func(*registry.Node) {}
				s.mu.Unlock()
				pass(3 * time.Second) // a heartbeat, and the leader's next look at it
				s.submit("wait", 12, "u")
				s.within(time.Second, "it works", func() bool { return s.eventsFor("odd") > 0 })
			})
		})
	}
}

// TestSettingsOfAFollowerHoldWithinASecondAndOutliveAllControllers.
func TestSettingsOfAFollowerHoldWithinASecondAndOutliveAllControllers(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		stops := []func(){s.controller()}
		pass(time.Second)
		stops = append(stops, s.controller())
		s.cluster(0, 1)
		api := s.client(1)
		for _, err := range []error{
			api.SetTaskLimit(s.t.Context(), client.LimitNamespace, "shop", 2),
			api.SetTaskLimit(s.t.Context(), client.LimitPool, "gpu", 1),
			api.SetRate(s.t.Context(), client.LimitClass, "work", client.Rate{PerSecond: 1, Burst: 1}),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if _, err := api.SetStrategy(s.t.Context(), "ROUND_ROBIN"); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		submit := func(round string) {
			s.shared("wait", 4, "shop"+round, func(_ int, t *task.Task) { t.Namespace = "shop" })
			s.shared("wait", 4, "gpu"+round, func(_ int, t *task.Task) { t.Pool = "gpu" })
			s.shared("work", 30, "work"+round, func(int, *task.Task) {})
		}
		check := func(finished int64) {
			t.Helper()
			if c := s.counts(); c[task.Running] != 3 || c[task.Finished] < finished || c[task.Finished] > finished+2 {
				t.Errorf("%v, want 2 of the namespace and 1 of the pool, and %d to %d of the rest", c, finished, finished+2)
			}
			for i, c := range s.clients() {
				if d, err := c.Dispatcher(s.t.Context()); err != nil || d.Strategy != "ROUND_ROBIN" || d.Settings == nil || d.Settings.Pools["gpu"] != 1 {
					t.Errorf("controller %d shows %+v, %v", i, d, err)
				}
				if pools, err := c.Pools(s.t.Context()); err != nil || len(pools) != 1 || pools[0].InUse == nil || *pools[0].InUse != 1 {
					t.Errorf("controller %d shows the pools %+v, %v", i, pools, err)
				}
			}
		}
		submit("a")
		pass(10 * time.Second)
		check(10)
		for _, stop := range stops {
			stop()
		}
		pass(5 * time.Second)
		if c := s.counts(); c[task.Finished] > 12 {
			t.Fatalf("without a controller: %v", c)
		}
		s.controller()
		s.controller()
		pass(time.Second)
		before := s.counts()[task.Finished]
		submit("b")
		pass(10 * time.Second)
		check(before + 10)
	})
}
