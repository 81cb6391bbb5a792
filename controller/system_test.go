package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/bustest"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/node/nodetest"
	registrymemory "github.com/skalds-go/skalds/pkg/registry/memory"
	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/store/memory"
	"github.com/skalds-go/skalds/pkg/task"
)

// These tests run the real controller and real nodes on seams in memory, inside a bubble of fake time.

// system is a cluster in one process.
type system struct {
	t        *testing.T
	bus      *bustest.Bus
	store    *memory.Store
	registry *registrymemory.Registry
	clock    nodetest.Clock
	log      *slog.Logger

	classes  map[string]func(ctx context.Context) error // what nodes run beside work and wait
	overlaps bool                                       // two runs of a task at once are no error here

	mu     sync.Mutex
	runs   map[string]int      // task id -> handlers started
	on     map[string][]string // task id -> the nodes that started them
	atWork map[string]int      // task id -> handlers that have not returned
	wg     sync.WaitGroup

	nodes, controllers []func() // stop what was started
	doors              []*piped // of the controllers
}

const partitions = 4

// inBubble runs f on a fresh system. When f returns, what it started is stopped, nodes first, and must end: not one
// goroutine may be left. In any of these tests two runs of one task must not overlap, unless it says that they may.
func inBubble(t *testing.T, f func(s *system)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		clock := nodetest.NewClock()
		s := &system{t: t, bus: bustest.New(nil), store: memory.New(), registry: registrymemory.New(clock), clock: clock,
			log: slog.New(slog.DiscardHandler), runs: make(map[string]int), on: make(map[string][]string), atWork: make(map[string]int)}
		f(s)
		stopAll(s.nodes)
		stopAll(s.controllers)
		s.wg.Wait()
	})
}

func stopAll(stops []func()) {
	var wg sync.WaitGroup
	for _, stop := range stops {
		wg.Go(stop)
	}
	wg.Wait()
}

// cluster starts controllers and the nodes n1, n2, ..., and waits until these have joined.
func (s *system) cluster(controllers, nodes int, change ...func(*node.Config)) []member {
	s.t.Helper()
	for range controllers {
		s.controller()
	}
	members := make([]member, nodes)
	for i := range members {
		members[i] = s.node(fmt.Sprint("n", i+1), change...)
	}
	s.joined(nodes)
	return members
}

// leads says which controller leads.
func (s *system) leads() int {
	s.t.Helper()
	doc, err := s.store.Leader(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(doc.Address)
	if err != nil {
		s.t.Fatalf("%+v: %v", doc, err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		s.t.Fatal(err)
	}
	return n - firstPort
}

// submit stores tasks and tells the leader, as a controller that does not lead does.
func (s *system) submit(class string, n int, prefix string) []string {
	s.t.Helper()
	ids := make([]string, n)
	for from := 0; from < n; from += store.MaxBatch {
		var page []task.Task
		for i := from; i < min(n, from+store.MaxBatch); i++ {
			ids[i] = fmt.Sprintf("%s-%05d", prefix, i)
			page = append(page, task.Task{ID: ids[i], ClassName: class, Mode: task.ModePassive, LifecycleStatus: task.Created,
				CreateDateTime: s.clock.Now().UnixMilli()})
		}
		if _, err := s.store.Create(s.t.Context(), page); err != nil {
			s.t.Fatal(err)
		}
	}
	s.notice()
	return ids
}

func (s *system) notice() {
	s.t.Helper()
	values, err := events.EncodeStatus(events.Status{Notice: events.NoticeSubmitted}, events.DefaultMaxBytes)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.bus.Publish(s.t.Context(), events.TopicStatus, 0, []kafka.Record{{Key: values[0].Key, Value: values[0].Value}}); err != nil &&
		!errors.Is(err, kafka.ErrUnknownTopic) {
		s.t.Fatal(err)
	}
}

// within lets up to d of fake time pass until the condition holds, and says how much it was.
func (s *system) within(d time.Duration, what string, holds func() bool) time.Duration {
	s.t.Helper()
	began := time.Now()
	for time.Since(began) <= d {
		synctest.Wait()
		if holds() {
			return time.Since(began)
		}
		pass(5 * time.Millisecond)
	}
	s.t.Fatalf("not within %s: %s; tasks: %v", d, what, s.counts())
	return 0
}

func (s *system) counts() map[task.Status]int64 {
	c, err := s.store.Counts(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (s *system) all(status task.Status, n int) func() bool {
	return func() bool { return s.counts()[status] == int64(n) }
}

func (s *system) get(id string) task.Task {
	s.t.Helper()
	list, err := s.store.Get(s.t.Context(), []string{id})
	if err != nil || len(list) != 1 {
		s.t.Fatal(list, err)
	}
	return list[0]
}

// joined waits until n nodes are registered.
func (s *system) joined(n int) {
	s.t.Helper()
	s.within(10*time.Second, fmt.Sprint(n, " nodes"), func() bool {
		snap, err := s.registry.Snapshot(s.t.Context())
		return err == nil && len(snap.Nodes) == n
	})
}

// once checks that each task was run exactly once.
func (s *system) once(ids []string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if s.runs[id] != 1 {
			s.t.Errorf("task %s ran %d times", id, s.runs[id])
		}
	}
}

// pass lets d of the bubble's time pass.
func pass(d time.Duration) { <-time.After(d) }
