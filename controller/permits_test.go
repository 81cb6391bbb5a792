package controller_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// runLog notes which runs were at work at once, by what they share.
type runLog struct {
	mu           sync.Mutex
	atWork, most map[string]int
	began        map[string][]time.Time
}

func newRunLog() *runLog {
	return &runLog{atWork: make(map[string]int), most: make(map[string]int), began: make(map[string][]time.Time)}
}

func (l *runLog) begin(shared string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.atWork[shared]++
	l.most[shared] = max(l.most[shared], l.atWork[shared])
	l.began[shared] = append(l.began[shared], time.Now())
}

func (l *runLog) end(shared string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.atWork[shared]--
}

// handler works for a while, noted under what of says the task shares with others.
func (l *runLog) handler(d time.Duration, of func(id string) string) func(context.Context) error {
	work := nap(d)
	return func(ctx context.Context) error {
		shared := of(node.TaskFrom(ctx).ID)
		l.begin(shared)
		defer l.end(shared)
		return work(ctx)
	}
}

// since says how many runs began in so long before now.
func (l *runLog) since(shared string, d time.Duration) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, at := range l.began[shared] {
		if time.Since(at) <= d {
			n++
		}
	}
	return n
}

// same is for what all tasks share.
func same(string) string { return "" }

// prefix is what stands in an id before its first dash.
func prefix(id string) string { p, _, _ := strings.Cut(id, "-"); return p }

// shared stores tasks that a function changes first, and tells the leader.
func (s *system) shared(class string, n int, prefix string, change func(i int, t *task.Task)) []string {
	s.t.Helper()
	var ids []string
	for from := 0; from < n; from += store.MaxBatch {
		var page []task.Task
		for i := from; i < min(n, from+store.MaxBatch); i++ {
			t := task.Task{ID: fmt.Sprintf("%s-%05d", prefix, i), ClassName: class}
			change(i, &t)
			page = append(page, t)
		}
		ids = append(ids, s.addAll(page)...)
	}
	return ids
}

// TestC66_ASingletonNeverRunsTwiceAtOnce: a task each second that takes five, of one concurrency key, over three nodes
// in turn; the leader is killed, and then a node that runs one is cut off.
func TestC66_ASingletonNeverRunsTwiceAtOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		log := newRunLog()
		s.classes = map[string]func(context.Context) error{"single": log.handler(5*time.Second, same)}
		kill := s.mortal(roundRobin)
		pass(time.Second)
		s.controller(roundRobin)
		nodes := s.cluster(0, 3)
		for i := range 60 {
			s.shared("single", 1, fmt.Sprint("t", i), func(_ int, t *task.Task) { t.ConcurrencyKey = "single" })
			switch i {
			case 17:
				kill()
			case 33:
				nodes[0].cut()
			case 50:
				nodes[0].mend()
			}
			pass(time.Second)
		}
		s.within(6*time.Minute, "all are finished", s.all(task.Finished, 60))
		if log.most[""] != 1 {
			t.Errorf("%d ran at once", log.most[""])
		}
		if per := s.perNode(); len(per) != 3 {
			t.Errorf("%v, want all nodes in turn", per)
		}
	})
}

// late is a store that a leader's claims reach long after it has ceased to lead.
type late struct {
	store.Store
	s    *system
	mu   sync.Mutex
	hold bool
	held int
}

func (l *late) Apply(ctx context.Context, changes []task.Change) (int, error) {
	l.mu.Lock()
	claims := l.hold && len(changes) > 0 && changes[0].To == task.Assigning
	if claims {
		l.held += len(changes)
	}
	l.mu.Unlock()
	if !claims {
		return l.Store.Apply(ctx, changes)
	}
	l.s.wg.Go(func() {
		pass(6 * time.Second)
		_, _ = l.Store.Apply(context.WithoutCancel(ctx), changes)
	})
	<-ctx.Done()
	return 0, store.ErrUnavailable
}

func (l *late) SwapLeader(ctx context.Context, old, next store.Leader) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hold {
		return false, store.ErrUnavailable
	}
	return l.Store.SwapLeader(ctx, old, next)
}

// TestC71_NoKeyEverHasMoreThanItsLimit: 50 keys with a limit of two, 10,000 tasks, two controllers, of which the
// leading one is stopped, and killed, and killed with claims on their way that the store gets when the next one has
// claimed others.
func TestC71_NoKeyEverHasMoreThanItsLimit(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		const keys, limit, tasks = 50, 2, 10_000
		log := newRunLog()
		s.classes = map[string]func(context.Context) error{"keyed": log.handler(90*time.Millisecond, prefix)}
		st := &late{Store: s.store, s: s}
		stuck := s.controllerOn(st)
		pass(time.Second)
		kill := s.mortal()
		s.cluster(0, 3, func(c *node.Config) { c.Capacity, c.Prefetch = 60, 20 })
		for k := range keys {
			s.shared("keyed", tasks/keys, fmt.Sprint("k", k), func(_ int, t *task.Task) {
				t.ConcurrencyKey, t.ConcurrencyLimit = prefix(t.ID), limit
			})
		}
		third := func(n int) func() bool { return func() bool { return s.counts()[task.Finished] >= int64(n) } }
		s.within(time.Minute, "a quarter is finished", third(tasks/4))
		st.mu.Lock()
		st.hold = true
		st.mu.Unlock()
		pass(time.Second)
		stuck()
		s.within(time.Minute, "half are finished", third(tasks/2))
		next := s.controller()
		pass(time.Second)
		kill()
		s.within(time.Minute, "three quarters are finished", third(tasks*3/4))
		s.controller()
		pass(time.Second)
		next()
		s.within(time.Minute, "all are finished", s.all(task.Finished, tasks))
		if st.held == 0 {
			t.Error("no claim came late")
		}
		for k := range keys {
			if most := log.most[fmt.Sprint("k", k)]; most != limit {
				t.Errorf("%d of key %d ran at once, want %d", most, k, limit)
			}
		}
	})
}

// TestC72_ThroughputStaysAtTheRateWithAKeyOverChangesOfLeader: one a second, one at once, while the leader stops and
// the next one is killed.
func TestC72_ThroughputStaysAtTheRateWithAKeyOverChangesOfLeader(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		log := newRunLog()
		s.classes = map[string]func(context.Context) error{"paced": log.handler(300*time.Millisecond, same)}
		stop := s.controller()
		pass(time.Second)
		kill := s.mortal()
		s.cluster(0, 3)
		if err := s.client(1).SetRate(s.t.Context(), client.LimitClass, "paced", client.Rate{PerSecond: 1, Burst: 1}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		s.shared("paced", 200, "t", func(_ int, t *task.Task) { t.ConcurrencyKey = "k" })
		// Each leader begins with a full bucket, and while nobody leads nothing is placed.
		for i, then := range []func(){stop, func() { s.controller(); pass(2 * time.Second); kill() }, func() {}} {
			pass(20 * time.Second)
			if got := log.since("", 10*time.Second); got < 9 || got > 11 {
				t.Errorf("phase %d: %d in 10 s at 1 a second", i, got)
			}
			then()
		}
		if got := len(log.began[""]); got < 56 || got > 65 {
			t.Errorf("%d in 62 s", got)
		}
		if log.most[""] != 1 {
			t.Errorf("%d ran at once", log.most[""])
		}
	})
}

// TestC74_TwoRulesCostNothingWithoutContention: four tasks of 100 ms, one after the other, each with a concurrency key
// and in a pool. Each begins within 20 ms of the end of the one before: submitted then, or waiting for the key all the
// time.
func TestC74_TwoRulesCostNothingWithoutContention(t *testing.T) {
	t.Parallel()
	for name, waiting := range map[string]bool{"submitted one after the other": false, "waiting for their key": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(s *system) {
				ended := make(chan struct{}, 4)
				s.classes = map[string]func(context.Context) error{"step": func(ctx context.Context) error {
					defer func() { ended <- struct{}{} }()
					return nap(100 * time.Millisecond)(ctx)
				}}
				s.cluster(2, 3)
				if err := s.client(0).SetTaskLimit(s.t.Context(), client.LimitPool, "gpu", 2); err != nil {
					t.Fatal(err)
				}
				pass(time.Second)
				step := func(i int, t *task.Task) { t.ID, t.ConcurrencyKey, t.Pool = fmt.Sprint("t", i), "k", "gpu" }
				if waiting {
					s.shared("step", 4, "t", step)
				}
				for i := range 4 {
					if !waiting {
						s.shared("step", 1, "t", func(_ int, t *task.Task) { step(i, t) })
					}
					<-ended
				}
				s.within(time.Second, "all are finished", s.all(task.Finished, 4))
				for i := range 3 {
					if d := s.get(fmt.Sprint("t", i+1)).StartDateTime - s.get(fmt.Sprint("t", i)).FinishDateTime; d < 0 || d > 20 {
						t.Errorf("task %d began %d ms after the end of the one before", i+1, d)
					}
				}
			})
		})
	}
}
