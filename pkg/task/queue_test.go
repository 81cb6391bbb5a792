package task_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/skalds-go/skalds/pkg/task"
)

func TestQueueNames(t *testing.T) {
	t.Parallel()
	for want, tk := range map[string]task.Task{
		"0||resize":                {ClassName: "resize", ID: "a"},
		"0||resize|s2":             {ClassName: "resize", Slots: 2},
		"7|shop|resize|pgpu|ka|l1": {ClassName: "resize", Namespace: "shop", Priority: 7, Pool: "gpu", ConcurrencyKey: "a"},
		"-3||a%7cb|n!spot,zone=a":  {ClassName: "a|b", Priority: -3, Selector: "zone=a,!spot"},
		"0||resize|arow":           {ClassName: "resize", AntiAffinityKey: "row", Slots: 1},
	} {
		if got := tk.Queue(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// What only says where a task goes, and not whether it can, does not divide a queue; all else does.
func TestQueuesHoldTasksThatAskForTheSame(t *testing.T) {
	t.Parallel()
	base := task.Task{ID: "a", ClassName: "c", Priority: 5}
	for name, change := range map[string]func(*task.Task){
		"id": func(t *task.Task) { t.ID = "b" }, "strategy": func(t *task.Task) { t.Strategy = "RANDOM" }, "attempt": func(t *task.Task) { t.Attempt = 4 },
		"crashes": func(t *task.Task) { t.Crashes = 2 }, "sticky key": func(t *task.Task) { t.StickyKey = "s" }, "one slot": func(t *task.Task) { t.Slots = 1 },
		"limit without key": func(t *task.Task) { t.ConcurrencyLimit = 2 },
	} {
		other := base
		if change(&other); other.Queue() != base.Queue() {
			t.Errorf("%s: another queue", name)
		}
	}
	for name, change := range map[string]func(*task.Task){
		"priority": func(t *task.Task) { t.Priority = 6 }, "namespace": func(t *task.Task) { t.Namespace = "n" }, "class": func(t *task.Task) { t.ClassName = "d" },
		"slots": func(t *task.Task) { t.Slots = 2 }, "key": func(t *task.Task) { t.ConcurrencyKey = "k" }, "pool": func(t *task.Task) { t.Pool = "k" },
		"anti": func(t *task.Task) { t.AntiAffinityKey = "k" }, "labels": func(t *task.Task) { t.Labels = map[string]string{"k": "v"} },
		"bad selector": func(t *task.Task) { t.Selector = "in (" },
	} {
		other := base
		if change(&other); other.Queue() == base.Queue() {
			t.Errorf("%s: the same queue", name)
		}
	}
}

func TestQueueNamesAreShortAndDiffer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a|%~k]{0,5}`), rapid.Just(strings.Repeat("ü|", 120)))
		draw := func(label string) task.Task {
			return task.Task{ClassName: text.Draw(t, label), Namespace: text.Draw(t, label), Pool: text.Draw(t, label), ConcurrencyKey: text.Draw(t, label),
				AntiAffinityKey: text.Draw(t, label), Slots: rapid.IntRange(0, 3).Draw(t, label), Priority: rapid.IntRange(-1, 10).Draw(t, label)}
		}
		a, b := draw("a"), draw("b")
		if len(a.Queue()) > task.MaxQueueBytes {
			t.Fatalf("%d bytes: %q", len(a.Queue()), a.Queue())
		}
		a.Slots, b.Slots = max(a.Slots, 1), max(b.Slots, 1)
		same := a.ClassName == b.ClassName && a.Namespace == b.Namespace && a.Pool == b.Pool && a.ConcurrencyKey == b.ConcurrencyKey &&
			a.AntiAffinityKey == b.AntiAffinityKey && a.Slots == b.Slots && a.Priority == b.Priority
		if (a.Queue() == b.Queue()) != same {
			t.Fatalf("%q and %q, of %+v and %+v", a.Queue(), b.Queue(), a, b)
		}
	})
}

func TestPermitsAreFreeWhenNoNodeHoldsTheTask(t *testing.T) {
	t.Parallel()
	tk := task.Task{ID: "t", ClassName: "c", LifecycleStatus: task.Created, ConcurrencyKey: "k"}
	c := task.Claim(&tk, "n", "i", "c1", now)
	c.Assign.KeyPermit, c.Assign.PoolPermit = task.Permit("k", 0), task.Permit("p", 3)
	if !c.Apply(&tk) || tk.KeyPermit != "k#0" || tk.PoolPermit != "p#3" {
		t.Fatalf("%+v", tk)
	}
	for name, end := range map[string]task.Change{
		"given back": task.Unclaim("t", *c.Assign, now),
		"ended":      (&task.Report{ID: "t", Attempt: 1, ClaimID: "c1", Kind: task.ReportFinished, FinishedAt: now}).Changes(now)[0],
	} {
		held := tk.Clone()
		if !end.Apply(&held) || held.KeyPermit != "" || held.PoolPermit != "" {
			t.Errorf("%s: %+v", name, held)
		}
	}
	started := (&task.Report{ID: "t", Attempt: 1, ClaimID: "c1", Kind: task.ReportStarted, StartedAt: now}).Changes(now)[0]
	if !started.Apply(&tk) || tk.KeyPermit == "" {
		t.Errorf("freed while it runs: %+v", tk)
	}
}
