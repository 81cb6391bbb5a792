package controller_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skalds-go/skalds/events/bustest"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/node"
	"github.com/skalds-go/skalds/node/nodetest"
	"github.com/skalds-go/skalds/node/session"
	"github.com/skalds-go/skalds/pkg/task"
)

// deafBus is a bus from which nothing comes while it is deaf; it comes later. All else works.
type deafBus struct {
	*bustest.Bus
	deaf atomic.Bool
}

func (d *deafBus) Reader(topic string, partition int, from kafka.Position) session.Reader {
	return &deafReader{d, d.Bus.Reader(topic, partition, from)}
}

type deafReader struct {
	d *deafBus
	*bustest.Reader
}

func (r *deafReader) Next(ctx context.Context) ([]kafka.Record, error) {
	records, err := r.Reader.Next(ctx)
	for err == nil && r.d.deaf.Load() {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return records, err
}

// deafNode starts a node that can be made deaf. It runs work and wait as the others do.
func (s *system) deafNode(id string) *deafBus {
	d := &deafBus{Bus: s.bus}
	n, err := node.New(nodetest.Config(id), node.WithSeams(session.Seams{Bus: d, Registry: s.registry, Clock: s.clock}), node.WithLogger(s.log))
	if err != nil {
		s.t.Fatal(err)
	}
	s.handle(n, id)
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	s.wg.Go(func() {
		defer close(done)
		if err := n.Run(ctx); err != nil {
			s.t.Errorf("node %s: %v", id, err)
		}
	})
	s.nodes = append(s.nodes, func() { cancel(); <-done })
	return d
}

func (s *system) incarnation(id string) string {
	s.t.Helper()
	n, _, err := s.registry.Node(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return n.Incarnation
}

// C10: a node that beats but never starts its tasks does not keep them: it is set aside, and they run elsewhere, soon.
// When it hears again, it is tried again.
func TestC10_ANodeThatStartsNothingIsSetAside(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.controller()
		deaf := s.deafNode("n1")
		s.joined(1)
		first := s.incarnation("n1")
		deaf.deaf.Store(true)
		ids := s.submit("work", 3, "t")
		s.within(2*time.Second, "they are sent", s.all(task.Assigning, 3))
		other := s.node("n2")
		s.within(15*time.Second, "they run elsewhere", s.all(task.Finished, 3))
		for _, id := range ids {
			if got := s.get(id); got.Executor != "" && got.Executor != "n2" || got.Failures != 0 || got.Crashes != 0 {
				t.Errorf("%+v", got)
			}
		}
		if s.incarnation("n1") == first {
			t.Error("it goes on as the same incarnation")
		}
		more := s.submit("work", 20, "more")
		s.within(5*time.Second, "no others wait for it", s.all(task.Finished, 23))
		s.once(append(ids, more...))
		other.stop()
		s.submit("work", 3, "later")
		pass(10 * time.Second)
		if got := s.counts()[task.Created]; got != 3 {
			t.Errorf("%d tasks wait while the only node is set aside", got)
		}
		deaf.deaf.Store(false)
		s.within(90*time.Second, "it is tried again", s.all(task.Finished, 26))
		s.submit("work", 10, "last")
		s.within(3*time.Second, "it is as good as any", s.all(task.Finished, 36))
	})
}

// A node that runs something keeps it, deaf as it may be: it only gets nothing new.
func TestADeafNodeKeepsWhatItRuns(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.controller()
		deaf := s.deafNode("n1")
		s.joined(1)
		long := s.submit("wait", 1, "long")
		s.within(5*time.Second, "it runs", s.all(task.Running, 1))
		first := s.incarnation("n1")
		deaf.deaf.Store(true)
		s.submit("work", 3, "t")
		pass(40 * time.Second)
		if s.incarnation("n1") != first {
			t.Error("it was put out")
		}
		s.stay(long)
		s.node("n2")
		s.submit("work", 10, "others")
		s.within(5*time.Second, "the others do not wait for it", s.all(task.Finished, 10))
		s.stay(long)
	})
}
