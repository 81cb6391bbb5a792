package task_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/skalds-go/skalds/pkg/task"
)

func failure(r task.Report) *task.Report {
	r.ID, r.Attempt, r.ClaimID, r.Kind, r.Node = "t1", 3, "c3", task.ReportFailed, "n1"
	r.StartedAt, r.FinishedAt, r.Error = 5, 8, "boom"
	return &r
}

func TestFail(t *testing.T) {
	t.Parallel()
	policy := task.Policy{MaxAttempts: 3, Backoff: task.Backoff{BaseMs: 100, Factor: 2, MaxMs: 1000}}
	cases := []struct {
		name      string
		change    func(*task.Task)
		report    task.Report
		want      task.Status
		notBefore int64
	}{
		{"the first failure", func(*task.Task) {}, task.Report{}, task.Created, now + 50},
		{"the second waits longer", func(t *task.Task) { t.Failures = 1 }, task.Report{}, task.Created, now + 100},
		{"the third is the last", func(t *task.Task) { t.Failures = 2 }, task.Report{}, task.Failed, 0},
		{"never again", func(t *task.Task) { t.MaxAttempts = new(1) }, task.Report{}, task.Failed, 0},
		{"without end", func(t *task.Task) { t.MaxAttempts, t.Failures = new(0), 99 }, task.Report{}, task.Created, now + 500},
		{"a backoff of its own", func(t *task.Task) { t.Backoff = &task.Backoff{BaseMs: 10, Factor: 1, MaxMs: 10} }, task.Report{}, task.Created, now + 5},
		{"do not retry", func(*task.Task) {}, task.Report{Permanent: true}, task.Failed, 0},
		{"again at a time", func(*task.Task) {}, task.Report{RetryAt: 8 + 7000}, task.Created, now + 7000},
		{"again at a time that is sooner than the backoff", func(*task.Task) {}, task.Report{RetryAt: 8 + 20}, task.Created, now + 50},
		{"its deadline has passed", func(t *task.Task) { t.DeadlineDateTime = now }, task.Report{}, task.Failed, 0},
		{"C86: cancelled meanwhile", func(t *task.Task) { t.Desired = task.DesiredCancelled }, task.Report{}, task.Cancelled, 0},
		{"paused meanwhile", func(t *task.Task) { t.LifecycleStatus = task.Paused }, task.Report{}, task.Paused, now + 50},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tk := with(running(), c.change)
			before := tk.Failures
			changes := task.Fail(&tk, failure(c.report), policy, 0.5, now)
			if !slices.ContainsFunc(changes, func(c task.Change) bool { return c.Apply(&tk) }) {
				t.Fatal("does not apply")
			}
			if tk.LifecycleStatus != c.want || tk.NotBefore != c.notBefore || tk.Failures != before+1 || tk.Error != "boom" {
				t.Errorf("%s, notBefore %d, %d failures, error %q; want %s, %d", tk.LifecycleStatus, tk.NotBefore, tk.Failures, tk.Error, c.want, c.notBefore)
			}
			if ended := tk.LifecycleStatus.Terminal(); ended != (tk.FinishDateTime == 8) || ended == (tk.Executor == "") {
				t.Errorf("%s: finished %d, executor %q", tk.LifecycleStatus, tk.FinishDateTime, tk.Executor)
			}
			if want := (task.Run{Attempt: 3, Executor: "n1", StartDateTime: 5, FinishDateTime: 8, Outcome: "failed", Error: "boom"}); len(tk.Attempts) != 1 || tk.Attempts[0] != want {
				t.Errorf("history %+v", tk.Attempts)
			}
		})
	}
}

func TestACancelThatIsUndoneBeforeItsCarryingOutIsNotCarriedOut(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name  string
		carry func(*task.Task) []task.Change
		want  task.Status
	}{
		{"a failure with attempts left", func(t *task.Task) []task.Change {
			return task.Fail(t, failure(task.Report{}), task.DefaultPolicy(), 0, now)
		}, task.Created},
		{"the last failure", func(t *task.Task) []task.Change {
			return task.Fail(t, failure(task.Report{Permanent: true}), task.DefaultPolicy(), 0, now)
		}, task.Failed},
		{"its node is gone", func(t *task.Task) []task.Change {
			c, _ := task.Lose(t, task.LossSilent, task.DefaultPolicy(), now)
			return []task.Change{c}
		}, task.Running}, // to be looked at anew
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			kept := with(running(), func(t *task.Task) { t.Desired = task.DesiredCancelled })
			undone := kept.Clone()
			changes := c.carry(&kept)
			if undo, ok := task.Resume(&undone, now); !ok || !undo.Apply(&undone) {
				t.Fatal("a cancel that is not carried out cannot be undone")
			}
			for _, change := range changes {
				change.Apply(&kept)
				change.Apply(&undone)
			}
			if kept.LifecycleStatus != task.Cancelled || undone.LifecycleStatus != c.want {
				t.Errorf("%s, and undone meanwhile %s; want %s", kept.LifecycleStatus, undone.LifecycleStatus, c.want)
			}
		})
	}
}

func TestFailOfAnotherClaimDoesNothing(t *testing.T) {
	t.Parallel()
	tk := running()
	r := failure(task.Report{})
	r.ClaimID = "older"
	for _, c := range task.Fail(&tk, r, task.DefaultPolicy(), 0, now) {
		if c.Apply(&tk) {
			t.Error("applied")
		}
	}
}

func TestBackoffStaysWithinItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := task.Backoff{BaseMs: rapid.Int64Range(0, 1<<40).Draw(t, "base"), Factor: rapid.Float64Range(0, 100).Draw(t, "factor"),
			MaxMs: rapid.Int64Range(0, 1<<40).Draw(t, "max")}
		n, jitter := rapid.IntRange(0, 10_000).Draw(t, "failures"), rapid.Float64Range(0, 0.999).Draw(t, "jitter")
		d := b.Delay(n, jitter)
		if d < 0 || d > b.MaxMs {
			t.Fatalf("%d ms; at most %d", d, b.MaxMs)
		}
		if next := b.Delay(n+1, jitter); next < d {
			t.Fatalf("the wait gets shorter: %d, then %d", d, next)
		}
	})
}

func TestLoseCountsOnlyDeathsWhileItRan(t *testing.T) {
	t.Parallel()
	policy := task.DefaultPolicy()
	for _, c := range []struct {
		name    string
		status  task.Status
		loss    task.Loss
		crashes int
		want    task.Status
		counted int
		outcome string
	}{
		{"a spot machine goes", task.Running, task.LossSilent, 2, task.Created, 2, "lost"},
		{"a goodbye", task.Running, task.LossLeft, 2, task.Created, 2, "left"},
		{"the process died", task.Running, task.LossDied, 0, task.Created, 1, "crashed"},
		{"before it had started", task.Assigning, task.LossDied, 2, task.Created, 2, "crashed"},
		{"C79: the third death", task.Running, task.LossDied, 2, task.Failed, 3, "crashed"},
	} {
		tk := with(running(), func(t *task.Task) { t.LifecycleStatus, t.Crashes = c.status, c.crashes })
		change, ok := task.Lose(&tk, c.loss, policy, now)
		if !ok || !change.Apply(&tk) {
			t.Fatal(c.name, "does not apply")
		}
		if tk.LifecycleStatus != c.want || tk.Crashes != c.counted || tk.Failures != 0 || tk.Attempts[0].Outcome != c.outcome {
			t.Errorf("%s: %s, %d crashes, %d failures, %+v", c.name, tk.LifecycleStatus, tk.Crashes, tk.Failures, tk.Attempts)
		}
	}
}

func TestOverdue(t *testing.T) {
	t.Parallel()
	for name, tk := range map[string]task.Task{
		"waits":   waiting(),
		"is held": running(),
		"on hold": with(waiting(), func(t *task.Task) { t.LifecycleStatus = task.Paused }),
	} {
		c := task.Overdue(&tk, now)
		if !c.Apply(&tk) || tk.LifecycleStatus != task.Failed || tk.Error == "" || tk.FinishDateTime != now {
			t.Errorf("%s: %s %q", name, tk.LifecycleStatus, tk.Error)
		}
	}
}

func TestAloneAndAway(t *testing.T) {
	t.Parallel()
	tk := running()
	for i := range 2 {
		if tk.Alone() {
			t.Errorf("alone after %d deaths", i)
		}
		c, _ := task.Lose(&tk, task.LossDied, task.DefaultPolicy(), now)
		c.Apply(&tk)
		tk.LifecycleStatus, tk.Executor, tk.StartDateTime = task.Running, "n2", now
	}
	if got := tk.Crashed(); !tk.Alone() || len(got) != 2 || got[0] != "n1" || got[1] != "n2" {
		t.Errorf("alone %t, away from %v", tk.Alone(), got)
	}
	if got := waiting(); got.Alone() || got.Crashed() != nil {
		t.Error("a task that never crashed")
	}
}
