package backend

import (
	"testing"
	"time"

	"github.com/skalds-go/skalds/pkg/task"
)

func TestTasksThatDoNotWaitForTheirTurnAreExplainedInWords(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_000)
	ago := now.Add(-90 * time.Second).UnixMilli()
	for name, c := range map[string]struct {
		task               task.Task
		reason, text, help string
	}{
		"finished":           {task.Task{LifecycleStatus: task.Finished, Attempt: 1, FinishDateTime: ago}, "ENDED", "It ended 1m30s ago, on attempt 1: Finished.", "See its result: skalds task show 't 1'"},
		"failed":             {task.Task{LifecycleStatus: task.Failed, Attempt: 3, FinishDateTime: ago, Error: "disk full"}, "ENDED", "It ended 1m30s ago, on attempt 3: Failed: disk full", "Run it again: skalds task retry 't 1'"},
		"cancelled early":    {task.Task{LifecycleStatus: task.Cancelled, FinishDateTime: ago}, "ENDED", "It ended 1m30s ago, before it ran: Cancelled.", "Run it again: skalds task retry 't 1'"},
		"old, without times": {task.Task{LifecycleStatus: task.Finished}, "ENDED", "It ended: Finished.", "See its result: skalds task show 't 1'"},
		"old, ran before attempts were counted": {task.Task{LifecycleStatus: task.Failed, CreateDateTime: ago - 10, StartDateTime: ago - 5, FinishDateTime: ago}, "ENDED",
			"It ended 1m30s ago: Failed.", "Run it again: skalds task retry 't 1'"},
		"ended before it was made": {task.Task{LifecycleStatus: task.Cancelled, CreateDateTime: ago, FinishDateTime: ago - 1}, "ENDED",
			"It ended, before it ran: Cancelled.", "Run it again: skalds task retry 't 1'"},
		"running, since nobody knows": {task.Task{LifecycleStatus: task.Running, Executor: "n1", Attempt: 1}, "RUNNING", "It has been running on n1 (attempt 1).", ""},
		"edge":                        {task.Task{LifecycleStatus: task.Created, Mode: task.ModeActive}, "EDGE", "It belongs to an edge node, which runs it by itself: no controller dispatches it.", ""},
		"paused":                      {task.Task{LifecycleStatus: task.Paused}, "PAUSED", "A person has paused it; no node holds it.", "Resume it: skalds task resume 't 1'"},
		"paused on a node":            {task.Task{LifecycleStatus: task.Paused, Executor: "n1"}, "PAUSED", "A person has paused it; it is on n1 and keeps its slot there.", "Resume it: skalds task resume 't 1'"},
		"going on": {task.Task{LifecycleStatus: task.Paused, Executor: "n1", Desired: task.DesiredRunning}, "PAUSED",
			"A person has paused it; it is on n1 and keeps its slot there. It is to go on: its node has not said yet that it does.", "Resume it: skalds task resume 't 1'"},
		"backoff": {task.Task{LifecycleStatus: task.Created, Attempt: 2, Failures: 2, NotBefore: now.Add(2500 * time.Millisecond).UnixMilli(), Attempts: []task.Run{{Error: "first"}, {Error: "timed out"}}},
			"BACKOFF", "Its attempt 2 has failed (timed out); the next one may begin in 2.5s.", ""},
		"not before": {task.Task{LifecycleStatus: task.Created, NotBefore: now.Add(time.Hour).UnixMilli()}, "NOT_BEFORE", "It is not to run before 2023-11-14T23:13:20Z, in 1h0m0s.", ""},
		"running":    {task.Task{LifecycleStatus: task.Running, Executor: "n1", Attempt: 1, StartDateTime: ago}, "RUNNING", "It has been running on n1 for 1m30s (attempt 1).", ""},
		"to be cancelled": {task.Task{LifecycleStatus: task.Running, Executor: "n1", Attempt: 1, StartDateTime: ago, Desired: task.DesiredCancelled}, "RUNNING",
			"It has been running on n1 for 1m30s (attempt 1). It is to be cancelled: its handler has not returned yet.", ""},
		"to be paused": {task.Task{LifecycleStatus: task.Running, Executor: "n1", Attempt: 1, StartDateTime: ago, Desired: task.DesiredPaused}, "RUNNING",
			"It has been running on n1 for 1m30s (attempt 1). It is to be paused: its handler has not come to a place where it waits (WaitWhilePaused).", ""},
		"assigning": {task.Task{LifecycleStatus: task.Assigning, Executor: "n1", Attempt: 1, AssignedDateTime: now.Add(-300 * time.Millisecond).UnixMilli()}, "ASSIGNING",
			"It was sent to n1 300ms ago (attempt 1), and the node has not said that it began.", "The node may be full for a moment: skalds nodes show n1 says what it does."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.task.ID = "t 1"
			reason, text, help := describe(&c.task, "", now)
			if reason != c.reason || text != c.text || help != c.help {
				t.Errorf("%s\n%s\n%s\nwant %s\n%s\n%s", reason, text, help, c.reason, c.text, c.help)
			}
		})
	}
}
