// Package chaos_test kills, freezes and cuts off real processes under load, and checks that nothing is lost and nothing
// doubled.
//
// Each process has proxies of its own, so that one process can be cut off from one service. Redis keeps nothing over a
// restart. The MongoDB-wire server holds its data in memory: it is cut off and stalled, never killed.
package chaos_test

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skalds-go/skalds/pkg/clock"
	"github.com/skalds-go/skalds/pkg/store/mongo"
	"github.com/skalds-go/skalds/test/chaos/history"
	"github.com/skalds-go/skalds/test/cluster"
	"github.com/skalds-go/skalds/test/process"
)

func TestMain(m *testing.M) {
	if err := os.Setenv("SKALDS_REDIS_ARGS", "--appendonly no"); err != nil {
		panic(err)
	}
	os.Exit(process.Run(m))
}

const (
	nodes       = 3
	controllers = 2
	capacity    = 20
)

// cancelGrace is how long a handler may take to stop before it is abandoned.
const cancelGrace = time.Second

// tuned has dead nodes and leaders found in seconds.
func tuned() map[string]string {
	return map[string]string{
		"NODE_HEARTBEAT_INTERVAL": "250ms", "NODE_LOST_AFTER": rules.LostAfter.String(), "NODE_STOP_MARGIN": rules.StopMargin.String(),
		"LEADER_LEASE": "1s", "ASSIGN_RESEND_AFTER": "1s", "MONITOR_TASK_INTERVAL": "2s", "DISPATCHER_INTERVAL": "1s",
		"NODE_CAPACITY": fmt.Sprint(capacity), "DRAIN_SOFT": "1s", "DRAIN_HARD": "2s", "CANCEL_GRACE": cancelGrace.String(),
	}
}

var rules = history.Rules{LostAfter: 2 * time.Second, StopMargin: 250 * time.Millisecond, Instant: 2 * time.Second}

// world is two controllers and three nodes on services of their own.
type world struct {
	*cluster.Cluster // its T is that of the present subtest
	root             *testing.T
	members          []*member // the nodes, then the controllers
	store            *mongo.Store
	runs             string // directory of the logs of runs
	restarts         sync.WaitGroup
	turns            turns // of this machine, since the present subtest began

	mu        sync.Mutex // guards what follows
	freezes   []history.Freeze
	gone      map[int]time.Duration
	submitted []string               // acknowledged
	may       map[string]history.May // by task
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Cluster: cluster.New(t, "4.4"), root: t, runs: t.TempDir(), gone: map[int]time.Duration{}, may: map[string]history.May{}}
	maps.Copy(w.Env, tuned())
	w.Env["CHAOS_RUNS"] = w.runs
	w.Env["GOGC"] = "100" // what a process has not collected yet must not look like what it keeps
	var err error
	if w.store, err = mongo.Open(t.Context(), w.Mongo, w.Env["DB_NAME"]); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.store.Close(context.Background()) })
	t.Cleanup(w.restarts.Wait)
	over := make(chan struct{})
	go w.turns.watch(over)
	t.Cleanup(func() { close(over) })
	server, err := url.Parse(w.Mongo)
	if err != nil {
		t.Fatal(err)
	}
	for i := range nodes {
		w.members = append(w.members, newMember(w, node, fmt.Sprintf("node-%d", i+1), server))
	}
	for i := range controllers {
		w.members = append(w.members, newMember(w, controller, fmt.Sprintf("controller-%d", i+1), server))
	}
	w.Client = w.controllers()[0].api
	w.whole()
	return w
}

func (w *world) nodes() []*member       { return w.members[:nodes] }
func (w *world) controllers() []*member { return w.members[nodes:] }

func (w *world) member(name string) *member {
	for _, m := range w.members {
		if m.name == name {
			return m
		}
	}
	panic("no member " + name)
}

// recoverLimit is how long everything may take to go on after the faults: a broker that was killed takes up to 10 s, on
// a busy machine.
const recoverLimit = time.Minute

// whole ends all faults, and waits until every process does its work.
func (w *world) whole() {
	w.T.Helper()
	began := time.Now()
	w.restarts.Wait()
	w.Kafka.Start(w.T)
	w.Redis.Start(w.T)
	for _, m := range w.members {
		m.restore()
	}
	up := time.Since(began)
	for _, c := range w.controllers() {
		w.Ready(c.api)
	}
	ready := time.Since(began)
	for _, n := range w.nodes() {
		w.online(n)
	}
	online := time.Since(began)
	w.seen()
	w.T.Logf("all processes run after %s, controllers are ready after %s, nodes registered after %s, all work after %s",
		up.Round(time.Millisecond), ready.Round(time.Millisecond), online.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
}

// seen waits until the leader sees all nodes.
func (w *world) seen() {
	w.T.Helper()
	leader := w.leader()
	w.Eventually(recoverLimit, "the leader sees all nodes", func(ctx context.Context) (bool, string) {
		d, err := leader.api.Dispatcher(ctx)
		return err == nil && d.Nodes == nodes, fmt.Sprint(d.Nodes, " nodes ", err)
	})
}

// online waits until the present process of a node is registered.
func (w *world) online(n *member) {
	w.T.Helper()
	w.Eventually(recoverLimit, n.name+" is registered", func(ctx context.Context) (bool, string) {
		got, err := w.Client.Node(ctx, n.name)
		return err == nil && got.State == "online" && got.StartedAt >= n.began.UnixMilli(),
			fmt.Sprintf("%s, its process runs: %v, %v", got.State, n.proc.Running(), err)
	})
}

// leader waits until one controller leads, by its own word, and gives it.
func (w *world) leader() *member {
	w.T.Helper()
	var found *member
	w.Eventually(recoverLimit, "one leads", func(ctx context.Context) (bool, string) {
		found = nil
		for _, c := range w.controllers() {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			d, err := c.api.Dispatcher(ctx)
			cancel()
			if err == nil && d.IsLeader {
				if found != nil {
					return false, "two lead"
				}
				found = c
			}
		}
		return found != nil, "nobody leads"
	})
	return found
}

// follower gives the controller that does not lead.
func (w *world) follower() *member {
	w.T.Helper()
	leader := w.leader()
	for _, c := range w.controllers() {
		if c != leader {
			return c
		}
	}
	panic("one controller")
}

// record is what is known now.
func (w *world) record() history.Record {
	w.T.Helper()
	lines, err := history.Read(w.runs)
	if err != nil {
		w.T.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.members {
		m.noteEnd()
	}
	return history.Record{Rules: rules, Lines: lines, Freezes: append([]history.Freeze(nil), w.freezes...), Gone: maps.Clone(w.gone)}
}

// runsOf gives the runs of the tasks of a prefix, in the order of their attempts.
func (w *world) runsOf(prefix string) map[string][]history.Run {
	w.T.Helper()
	r := w.record()
	runs, wrong := r.Runs()
	for _, text := range wrong {
		w.T.Error(text)
	}
	maps.DeleteFunc(runs, func(id string, _ []history.Run) bool { return !strings.HasPrefix(id, prefix) })
	return runs
}

func boot() time.Duration { return clock.System{}.Boot() }

// hold lets a fault last.
func (w *world) hold(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.T.Context().Done():
	}
}
