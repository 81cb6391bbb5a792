package controller_test

import (
	"context"
	"testing"
	"time"

	"github.com/skalds-go/skalds/events"
	"github.com/skalds-go/skalds/events/kafka"
	"github.com/skalds-go/skalds/pkg/registry"
	"github.com/skalds-go/skalds/pkg/task"
)

// speak writes an event to a node as the leader does.
func (s *system) speak(n registry.Node, a events.Assign) {
	s.t.Helper()
	doc, err := s.store.Leader(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	a.SetSender("controller", doc.Term)
	a.SetRecipient(n.ID, n.Incarnation)
	values, err := events.EncodeAssign(a, events.DefaultMaxBytes)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, v := range values {
		if err := s.bus.Publish(s.t.Context(), events.TopicAssign, n.Partition, []kafka.Record{{Key: v.Key, Value: v.Value}}); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *system) theNode(id string) registry.Node {
	s.t.Helper()
	n, ok, err := s.registry.Node(s.t.Context(), id)
	if err != nil || !ok {
		s.t.Fatal(ok, err)
	}
	return n
}

// The end of a run gets lost although its node was told that it is settled: no report will ever come. The node's list
// shows it, and the task runs again; whether this leader has seen it begin, or an earlier one.
func TestATaskWhoseEndGotLostRunsAgain(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]bool{"under the same leader": false, "under the next leader": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(s *system) {
				free := make(chan struct{})
				s.classes = map[string]func(context.Context) error{"gate": func(context.Context) error { <-free; return nil }}
				stop := s.controller()
				s.node("n1")
				s.joined(1)
				ids := s.submit("gate", 1, "t")
				s.within(5*time.Second, "it runs", s.all(task.Running, 1))
				long := s.submit("wait", 3, "long")
				s.within(5*time.Second, "others run beside it", s.all(task.Running, 4))
				if change {
					stop()
					s.controller()
					pass(5 * time.Second)
				}
				s.bus.Fail(func(_ context.Context, topic string, _ int, records []kafka.Record) (bool, error) {
					st, err := events.DecodeStatus(records[0].Value)
					return topic != events.TopicStatus || err != nil || len(st.Reports) == 0, nil //nolint:nilerr // reports are taken, and lost
				})
				close(free)
				pass(100 * time.Millisecond)
				s.speak(s.theNode("n1"), events.Assign{Acknowledged: []string{s.get(ids[0]).ClaimID}})
				pass(100 * time.Millisecond)
				s.bus.Fail(nil)
				s.within(8*time.Second, "it runs again", func() bool {
					got := s.get(ids[0])
					return got.LifecycleStatus == task.Finished && got.Attempt == 2
				})
				if got := s.get(ids[0]); got.Failures != 0 || got.Crashes != 0 || len(got.Attempts) != 2 || got.Attempts[0].Outcome != "forgotten" {
					t.Errorf("%+v", got)
				}
				s.stay(long)
			})
		})
	}
}

// A run that nobody asked for is ended: of another claim than the task's present one, of a task that has ended, or that
// does not exist.
func TestRunsThatNobodyAskedForAreCancelled(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.cluster(1, 1)
		long := s.submit("wait", 1, "long")
		ended := s.submit("work", 1, "ended")
		s.within(5*time.Second, "one ends", func() bool { return s.counts()[task.Finished] == 1 && s.counts()[task.Running] == 1 })
		strays := events.Assign{Tasks: []events.AssignedTask{
			{ID: "none", ClassName: "wait", Attempt: 1, ClaimID: "stray-1"},
			{ID: ended[0], ClassName: "wait", Attempt: 7, ClaimID: "stray-2"},
			{ID: long[0] + "-other", ClassName: "wait", Attempt: 1, ClaimID: "stray-3"},
		}}
		s.speak(s.theNode("n1"), strays)
		s.within(3*time.Second, "they run", func() bool { return s.theNode("n1").Running == 4 })
		s.within(8*time.Second, "they are ended", func() bool { return s.theNode("n1").Running == 1 })
		s.stay(long)
		pass(10 * time.Second)
		s.stay(long)
	})
}
