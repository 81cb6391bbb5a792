// Package registrytest is the one suite that every registry passes. What it demands is what package registry promises.
package registrytest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

// Server is a registry on a server of its own, empty, with what a test can do to it. A func that is nil cannot be done
// there; the tests that need it are skipped.
type Server struct {
	Registry registry.Registry
	// Advance lets time pass for the keys.
	Advance func(time.Duration)
	// Restart restarts the server, with a new run id and all its keys.
	Restart func()
	// Empty drops all keys.
	Empty func()
	// SetDown lets the server answer nothing, and again.
	SetDown func(bool)
}

// Run runs the suite. start makes a server for one test and lets it end with the test.
func Run(t *testing.T, start func(t *testing.T) Server) {
	t.Helper()
	tests := map[string]func(t *testing.T, s Server){
		"a heartbeat reads back":                 readsBack,
		"the newest heartbeat counts":            newestCounts,
		"a taken id":                             taken,
		"a dead incarnation is replaced":         replaced,
		"a late heartbeat changes nothing":       late,
		"bad heartbeats are refused":             refused,
		"leave":                                  leave,
		"evict":                                  evict,
		"the task list":                          taskList,
		"the task list is bounded":               taskListBounded,
		"the task list after the server emptied": taskListAfterEmpty,
		"keys expire":                            expire,
		"emptied":                                emptied,
		"restart changes the run id":             restart,
		"down and up":                            down,
		"the context":                            contexts,
		"close":                                  closing,
		"many at once":                           concurrent,
		"nothing is shared with the caller":      nothingShared,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			t.Cleanup(func() {
				if err := s.Registry.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
			test(t, s)
		})
	}
}

// Example is a heartbeat with every field set.
func Example(id, incarnation string, counter int64) *registry.Node {
	return &registry.Node{
		ID: id, Incarnation: incarnation, Counter: counter, Mode: registry.ModeNode, State: registry.Online,
		Classes: []string{"resize", "größe", `quo"te`}, Labels: map[string]string{"zone": "a", "": "x"}, Capacity: 16, Prefetch: 8,
		Running: 3, Queued: 2, Received: 1 << 40, Finished: 1<<40 - 5, Partition: 999, Protocol: 1, Address: "127.0.0.1:8001",
		Version: "1.2.3", CPU: 1.25, Memory: 1 << 33, StartedAt: 1_767_323_045_123,
		Replaces: "an earlier one", Crashed: true, Term: 1 << 41, RoundRobinCount: 1 << 42, SlotsRunning: 5, SlotsQueued: 4,
		CapacityByClass: map[string]int{"resize": 4, "größe": 2}, RunningByClass: map[string]int{"resize": 4, `quo"te`: 5},
		CPUs: 8, MemoryTotal: 1 << 35,
		Tasks: []registry.HeldTask{
			{ID: "t1", Attempt: 1, ClaimID: "c1", State: task.ReportStarted},
			{ID: "t2", Attempt: 7, ClaimID: "c2"},
		},
	}
}

// WithoutTasks is what a snapshot has of a heartbeat.
func WithoutTasks(n *registry.Node) registry.Node {
	c := *n
	c.Tasks = nil
	return c
}

func heartbeat(t *testing.T, r registry.Registry, n *registry.Node) {
	t.Helper()
	if err := r.Heartbeat(t.Context(), n); err != nil {
		t.Fatalf("heartbeat of %s, incarnation %s, counter %d: %v", n.ID, n.Incarnation, n.Counter, err)
	}
}

func snapshot(t *testing.T, r registry.Registry) registry.Snapshot {
	t.Helper()
	s, err := r.Snapshot(t.Context())
	if err != nil {
		t.Fatalf("snapshot: %v", err)
	}
	if s.RunID == "" {
		t.Error("the snapshot names no run")
	}
	return s
}

func ids(s registry.Snapshot) []string {
	list := make([]string, 0, len(s.Nodes))
	for _, n := range s.Nodes {
		list = append(list, n.ID)
	}
	return list
}

func node(t *testing.T, r registry.Registry, id string) registry.Node {
	t.Helper()
	n, found, err := r.Node(t.Context(), id)
	if err != nil || !found {
		t.Fatalf("node %s: found %v, error %v", id, found, err)
	}
	return n
}

func readsBack(t *testing.T, s Server) {
	if got := snapshot(t, s.Registry); len(got.Nodes) != 0 {
		t.Fatalf("a new server has nodes: %v", got.Nodes)
	}
	if err := s.Registry.Ping(t.Context()); err != nil {
		t.Errorf("ping: %v", err)
	}
	full := Example("full", "i1", 5)
	bare := &registry.Node{ID: "bare", Incarnation: "i2", Counter: 1}
	odd := &registry.Node{ID: "*a b:[ü", Incarnation: "i3", Counter: 1, Tasks: []registry.HeldTask{{ID: "{x}", Attempt: 1, ClaimID: "c"}}}
	for _, n := range []*registry.Node{full, bare, odd} {
		heartbeat(t, s.Registry, n)
	}
	got := snapshot(t, s.Registry)
	want := []registry.Node{WithoutTasks(odd), WithoutTasks(bare), WithoutTasks(full)} // by id
	if !reflect.DeepEqual(got.Nodes, want) {
		t.Errorf("snapshot = %+v\nwant       %+v", got.Nodes, want)
	}
	if n := node(t, s.Registry, "full"); !reflect.DeepEqual(n, *full) {
		t.Errorf("node = %+v\nwant   %+v", n, *full)
	}
	if n := node(t, s.Registry, "bare"); len(n.Tasks) != 0 {
		t.Errorf("a node without tasks has %v", n.Tasks)
	}
	if n := node(t, s.Registry, odd.ID); !slices.Equal(n.Tasks, odd.Tasks) {
		t.Errorf("tasks = %v, want %v", n.Tasks, odd.Tasks)
	}
	for _, id := range []string{"none", "", "}", "*"} {
		if n, found, err := s.Registry.Node(t.Context(), id); found || err != nil {
			t.Errorf("node %q, which is not there: %+v, %v, %v", id, n, found, err)
		}
	}
}

func newestCounts(t *testing.T, s Server) {
	for counter := int64(1); counter <= 5; counter++ {
		n := Example("n1", "i", counter)
		n.Running = int(counter)
		if counter == 5 {
			n.State, n.Classes, n.Labels = registry.Draining, nil, nil
		}
		heartbeat(t, s.Registry, n)
		got := snapshot(t, s.Registry)
		if want := []registry.Node{WithoutTasks(n)}; !reflect.DeepEqual(got.Nodes, want) {
			t.Fatalf("after number %d: %+v\nwant %+v", counter, got.Nodes, want)
		}
	}
}

func taken(t *testing.T, s Server) {
	first, second := Example("n1", "first", 9), Example("n1", "second", 1)
	second.Tasks = nil
	heartbeat(t, s.Registry, first)
	for _, counter := range []int64{1, 9, 100} {
		second.Counter = counter
		err := s.Registry.Heartbeat(t.Context(), second)
		if !errors.Is(err, registry.ErrTaken) {
			t.Errorf("a second incarnation at %d: %v, want ErrTaken", counter, err)
		} else if !strings.Contains(err.Error(), "first") || !strings.Contains(err.Error(), "n1") {
			t.Errorf("the error does not say who holds which id: %v", err)
		}
	}
	if got := node(t, s.Registry, "n1"); !reflect.DeepEqual(got, *first) {
		t.Errorf("the holder's keys were changed: %+v", got)
	}
	first.Counter++
	heartbeat(t, s.Registry, first)
	if err := s.Registry.Leave(t.Context(), "n1", "first"); err != nil {
		t.Fatal(err)
	}
	heartbeat(t, s.Registry, second)
	if got := node(t, s.Registry, "n1"); got.Incarnation != "second" || len(got.Tasks) != 0 {
		t.Errorf("after the first left: %+v", got)
	}
}

// replaced: an incarnation that names a dead one takes its place at once, and no other's.
func replaced(t *testing.T, s Server) {
	first, second := Example("n1", "first", 9), Example("n1", "second", 1)
	second.Tasks = nil
	heartbeat(t, s.Registry, first)
	second.Replaces = "another"
	if err := s.Registry.Heartbeat(t.Context(), second); !errors.Is(err, registry.ErrTaken) {
		t.Errorf("the place of another: %v, want ErrTaken", err)
	}
	second.Replaces = "first"
	heartbeat(t, s.Registry, second)
	if got := node(t, s.Registry, "n1"); !reflect.DeepEqual(WithoutTasks(&got), WithoutTasks(second)) || len(got.Tasks) != 0 {
		t.Errorf("the holder is %+v\nwant %+v", got, *second)
	}
	first.Counter++
	if err := s.Registry.Heartbeat(t.Context(), first); !errors.Is(err, registry.ErrTaken) {
		t.Errorf("the one that was replaced: %v, want ErrTaken", err)
	}
	third := Example("n1", "third", 1)
	third.Replaces = "second"
	heartbeat(t, s.Registry, third) // with a list, over a holder that had none
	third.Counter++
	heartbeat(t, s.Registry, third)
	if got := node(t, s.Registry, "n1"); !reflect.DeepEqual(got, *third) {
		t.Errorf("the holder is %+v\nwant %+v", got, *third)
	}
	absent := Example("n2", "first", 1)
	heartbeat(t, s.Registry, absent) // there is nobody to replace
}

func late(t *testing.T, s Server) {
	now, old := Example("n1", "i", 10), Example("n1", "i", 9)
	old.Tasks, old.State = nil, registry.Draining
	heartbeat(t, s.Registry, now)
	if err := s.Registry.Heartbeat(t.Context(), old); !errors.Is(err, registry.ErrStale) {
		t.Errorf("an older heartbeat: %v, want ErrStale", err)
	}
	if got := node(t, s.Registry, "n1"); !reflect.DeepEqual(got, *now) {
		t.Errorf("the older one changed something: %+v", got)
	}
	heartbeat(t, s.Registry, now) // sent twice
}

func refused(t *testing.T, s Server) {
	for name, n := range map[string]*registry.Node{
		"no id":           {Incarnation: "i"},
		"no incarnation":  {ID: "n1"},
		"control":         {ID: "n\x00", Incarnation: "i"},
		"brace":           {ID: "}n", Incarnation: "i"},
		"replaces itself": {ID: "n1", Incarnation: "i", Replaces: "i"},
		"too large":       {ID: "n1", Incarnation: "i", Classes: []string{strings.Repeat("x", registry.MaxNodeBytes)}},
	} {
		if err := s.Registry.Heartbeat(t.Context(), n); err == nil || errors.Is(err, registry.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := snapshot(t, s.Registry); len(got.Nodes) != 0 {
		t.Errorf("a refused heartbeat left %v", ids(got))
	}
	for _, who := range [][2]string{{"", "i"}, {"n1", ""}, {"}n", "i"}} {
		if err := s.Registry.Leave(t.Context(), who[0], who[1]); err == nil {
			t.Errorf("leave of %q is no error", who)
		}
	}
}

func leave(t *testing.T, s Server) {
	heartbeat(t, s.Registry, Example("n1", "i", 1))
	heartbeat(t, s.Registry, Example("n2", "i", 1))
	for _, who := range [][2]string{{"n1", "other"}, {"none", "i"}} {
		if err := s.Registry.Leave(t.Context(), who[0], who[1]); err != nil {
			t.Errorf("leave of %v: %v", who, err)
		}
	}
	if got := ids(snapshot(t, s.Registry)); !slices.Equal(got, []string{"n1", "n2"}) {
		t.Errorf("another's leave removed something: %v", got)
	}
	if got := node(t, s.Registry, "n1"); len(got.Tasks) != 2 {
		t.Errorf("another's leave removed tasks: %v", got.Tasks)
	}
	for range 2 { // again does no harm
		if err := s.Registry.Leave(t.Context(), "n1", "i"); err != nil {
			t.Errorf("leave: %v", err)
		}
	}
	if got := ids(snapshot(t, s.Registry)); !slices.Equal(got, []string{"n2"}) {
		t.Errorf("after n1 left: %v", got)
	}
	if _, found, err := s.Registry.Node(t.Context(), "n1"); found || err != nil {
		t.Errorf("n1 after it left: %v, %v", found, err)
	}
}

// evict: an incarnation that was evicted is gone and cannot come back; another can take its place at once.
func evict(t *testing.T, s Server) {
	n := Example("n1", "i", 1)
	heartbeat(t, s.Registry, n)
	if err := s.Registry.Evict(t.Context(), "n1", "another"); err != nil {
		t.Error(err)
	}
	n.Counter++
	heartbeat(t, s.Registry, n) // it was not meant
	for range 2 {               // again does no harm
		if err := s.Registry.Evict(t.Context(), "n1", "i"); err != nil {
			t.Fatal(err)
		}
	}
	if got := snapshot(t, s.Registry); len(got.Nodes) != 0 {
		t.Errorf("after it was evicted: %v", ids(got))
	}
	n.Counter++
	if err := s.Registry.Heartbeat(t.Context(), n); !errors.Is(err, registry.ErrTaken) {
		t.Errorf("it comes back: %v, want ErrTaken", err)
	}
	heartbeat(t, s.Registry, Example("n1", "next", 1))
	if got := node(t, s.Registry, "n1"); got.Incarnation != "next" || len(got.Tasks) != 2 {
		t.Errorf("the next one is %+v", got)
	}
	for _, who := range [][2]string{{"", "i"}, {"n1", ""}} {
		if err := s.Registry.Evict(t.Context(), who[0], who[1]); err == nil {
			t.Errorf("evict of %q is no error", who)
		}
	}
	if s.Advance == nil {
		return
	}
	if err := s.Registry.Leave(t.Context(), "n1", "next"); err != nil {
		t.Fatal(err)
	}
	s.Advance(registry.KeyTTL)
	heartbeat(t, s.Registry, n) // nothing is kept for ever
}

func taskList(t *testing.T, s Server) {
	held := func(id string, attempt int64, state task.Kind) registry.HeldTask {
		return registry.HeldTask{ID: id, Attempt: attempt, ClaimID: fmt.Sprintf("%s.%d", id, attempt), State: state}
	}
	steps := []struct {
		name       string
		send, want []registry.HeldTask
	}{
		{"none", nil, nil},
		{"one", []registry.HeldTask{held("a", 1, "")}, []registry.HeldTask{held("a", 1, "")}},
		{"the same", []registry.HeldTask{held("a", 1, "")}, []registry.HeldTask{held("a", 1, "")}},
		{"its state", []registry.HeldTask{held("a", 1, task.ReportStarted)}, []registry.HeldTask{held("a", 1, task.ReportStarted)}},
		{"another", []registry.HeldTask{held("b", 1, ""), held("a", 1, "")}, []registry.HeldTask{held("a", 1, ""), held("b", 1, "")}},
		{"the same in another order", []registry.HeldTask{held("a", 1, ""), held("b", 1, "")}, []registry.HeldTask{held("a", 1, ""), held("b", 1, "")}},
		{"two attempts", []registry.HeldTask{held("b", 1, task.ReportReleased), held("b", 2, "")}, []registry.HeldTask{held("b", 2, "")}},
		{"two attempts, turned", []registry.HeldTask{held("b", 2, ""), held("b", 1, task.ReportReleased)}, []registry.HeldTask{held("b", 2, "")}},
		{"none again", nil, nil},
	}
	for i, step := range steps {
		n := Example("n1", "i", int64(i+1))
		n.Tasks = step.send
		heartbeat(t, s.Registry, n)
		if got := node(t, s.Registry, "n1"); !slices.Equal(got.Tasks, step.want) || got.Counter != n.Counter {
			t.Errorf("%s: counter %d, tasks %v, want %d, %v", step.name, got.Counter, got.Tasks, n.Counter, step.want)
		}
	}
}

func many(n int) []registry.HeldTask {
	list := make([]registry.HeldTask, n)
	for i := range list {
		list[i] = registry.HeldTask{ID: fmt.Sprintf("t%06d", i), Attempt: 1, ClaimID: fmt.Sprintf("c%06d", i), State: task.ReportStarted}
	}
	return list
}

func taskListBounded(t *testing.T, s Server) {
	n := Example("n1", "i", 1)
	n.Tasks = many(registry.MaxTasks)
	heartbeat(t, s.Registry, n)
	if got := node(t, s.Registry, "n1"); !slices.Equal(got.Tasks, n.Tasks) {
		t.Errorf("of %d tasks %d came back", len(n.Tasks), len(got.Tasks))
	}
	for counter := int64(2); counter < 4; counter++ {
		n.Counter, n.Tasks = counter, many(registry.MaxTasks+1)
		heartbeat(t, s.Registry, n) // it is alive
		if _, _, err := s.Registry.Node(t.Context(), "n1"); !errors.Is(err, registry.ErrIncomplete) {
			t.Errorf("a list that is too long: %v, want ErrIncomplete", err)
		}
		if got := snapshot(t, s.Registry); len(got.Nodes) != 1 || got.Nodes[0].Counter != counter {
			t.Errorf("its heartbeat does not count: %+v", got.Nodes)
		}
	}
	n.Counter, n.Tasks = 4, many(2)
	heartbeat(t, s.Registry, n)
	if got := node(t, s.Registry, "n1"); !slices.Equal(got.Tasks, n.Tasks) {
		t.Errorf("after it was too long: %v", got.Tasks)
	}
}

func taskListAfterEmpty(t *testing.T, s Server) {
	if s.Empty == nil {
		t.Skip("cannot be emptied here")
	}
	n := Example("n1", "i", 1)
	heartbeat(t, s.Registry, n)
	s.Empty()
	n.Counter = 2
	heartbeat(t, s.Registry, n) // the list did not change
	if got := node(t, s.Registry, "n1"); !reflect.DeepEqual(got, *n) {
		t.Errorf("node = %+v\nwant   %+v", got, *n)
	}
}

func expire(t *testing.T, s Server) {
	if s.Advance == nil {
		t.Skip("time cannot be turned here")
	}
	heartbeat(t, s.Registry, Example("n1", "i", 1))
	heartbeat(t, s.Registry, Example("n2", "i", 1))
	s.Advance(registry.KeyTTL - time.Millisecond)
	heartbeat(t, s.Registry, Example("n2", "i", 2)) // an unchanged list is renewed too
	if got := ids(snapshot(t, s.Registry)); !slices.Equal(got, []string{"n1", "n2"}) {
		t.Errorf("just before the end: %v", got)
	}
	s.Advance(time.Millisecond)
	if got := ids(snapshot(t, s.Registry)); !slices.Equal(got, []string{"n2"}) {
		t.Errorf("at the end: %v", got)
	}
	if _, found, err := s.Registry.Node(t.Context(), "n1"); found || err != nil {
		t.Errorf("n1 at the end: %v, %v", found, err)
	}
	if got := node(t, s.Registry, "n2"); len(got.Tasks) != 2 {
		t.Errorf("the renewed list is %v", got.Tasks)
	}
	heartbeat(t, s.Registry, Example("n1", "next", 1)) // free for another
	s.Advance(registry.KeyTTL)
	if got := snapshot(t, s.Registry); len(got.Nodes) != 0 {
		t.Errorf("at last: %v", ids(got))
	}
}

func emptied(t *testing.T, s Server) {
	if s.Empty == nil {
		t.Skip("cannot be emptied here")
	}
	heartbeat(t, s.Registry, Example("n1", "i", 7))
	s.Empty()
	if got := snapshot(t, s.Registry); len(got.Nodes) != 0 {
		t.Errorf("after it was emptied: %v", ids(got))
	}
	n := Example("n1", "i", 8)
	heartbeat(t, s.Registry, n)
	if got := snapshot(t, s.Registry); !reflect.DeepEqual(got.Nodes, []registry.Node{WithoutTasks(n)}) {
		t.Errorf("after the next heartbeat: %+v", got.Nodes)
	}
}

func restart(t *testing.T, s Server) {
	if s.Restart == nil {
		t.Skip("cannot be restarted here")
	}
	heartbeat(t, s.Registry, Example("n1", "i", 1))
	first := snapshot(t, s.Registry)
	if second := snapshot(t, s.Registry); second.RunID != first.RunID {
		t.Errorf("the run id changed from %s to %s by itself", first.RunID, second.RunID)
	}
	s.Restart()
	n := Example("n1", "i", 2)
	heartbeat(t, s.Registry, n)
	after := snapshot(t, s.Registry)
	if after.RunID == first.RunID {
		t.Errorf("the run id is %s before and after a restart", after.RunID)
	}
	if got := node(t, s.Registry, "n1"); !reflect.DeepEqual(got, *n) {
		t.Errorf("node after the restart = %+v\nwant %+v", got, *n)
	}
}

func down(t *testing.T, s Server) {
	if s.SetDown == nil {
		t.Skip("cannot be set down here")
	}
	heartbeat(t, s.Registry, Example("n1", "i", 1))
	s.SetDown(true)
	for name, call := range calls(s.Registry) {
		if err := call(t.Context()); !errors.Is(err, registry.ErrUnavailable) {
			t.Errorf("%s of a server that is down: %v, want ErrUnavailable", name, err)
		}
	}
	s.SetDown(false)
	// A client may need a moment to see that the server is back.
	eventually(t, func() error { return s.Registry.Heartbeat(t.Context(), Example("n1", "i", 3)) })
	eventually(t, func() error { _, err := s.Registry.Snapshot(t.Context()); return err })
	if got := node(t, s.Registry, "n1"); got.Counter != 3 || len(got.Tasks) != 2 {
		t.Errorf("after it came back: %+v", got)
	}
}

// eventually repeats a call that goes through the server, which is what it waits for, until it succeeds.
func eventually(t *testing.T, call func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		err := call()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("did not come back: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func calls(r registry.Registry) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"heartbeat": func(ctx context.Context) error { return r.Heartbeat(ctx, Example("n1", "i", 2)) },
		"leave":     func(ctx context.Context) error { return r.Leave(ctx, "n2", "i") },
		"evict":     func(ctx context.Context) error { return r.Evict(ctx, "n2", "i") },
		"snapshot":  func(ctx context.Context) error { _, err := r.Snapshot(ctx); return err },
		"node":      func(ctx context.Context) error { _, _, err := r.Node(ctx, "n1"); return err },
		"ping":      r.Ping,
	}
}

func contexts(t *testing.T, s Server) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	over, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for name, call := range calls(s.Registry) {
		if err := call(cancelled); !errors.Is(err, context.Canceled) || errors.Is(err, registry.ErrUnavailable) {
			t.Errorf("%s with a cancelled context: %v", name, err)
		}
		if err := call(over); !errors.Is(err, registry.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s after its deadline: %v", name, err)
		}
	}
}

func closing(t *testing.T, s Server) {
	for range 2 {
		if err := s.Registry.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	for name, call := range calls(s.Registry) {
		if err := call(t.Context()); err == nil {
			t.Errorf("%s after close succeeded", name)
		}
	}
}

// Of many incarnations that want one id exactly one gets it, while others send heartbeats and someone reads.
func concurrent(t *testing.T, s Server) {
	const incarnations, heartbeats = 8, 20
	var wg sync.WaitGroup
	winners := make(chan string, incarnations)
	for i := range incarnations {
		wg.Go(func() {
			name := fmt.Sprintf("i%d", i)
			for counter := range int64(heartbeats) {
				err := s.Registry.Heartbeat(t.Context(), Example("contested", name, counter+1))
				switch {
				case err == nil && counter == 0:
					winners <- name
				case err != nil && !errors.Is(err, registry.ErrTaken):
					t.Errorf("contested: %v", err)
				case err == nil && counter > 0 && len(winners) == 0:
					t.Errorf("%s got the id later", name)
				}
				if err := s.Registry.Heartbeat(t.Context(), Example("own-"+name, name, counter+1)); err != nil {
					t.Errorf("own: %v", err)
				}
				if counter%5 == 0 {
					if _, err := s.Registry.Snapshot(t.Context()); err != nil {
						t.Errorf("snapshot: %v", err)
					}
				}
			}
		})
	}
	wg.Wait()
	if len(winners) != 1 {
		t.Fatalf("%d incarnations got the id", len(winners))
	}
	if winner, got := <-winners, node(t, s.Registry, "contested"); got.Incarnation != winner || got.Counter != heartbeats {
		t.Errorf("the id is held by %s at %d, the winner is %s", got.Incarnation, got.Counter, winner)
	}
	if got := snapshot(t, s.Registry); len(got.Nodes) != incarnations+1 {
		t.Errorf("nodes: %v", ids(got))
	}
}

func nothingShared(t *testing.T, s Server) {
	n := Example("n1", "i", 1)
	want := Example("n1", "i", 1)
	heartbeat(t, s.Registry, n)
	spoil := func(n *registry.Node) {
		n.Classes[0], n.Labels["zone"] = "spoilt", "spoilt"
		n.CapacityByClass["resize"], n.RunningByClass["resize"] = 99, 99
		if len(n.Tasks) > 0 {
			n.Tasks[0].ClaimID = "spoilt"
		}
	}
	spoil(n)
	read := node(t, s.Registry, "n1")
	spoil(&read)
	list := snapshot(t, s.Registry)
	spoil(&list.Nodes[0])
	if got := node(t, s.Registry, "n1"); !reflect.DeepEqual(got, *want) {
		t.Errorf("a caller changed the registry: %+v", got)
	}
}
