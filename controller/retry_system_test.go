package controller_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/task"
)

// add stores one task as a script would, and tells the leader.
func (s *system) add(t task.Task) string {
	s.t.Helper()
	return s.addAll([]task.Task{t})[0]
}

// addAll does so with up to a batch of tasks.
func (s *system) addAll(tasks []task.Task) []string {
	s.t.Helper()
	ids := make([]string, len(tasks))
	for i := range tasks {
		t := &tasks[i]
		t.Mode, t.LifecycleStatus, t.CreateDateTime = task.ModePassive, task.Created, s.clock.Now().UnixMilli()
		ids[i] = t.ID
	}
	out, err := s.store.Create(s.t.Context(), tasks)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range out {
		if out[i].Status != store.CreateOK {
			s.t.Fatalf("%+v", out[i])
		}
	}
	s.notice()
	return ids
}

// nodeWith starts a node with one more class.
func (s *system) nodeWith(id, class string, h func(ctx context.Context) error) member {
	s.classes = map[string]func(context.Context) error{class: h}
	return s.node(id)
}

func TestS10_ATaskThatAlwaysFailsIsTriedAsOftenAsItMayBe(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.controller()
		s.nodeWith("n1", "fails", func(context.Context) error { return errors.New("boom") })
		s.joined(1)
		s.add(task.Task{ID: "t", ClassName: "fails"})
		began := time.Now()
		s.within(time.Minute, "it has failed", s.all(task.Failed, 1))
		got := s.get("t")
		if s.runs["t"] != 3 || got.Attempt != 3 || got.Failures != 3 || got.Error != "boom" || len(got.Attempts) != 3 {
			t.Errorf("%d runs, %+v", s.runs["t"], got)
		}
		// Two waits of full jitter: up to one second, up to two.
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("it took %s", took)
		}
		for i, r := range got.Attempts {
			if r.Attempt != int64(i+1) || r.Executor != "n1" || r.Outcome != "failed" || r.Error != "boom" {
				t.Errorf("run %d: %+v", i, r)
			}
		}
		s.add(task.Task{ID: "once", ClassName: "fails", MaxAttempts: new(1)})
		synctest.Wait()
		if got := s.get("once"); got.LifecycleStatus != task.Failed || s.runs["once"] != 1 {
			t.Errorf("%+v", got)
		}
	})
}

func TestADelayedTaskStartsAtItsTime(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.cluster(1, 1)
		for i := range 20 { // C61: at any moment, not at a poll's
			at := s.clock.Now().Add(time.Duration(100+i*137) * time.Millisecond)
			id := s.add(task.Task{ID: fmt.Sprint("t", i), ClassName: "work", NotBefore: at.UnixMilli()})
			s.within(4*time.Second, "it is finished", s.all(task.Finished, i+1))
			if late := s.get(id).StartDateTime - at.UnixMilli(); late < 0 || late > 50 {
				t.Errorf("task %d started %d ms after its time", i, late)
			}
		}
	})
}

func TestS11_DeadlinesEndWhatWaitsAndWhatRuns(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.cluster(1, 1)
		s.submit("work", 1, "first")
		s.within(5*time.Second, "it leads", s.all(task.Finished, 1))
		in := func(d time.Duration) int64 { return s.clock.Now().Add(d).UnixMilli() }
		s.add(task.Task{ID: "nowhere", ClassName: "unknown", DeadlineDateTime: in(730 * time.Millisecond)})
		s.add(task.Task{ID: "runs", ClassName: "wait", DeadlineDateTime: in(810 * time.Millisecond)})
		s.add(task.Task{ID: "slow", ClassName: "wait", TimeoutMs: 400, MaxAttempts: new(1)})
		s.within(2*time.Second, "all have failed", s.all(task.Failed, 3))
		for id, at := range map[string]time.Duration{"nowhere": 730 * time.Millisecond, "runs": 810 * time.Millisecond, "slow": 400 * time.Millisecond} {
			got := s.get(id)
			if late := got.FinishDateTime - got.CreateDateTime - at.Milliseconds(); late < 0 || late > 50 || got.Error == "" {
				t.Errorf("%s ended %d ms after its time: %q", id, late, got.Error)
			}
		}
		if got := s.get("runs"); got.Attempt != 1 || s.runs["runs"] != 1 {
			t.Errorf("%+v", got)
		}
	})
}

func TestC86_ACancelledTaskIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		s.controller()
		s.nodeWith("n1", "fails", func(ctx context.Context) error {
			<-ctx.Done()
			return errors.New("half done")
		})
		s.joined(1)
		s.add(task.Task{ID: "t", ClassName: "fails"})
		s.within(time.Second, "it runs", s.all(task.Running, 1))
		tk := s.get("t")
		c, _ := task.Cancel(&tk, 1)
		if k, err := s.store.Apply(t.Context(), []task.Change{c}); k != 1 || err != nil {
			t.Fatal(k, err)
		}
		s.notice()
		s.within(time.Second, "it is cancelled", s.all(task.Cancelled, 1))
		pass(time.Minute)
		if s.runs["t"] != 1 {
			t.Errorf("%d runs", s.runs["t"])
		}
	})
}

func TestC13_TasksWithoutANodeCostNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, func(s *system) {
		counted := &counting{Store: s.store}
		s.controllerOn(counted)
		pass(time.Second)
		s.submit("nobody", 10_000, "t")
		pass(time.Minute)
		if n := counted.applies.Load(); n != 0 {
			t.Errorf("%d writes to tasks that wait for a node", n)
		}
	})
}
