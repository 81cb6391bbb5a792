package controller_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/pkg/config"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// lease is NODE_LOST_AFTER of these tests: after so long without a confirmed heartbeat a node has stopped its work.
const lease = 8 * time.Second

// firsts checks that tasks have ended well in their first attempt, which ran once.
func (s *system) firsts(ids []string) {
	s.t.Helper()
	s.once(ids)
	for _, id := range ids {
		if got := s.get(id); got.LifecycleStatus != task.Finished || got.Attempt != 1 {
			s.t.Errorf("task %s is %s in attempt %d", id, got.LifecycleStatus, got.Attempt)
		}
	}
}

// sent counts how often a task was sent to a node.
func (s *system) sent(id string) int {
	n := 0
	for _, r := range s.bus.Records(events.TopicAssign) {
		if a, err := events.DecodeAssign(r.Value); err == nil &&
			slices.ContainsFunc(a.Tasks, func(t events.AssignedTask) bool { return t.ID == id }) {
			n++
		}
	}
	return n
}

// TestC15_NothingRunsTwiceForBeingLongerThanALease: tasks that take ten leases, and tasks that wait five leases for
// their time, holding none.
func TestC15_NothingRunsTwiceForBeingLongerThanALease(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.classes = map[string]func(context.Context) error{"nap": nap(10 * lease)}
		s.cluster(2, 3)
		long := s.submit("nap", 10, "long")
		var later []string
		at := s.clock.Now().Add(5 * lease)
		for i := range 10 {
			later = append(later, s.add(task.Task{ID: fmt.Sprint("later", i), ClassName: "work", NotBefore: at.UnixMilli()}))
		}
		s.within(time.Second, "the long ones run", s.all(task.Running, 10))
		pass(5*lease - 2*time.Second)
		for _, id := range later {
			if got := s.get(id); got.LifecycleStatus != task.Created || got.Executor != "" || got.ClaimID != "" || s.sent(id) != 0 {
				t.Errorf("before its time: %+v", got)
			}
		}
		pass(5*lease + 4*time.Second)
		s.within(time.Second, "all are finished", s.all(task.Finished, 20))
		s.firsts(append(long, later...))
		for _, id := range later {
			if got := s.get(id); got.StartDateTime < at.UnixMilli() {
				t.Errorf("%s started %d ms before its time", id, at.UnixMilli()-got.StartDateTime)
			}
		}
	})
}

// TestC18_AStolenLeaseEndsTheRun: within a heartbeat, with the cause. The task runs again only when the first run has
// ended, and its idempotency key is taken all the while.
func TestC18_AStolenLeaseEndsTheRun(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		type end struct {
			cause error
			at    time.Time
		}
		ended := make(chan end, 1)
		s.classes = map[string]func(context.Context) error{"slow": func(ctx context.Context) error {
			if node.TaskFrom(ctx).Attempt > 1 {
				return nil
			}
			<-ctx.Done()
			ended <- end{context.Cause(ctx), time.Now()}
			pass(900 * time.Millisecond) // it takes its time to stop
			return context.Cause(ctx)
		}}
		s.cluster(2, 3)
		id := s.add(task.Task{ID: "t", ClassName: "slow", IdempotencyKey: "key"})
		s.within(time.Second, "it runs", s.all(task.Running, 1))
		mine := s.theNode(s.get(id).Executor)
		if err := s.registry.Leave(t.Context(), mine.ID, mine.Incarnation); err != nil {
			t.Fatal(err)
		}
		thief := registry.Node{ID: mine.ID, Incarnation: "thief", Counter: 1, Mode: registry.ModeNode, State: registry.Online}
		if err := s.registry.Heartbeat(t.Context(), &thief); err != nil {
			t.Fatal(err)
		}
		stolen := time.Now()
		for range 400 { // 20 s
			out, err := s.store.Create(t.Context(), []task.Task{{ID: "other", ClassName: "work", Mode: task.ModePassive,
				LifecycleStatus: task.Created, IdempotencyKey: "key"}})
			if err != nil || out[0].Status != store.CreateSameKey {
				t.Fatalf("%v after the lease was stolen another task has the key: %+v %v", time.Since(stolen), out, err)
			}
			pass(50 * time.Millisecond)
		}
		if len(ended) == 0 {
			t.Fatal("the run goes on")
		}
		if e := <-ended; !errors.Is(e.cause, node.ErrLeaseLost) || e.at.Sub(stolen) > time.Second {
			t.Errorf("the context ended %v after the theft with %v", e.at.Sub(stolen), e.cause)
		}
		if got := s.get(id); got.LifecycleStatus != task.Finished || got.Attempt != 2 || got.Failures != 0 || s.runs[id] != 2 {
			t.Errorf("%d runs: %+v", s.runs[id], got)
		}
	})
}

// noted is a log that keeps what is worth a warning.
type noted struct {
	slog.Handler
	mu    sync.Mutex
	lines []string
}

func (n *noted) Enabled(context.Context, slog.Level) bool { return true }
func (n *noted) WithAttrs([]slog.Attr) slog.Handler       { return n }
func (n *noted) WithGroup(string) slog.Handler            { return n }
func (n *noted) Handle(_ context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return nil
	}
	line := r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, line)
	return nil
}

func (n *noted) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.lines)
}

// TestC22_TheResultOfAnOverlappingRunIsRefused: a handler ignores the end of its context for three leases. Its task
// runs again under the next attempt, the first result counts for nothing, and the node says that the two may overlap.
func TestC22_TheResultOfAnOverlappingRunIsRefused(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.overlaps = true
		log := &noted{}
		s.log = slog.New(log)
		began := make(chan struct{}, 2)
		s.classes = map[string]func(context.Context) error{"stubborn": func(ctx context.Context) error {
			began <- struct{}{}
			if node.TaskFrom(ctx).Attempt == 1 {
				pass(3 * lease)
			} else {
				pass(4 * lease)
			}
			return nil
		}}
		nodes := s.cluster(2, 3)
		id := s.add(task.Task{ID: "t", ClassName: "stubborn"})
		<-began
		synctest.Wait()
		first := s.get(id)
		at := slices.Index([]string{"n1", "n2", "n3"}, first.Executor)
		nodes[at].cut()
		cut := time.Now()
		<-began
		if took := time.Since(cut); took < lease-time.Second {
			t.Errorf("it ran again after %v", took)
		}
		s.within(time.Second, "the second run is known", s.all(task.Running, 1))
		want := s.get(id)
		if want.Attempt != 2 || want.Executor == first.Executor || want.Failures != 0 || len(want.Attempts) != 1 {
			t.Errorf("%+v", want)
		}
		pass(lease)
		nodes[at].mend()
		pass(lease) // the first handler returns meanwhile
		// What a process says that stood still while its trust ended, or a copy that was under way for long:
		values, err := events.EncodeStatus(events.Status{Node: first.Executor, Incarnation: first.Incarnation, Reports: []task.Report{
			{ID: id, Attempt: 1, ClaimID: first.ClaimID, Kind: task.ReportFinished, Result: json.RawMessage(`"first"`)},
		}}, events.DefaultMaxBytes)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.bus.Publish(t.Context(), events.TopicStatus, 0, []kafka.Record{{Key: values[0].Key, Value: values[0].Value}}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if got := s.get(id); got.LifecycleStatus != task.Running || got.ClaimID != want.ClaimID || got.Result != nil || len(got.Attempts) != 1 {
			t.Errorf("the first result changed the task: %+v", got)
		}
		s.within(3*lease, "the second run is finished", s.all(task.Finished, 1))
		if got := s.get(id); got.Attempt != 2 || got.Result != nil || got.Failures != 0 || s.runs[id] != 2 {
			t.Errorf("%d runs: %+v", s.runs[id], got)
		}
		if !slices.ContainsFunc(log.all(), func(line string) bool {
			return strings.Contains(line, "do not return") && strings.Contains(line, "t (stubborn)")
		}) {
			t.Errorf("nobody says that the runs overlap: %q", log.all())
		}
		s.submit("work", 60, "after")
		s.within(5*time.Second, "all nodes work", s.all(task.Finished, 61))
	})
}

// stale is a store whose first pages of waiting tasks come again with every later one, as out of a cache that nobody
// brings up to date.
type stale struct {
	store.Store
	old     []task.Task
	refused atomic.Int64 // claims of the old tasks that did not apply
}

func (s *stale) Queues(ctx context.Context, after string, limit int) (store.QueuePage, error) {
	p, err := s.Store.Queues(ctx, after, limit)
	for i := range s.old {
		p.Names = append(p.Names, s.old[i].Queue())
	}
	slices.Sort(p.Names)
	p.Names = slices.Compact(p.Names)
	return p, err
}

func (s *stale) Waiting(ctx context.Context, queue string, after store.Place, limit int) (store.PendingPage, error) {
	p, err := s.Store.Waiting(ctx, queue, after, limit)
	for i := range s.old {
		if s.old[i].Queue() == queue {
			p.Tasks = append(p.Tasks, s.old[i].Clone())
		}
	}
	return p, err
}

func (s *stale) Apply(ctx context.Context, changes []task.Change) (int, error) {
	n, err := s.Store.Apply(ctx, changes)
	s.refused.Add(int64(len(changes) - n))
	return n, err
}

// TestC23_AStaleViewStartsNothingTwice: the next leader believes that tasks wait which run.
func TestC23_AStaleViewStartsNothingTwice(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		first := s.controller()
		s.classes = map[string]func(context.Context) error{"nap": nap(time.Minute)}
		for _, id := range []string{"n1", "n2", "n3"} {
			s.node(id)
		}
		s.joined(3)
		ids := s.submit("nap", 1, "single")
		ids = append(ids, s.submit("nap", 20, "t")...)
		var old []task.Task
		for _, id := range ids { // as they were before the first leader saw them
			tk := s.get(id)
			old = append(old, task.Task{ID: id, ClassName: tk.ClassName, Mode: tk.Mode, LifecycleStatus: task.Created, CreateDateTime: tk.CreateDateTime})
		}
		s.within(time.Second, "all run", s.all(task.Running, 21))
		view := &stale{Store: s.store, old: old}
		s.controllerOn(view, func(c *config.Controller) { c.DispatcherInterval = time.Second })
		first()
		for i := range 20 {
			s.submit("work", 1, fmt.Sprint("more", i))
			pass(time.Second)
		}
		if n := view.refused.Load(); n < 21 {
			t.Fatalf("%d claims were refused: the stale view was not acted on", n)
		}
		if c := s.counts(); c[task.Running] != 21 || c[task.Finished] != 20 {
			t.Errorf("%v", c)
		}
		pass(time.Minute)
		s.firsts(ids)
	})
}

// TestC28_ALongTaskHoldsUpNothing: while a task runs for ten minutes its node reads on, and nobody sends the task
// again: there is no group that a reader can be put out of, and the event is done with when the task was taken, not
// when it ends.
func TestC28_ALongTaskHoldsUpNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.classes = map[string]func(context.Context) error{"nap": nap(10 * time.Minute)}
		s.cluster(2, 1, func(c *node.Config) { c.Capacity, c.Prefetch = 2, 0 })
		ids := s.submit("nap", 1, "long")
		s.within(time.Second, "it runs", s.all(task.Running, 1))
		first := s.incarnation("n1")
		for i := range 59 {
			pass(10 * time.Second)
			ids = append(ids, s.submit("work", 1, fmt.Sprint("short", i))...)
			synctest.Wait()
			if got := s.get(ids[i+1]); got.LifecycleStatus != task.Finished {
				t.Fatalf("after %d s the node does not read: a task is %s", 10*i, got.LifecycleStatus)
			}
		}
		pass(20 * time.Second)
		s.firsts(ids)
		if s.incarnation("n1") != first || s.sent(ids[0]) != 1 {
			t.Errorf("the node began anew (%v), or the task was sent %d times", s.incarnation("n1") != first, s.sent(ids[0]))
		}
	})
}

// TestC29_DelayedTasksStartOnce: 500 tasks are to start within 50 s, while the leading controller is stopped or killed
// every 10 s.
func TestC29_DelayedTasksStartOnce(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]bool{"stopped": false, "killed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(s *system) {
				start := func() (end func()) {
					st := &leaving{Store: s.store}
					stop := s.controllerOn(st)
					return func() {
						st.gone.Store(kill)
						stop()
					}
				}
				end := start()
				s.cluster(0, 3)
				began := s.clock.Now()
				var later []task.Task
				for i := range 500 {
					at := began.Add(time.Duration(i) * 100 * time.Millisecond)
					later = append(later, task.Task{ID: fmt.Sprint("t", i), ClassName: "work", NotBefore: at.UnixMilli()})
				}
				ids := s.addAll(later)
				for range 6 {
					next := start() // stands by
					pass(10 * time.Second)
					end()
					end = next
				}
				s.within(5*time.Second, "all are finished", s.all(task.Finished, 500))
				s.firsts(ids)
				for i, id := range ids {
					if got := s.get(id); got.StartDateTime < got.NotBefore {
						t.Errorf("task %d started %d ms before its time", i, got.NotBefore-got.StartDateTime)
					}
				}
			})
		})
	}
}
